"""The admin client."""

from __future__ import annotations

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
from kohort.client.administration.offsets import Offsets, OffsetSpec
from kohort.client.administration.removing import MemberToRemove
from kohort.client.administration.resets import PlannedReset, ResetError, ResetTo
from kohort.client.administration.routing import Routes
from kohort.client.administration.topics import CreatedTopic, NewTopic, Topics
from kohort.client.administration.transactions import ProducerState, Transactions
from kohort.client.cluster import Cluster
from kohort.client.config import Servers
from kohort.client.errors import PartialFailureError
from kohort.client.lifecycle import Lifecycle

__all__ = [
    "Admin", "ConfigEntry", "ConfigResource", "ConfigSource", "CreatedTopic", "GroupDescription", "GroupListing",
    "GroupMember", "GroupType", "MemberToRemove", "NewTopic", "OffsetSpec", "PartialFailureError", "PartitionLag",
    "PlannedReset", "ProducerState", "ResetError", "ResetTo", "ResourceType",
]  # fmt: skip


class Admin(Lifecycle):
    """Administers a cluster, Kohort's or Apache Kafka's.

        async with Admin("localhost:9092") as admin:
            await admin.topics.create("flights", partitions=4)
            print(await admin.groups.describe("word-count"))

    Requests go where they belong: to leaders, coordinators, the controller or each broker, those for one broker
    together. What may pass (a leader that moves, a coordinator that loads, a broken connection) is tried again until
    the time is over.

    Args:
        servers: addresses or a configuration.
        default_api_timeout_ms: how long a call may take that is given no `timeout_ms` of its own.

    Attributes:
        topics: list, create, describe, enlarge and delete topics, and delete records.
        configs: describe and alter settings of topics, brokers, groups and client metrics.
        groups: list, describe and delete groups of every type, and remove members.
        group_offsets: what groups have committed, their lag; alter, reset and delete it.
        offsets: where partitions begin and end, and where a time is in them.
        transactions: list, describe and abort transactions, and what partitions know of producers.
        cluster: brokers, features, log directories and the metadata quorum.

    Raises:
        ConfigError: addresses that can't be.
    """

    def __init__(self, servers: Servers, *, default_api_timeout_ms: int = 60_000) -> None:
        self._cluster = Cluster(servers)
        routes = Routes(self._cluster, default_api_timeout_ms)
        self.topics = Topics(routes)
        self.configs = Configs(routes)
        self.groups = Groups(routes)
        self.offsets = Offsets(routes)
        self.group_offsets = GroupOffsets(routes, self.groups, self.offsets)
        self.transactions = Transactions(routes)
        self.cluster = ClusterInfo(routes)

    async def start(self) -> None:
        """Finds the cluster.

        Raises:
            NoBrokerError: no broker answered within `bootstrap_timeout_ms`.
            AuthenticationError, UnsupportedError: a broker was reached, but it won't do.
        """
        await self._cluster.start()

    async def close(self) -> None:
        """Closes all connections."""
        await self._cluster.close()
