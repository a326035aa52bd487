"""The server cluster info of the lightweight consumer: brokers, partitions' leaders, coordinators.

No I/O and no clock. Leader epochs only grow: a response of a broker that lags behind doesn't bring an older leader back
(KIP-320), and leaders in Produce and Fetch responses count at once (KIP-951).
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from kohort.client.types import Broker, PartitionInfo, TopicInfo, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.metadata import MetadataResponse

__all__ = ["Changes", "CoordinatorKind", "ServerClusterInfo"]

_NO_ID = UUID(int=0)


class CoordinatorKind(enum.IntEnum):
    """The kinds of coordinators; the numbers are FindCoordinator's."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Changes(NamedTuple):
    """The changes of an update.

    Attributes:
        brokers: whether brokers or their addresses have changed.
        topics: names of topics that are new, gone, or have other partitions.
        leaders: partitions with another leader or a newer leader epoch.
    """

    brokers: bool = False
    topics: frozenset[str] = frozenset()
    leaders: frozenset[TopicPartition] = frozenset()

    def __bool__(self) -> bool:
        return self.brokers or bool(self.topics) or bool(self.leaders)


class ServerClusterInfo:
    """A cluster's metadata.

    Attributes:
        brokers: by node id.
        controller: node id; None if unknown.
        cluster_id: None if unknown.
        topics: by name.
        names: of topics, by id.
        errors: why a requested topic isn't in `topics`, or is out of date there.
        coordinators: node ids by (kind, group id or transactional id).
        incomplete: whether the last update lacked a topic or a partition's leader, which may come soon.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.controller: int | None = None
        self.cluster_id: str | None = None
        self.topics: dict[str, TopicInfo] = {}
        self.names: dict[UUID, str] = {}
        self.errors: dict[str, ErrorCode] = {}
        self.coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        self.incomplete = False

    # Reading

    def partition(self, at: TopicPartition) -> PartitionInfo | None:
        """Returns a partition's metadata."""
        topic = self.topics.get(at.topic)
        return None if topic is None else topic.partitions.get(at.partition)

    def leader(self, at: TopicPartition) -> Broker | None:
        """Returns a partition's leader, if there is one and its address is known."""
        known = self.partition(at)
        return None if known is None or known.leader is None else self.brokers.get(known.leader)

    def leader_epoch(self, at: TopicPartition) -> int:
        """Returns the newest leader epoch of a partition, -1 if unknown."""
        known = self.partition(at)
        return -1 if known is None else known.leader_epoch

    # Updating

    def update(self, answer: MetadataResponse, requested: Collection[str] | None) -> Changes:
        """Takes a metadata response.

        Args:
            answer: the response, without an error of its own.
            requested: requested topics; None for all, so that others are gone.
        """
        before = self.brokers
        if answer.brokers:
            self.brokers = {
                each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers
            }
        self.cluster_id = answer.cluster_id or self.cluster_id
        self.controller = answer.controller_id if answer.controller_id >= 0 else None
        topics: set[str] = set()
        leaders: set[TopicPartition] = set()
        if requested is None:
            here = {each.name for each in answer.topics}
            for name in self.topics.keys() - here:
                self._forget(name)
                topics.add(name)
            self.errors.clear()
        self.incomplete = False
        for topic in answer.topics:
            if topic.name is not None:
                self._update_topic(topic, topics, leaders)
        return Changes(self.brokers != before, frozenset(topics), frozenset(leaders))

    def _update_topic(self, reported: MetadataResponse.Topic, topics: set[str], leaders: set[TopicPartition]) -> None:
        name = reported.name
        assert name is not None
        old = self.topics.get(name)
        if reported.error_code:
            self.errors[name] = error = _code(reported.error_code)
            self.incomplete |= error.retriable
            if reported.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and old is not None:
                self._forget(name)
                topics.add(name)
            return
        self.errors.pop(name, None)
        # With the same id, or without ids, it is the known topic; else it was deleted and created again.
        same = old is not None and (old.topic_id == reported.topic_id or _NO_ID in (old.topic_id, reported.topic_id))
        known = old.partitions if old is not None and same else {}
        partitions = {}
        for each in sorted(reported.partitions, key=_index):
            was = known.get(each.partition_index)
            now = _newer(was, each)
            partitions[each.partition_index] = now
            self.incomplete |= now.leader is None
            if was is None or was.leader != now.leader or was.leader_epoch != now.leader_epoch:
                leaders.add(TopicPartition(name, each.partition_index))
        topic_id = old.topic_id if old is not None and reported.topic_id == _NO_ID else reported.topic_id
        if not same or partitions.keys() != known.keys():
            self._forget(name)
            topics.add(name)
        self.topics[name] = TopicInfo(name, topic_id, reported.is_internal, partitions)
        if topic_id != _NO_ID:
            self.names[topic_id] = name

    def learn_leader(self, at: TopicPartition, node_id: int, epoch: int, endpoint: Broker | None = None) -> bool:
        """Takes a leader from a Produce or Fetch response (KIP-951); returns whether it is a newer one.

        Args:
            at: the partition.
            node_id, epoch: its leader, and the leader epoch.
            endpoint: the broker's address, if the response has it.
        """
        known = self.partition(at)
        if known is None or node_id < 0 or epoch <= known.leader_epoch:
            return False
        if endpoint is not None:
            self.learn_broker(endpoint)
        if node_id not in self.brokers:
            return False
        self.topics[at.topic].partitions[at.partition] = known._replace(leader=node_id, leader_epoch=epoch)
        return True

    def learn_broker(self, broker: Broker) -> None:
        """Takes a broker's address from another response than metadata."""
        old = self.brokers.get(broker.node_id)
        if old is None or old[:3] != broker[:3]:
            self.brokers = {**self.brokers, broker.node_id: broker}

    def forget_brokers(self) -> None:
        """Forgets all brokers, to rebootstrap (KIP-899, KIP-1102): it may be another cluster by now."""
        self.brokers = {}
        self.controller = None
        self.coordinators.clear()

    def forget_topics(self, names: Iterable[str]) -> None:
        """Drops topics that aren't followed."""
        for name in names:
            self._forget(name)
            self.errors.pop(name, None)

    def _forget(self, name: str) -> None:
        gone = self.topics.pop(name, None)
        if gone is not None:
            self.names.pop(gone.topic_id, None)


def _newer(known: PartitionInfo | None, reported: MetadataResponse.Topic.Partition) -> PartitionInfo:
    """Returns the partition's new metadata, or the known one if that has a newer leader epoch."""
    if known is not None and 0 <= reported.leader_epoch < known.leader_epoch:
        return known
    epoch = reported.leader_epoch
    if known is not None and epoch < 0:
        epoch = known.leader_epoch  # a partition without a leader doesn't always come with its epoch
    leader = reported.leader_id if reported.leader_id >= 0 else None
    return PartitionInfo(
        reported.partition_index, leader, epoch, reported.replica_nodes, reported.isr_nodes, reported.offline_replicas
    )


def _index(partition: MetadataResponse.Topic.Partition) -> int:
    return partition.partition_index


def _code(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
