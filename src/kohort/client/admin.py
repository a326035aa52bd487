"""The admin client."""

from __future__ import annotations

from kohort.client.administration.acls import (
    Acl,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    Acls,
)
from kohort.client.administration.cluster_info import ClusterInfo
from kohort.client.administration.configs import (
    ConfigEntry,
    ConfigResource,
    Configs,
    ConfigSource,
    ResourceType,
)
from kohort.client.administration.group_offsets import GroupOffsets, PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupListing, GroupMember, GroupType
from kohort.client.administration.groups import Groups
from kohort.client.administration.member_removal import MemberToRemove
from kohort.client.administration.offsets import Offsets, OffsetSpec
from kohort.client.administration.quotas import DEFAULT, Default, QuotaEntity, Quotas
from kohort.client.administration.request_router import RequestRouter
from kohort.client.administration.resets import PlannedReset, ResetError, ResetTo
from kohort.client.administration.topics import CreatedTopic, NewTopic, Topics
from kohort.client.administration.transactions import ProducerState, Transactions
from kohort.client.administration.users import SCRAM_MECHANISMS, ScramCredential, Users
from kohort.client.cluster import Cluster
from kohort.client.config import Servers
from kohort.client.errors import PartialFailureError
from kohort.client.lifecycle import Lifecycle

__all__ = [
    "DEFAULT", "SCRAM_MECHANISMS", "Acl", "AclFilter", "AclOperation", "AclPattern", "AclPermission", "AclResource",
    "Admin", "ConfigEntry", "ConfigResource", "ConfigSource", "CreatedTopic", "Default", "GroupDescription",
    "GroupListing", "GroupMember", "GroupType", "MemberToRemove", "NewTopic", "OffsetSpec", "PartialFailureError",
    "PartitionLag", "PlannedReset", "ProducerState", "QuotaEntity", "ResetError", "ResetTo", "ResourceType",
    "ScramCredential",
]  # fmt: skip


class Admin(Lifecycle):
    """Administers a cluster, Kohort's or Apache Kafka's.

        async with Admin("localhost:9092") as admin:
            await admin.topics.create("flights", partitions=4)
            print(await admin.groups.describe("word-count"))

    Requests go to the right brokers: leaders, coordinators, the controller or all; those for one broker together.
    Retriable errors (a leader that moves, a coordinator that loads, a broken connection) are retried until the timeout.

    Args:
        servers: addresses or a configuration.
        default_api_timeout_ms: the timeout of calls without `timeout_ms`.

    Attributes:
        topics: list, create, describe, enlarge and delete topics, and delete records.
        configs: describe and alter settings of topics, brokers, groups and client metrics.
        groups: list, describe and delete groups of every type, and remove members.
        group_offsets: committed offsets of groups, and their lag; alter, reset and delete them.
        offsets: first and last offsets of partitions, and those of a time.
        transactions: list, describe, abort and fence transactions, and producers of partitions.
        cluster: brokers, features, log directories and the metadata quorum.
        acls: access rules: who may do what; describe, create and delete them.
        users: users that log in with SCRAM; describe, set and delete them.
        quotas: how much users, client ids and addresses may do; describe, set and remove them.

    Raises:
        ConfigError: invalid addresses.
    """

    def __init__(self, servers: Servers, *, default_api_timeout_ms: int = 60_000) -> None:
        self._cluster = Cluster(servers)
        router = RequestRouter(self._cluster, default_api_timeout_ms)
        self.topics = Topics(router)
        self.configs = Configs(router)
        self.groups = Groups(router)
        self.offsets = Offsets(router)
        self.group_offsets = GroupOffsets(router, self.groups, self.offsets)
        self.transactions = Transactions(router)
        self.cluster = ClusterInfo(router)
        self.acls = Acls(router)
        self.users = Users(router)
        self.quotas = Quotas(router)

    async def start(self) -> None:
        """Finds the cluster.

        Raises:
            NoBrokerError: no broker answered within `bootstrap_timeout_ms`.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
        """
        await self._cluster.start()

    async def close(self) -> None:
        """Closes all connections."""
        await self._cluster.close()
