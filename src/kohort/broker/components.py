"""The broker's components, as handlers use them."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.broker.access_rules import AccessRules
from kohort.broker.audit import Audit
from kohort.broker.authorizer import Authorizer
from kohort.broker.auto_topic_creation import AutoTopicCreation
from kohort.broker.bound import Bound
from kohort.broker.client_quotas import ClientQuotas
from kohort.broker.client_telemetry import ClientTelemetry
from kohort.broker.config import Settings
from kohort.broker.delegation_tokens import DelegationTokens
from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.features import Features
from kohort.broker.fetch_sessions import FetchSessions
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.log_manager import LogManager
from kohort.broker.metrics.counters import Metrics
from kohort.broker.scram_users import ScramUsers
from kohort.broker.share.partitions import SharePartitions
from kohort.broker.share_coordinator import ShareCoordinator
from kohort.broker.share_group_states import ShareGroupStates
from kohort.broker.throttling import Throttling
from kohort.broker.topics import Topics
from kohort.broker.transaction_coordinator import TransactionCoordinator
from kohort.broker.transaction_markers import TransactionMarkers
from kohort.broker.turns import Line, Turns
from kohort.coordinator.purgatory import DelayedOperation, Purgatory


@dataclass(frozen=True, slots=True, eq=False)
class BrokerComponents:
    """The components of a broker, all of them built.

    Attributes:
        rack: None if it has none.
        authorizer: decides which operations are allowed; None allows all.
        access_rules: what the authorizer decides by; None if there are no rules, or it has its own.
        audit: tells and counts who didn't get in, and what was denied.
        fetches: the fetches that wait for data, by log.
        waiting_partitions: the partitions of fetches that wait, which are kept in memory.
        turns: what takes longer than a turn of the event loop.
        expansions: where batches wait that expand to much.
        shares: the share partitions, with sessions and fetches of share groups.
    """

    node_id: int
    rack: str | None
    cluster_id: str
    authorizer: Authorizer | None
    access_rules: AccessRules | None
    fetch_max_bytes: int
    dynamic_config: DynamicConfig
    features: Features
    metrics: Metrics
    audit: Audit
    log_manager: LogManager
    topics: Topics
    flusher: LogFlusher
    fetches: Purgatory
    waiting_partitions: Bound[DelayedOperation]
    turns: Turns
    expansions: Line
    fetch_sessions: FetchSessions
    client_quotas: ClientQuotas
    throttling: Throttling
    scram_users: ScramUsers
    delegation_tokens: DelegationTokens
    client_telemetry: ClientTelemetry
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    share_state: ShareCoordinator
    share_group_states: ShareGroupStates
    shares: SharePartitions
    transaction_markers: TransactionMarkers
    auto_topic_creation: AutoTopicCreation

    @property
    def config(self) -> Settings:
        """The configuration as it is now."""
        return self.dynamic_config.current
