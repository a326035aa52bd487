"""The cluster's metadata: topics, partitions, configurations and producer id blocks.

It lives in the log `__cluster_metadata`, in Kafka's records. A change is appended there first and then replayed, so a
restart gives the same state.
"""

from __future__ import annotations

import enum
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from kohort.broker.turns import Slices
from kohort.log.log import Log
from kohort.log.slices import in_one_go
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored import INTERNAL_TOPICS
from kohort.protocol.stored.cluster_metadata import (
    METADATA_TOPIC,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)  # fmt: skip

MAX_NAME: Final = 249
MAX_PARTITIONS_AT_ONCE: Final = 10_000
"""Partitions that one request may create, as in Kafka."""
PRODUCER_ID_BLOCK: Final = 1000
"""Producer ids in a block of the metadata log; a restart skips the unused rest of a block."""

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_DIRECTORY: Final = uuid.UUID(int=2**64 + 1)


class ConfigResource(enum.IntEnum):
    """Types of configuration resources, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(eq=False, slots=True)
class Partition:
    """A partition with its log; this node is its leader."""

    topic: Topic
    index: int
    log: Log
    leader_epoch: int = 0

    @property
    def offline(self) -> str | None:
        """Why the partition is offline; None if it isn't."""
        return self.log.offline

    def epoch_error(self, epoch: int) -> ErrorCode:
        """The error for a client whose leader epoch is `epoch`; NONE if it is current, or -1."""
        if epoch < 0 or epoch == self.leader_epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"


@dataclass(eq=False, slots=True)
class Topic:
    """A topic with its partitions, and the configuration that was set for it."""

    name: str
    id: uuid.UUID
    partitions: list[Partition] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    deleted: bool = False

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION for an illegal name."""
    reason = None
    if not name:
        reason = "it is empty"
    elif name in (".", ".."):
        reason = "it can't be '.' or '..'"
    elif len(name) > MAX_NAME:
        reason = f"it is longer than {MAX_NAME} characters"
    elif not _LEGAL.fullmatch(name):
        reason = "it may hold ASCII letters, digits, '.', '_' and '-'"
    if reason is not None:
        shown = name if len(name) <= MAX_NAME else f"{name[:40]}…"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name '{shown}' is illegal: {reason}.")


def _collision_key(name: str) -> str:
    """The same for names that differ in '.' and '_' alone: Kafka's metric names of both would be the same."""
    return name.replace(".", "_")


class PartitionLogs(Protocol):
    """The logs of partitions; see `LogManager`."""

    def open(self, topic: Topic, indexes: range, *, new: bool = False) -> Iterator[Log]:
        """Opens or creates the logs of a topic's partitions, each when it is asked for; `new` ones aren't there yet."""
        ...

    def configure(self, topic: Topic) -> None:
        """Applies the configuration of a topic to its logs."""
        ...

    def remove(self, log: Log) -> None:
        """Deletes the log of a partition."""
        ...


class Topics:
    """Topics and configurations, by name and id.

    Args:
        node_id: this node, the leader of all partitions.
        append: appends records to the metadata log, as one batch; raises KafkaError.

    Attributes:
        on_created: called with a topic that was created or has got more partitions.
        on_deleted: called with a topic that was deleted, before its logs are.
        on_config_changed: called when the configuration of a resource other than a topic has changed.
    """

    def __init__(
        self,
        node_id: int,
        logs: PartitionLogs,
        append: Callable[[list[MetadataRecord]], None],
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        self.node_id = node_id
        self._logs = logs
        self._append = append
        self._new_id = new_id
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._collisions: dict[str, str] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._partition_counts: dict[uuid.UUID, int] = {}
        self._changing: set[str] = set()  # names of topics whose partitions are being made or deleted
        self._next_producer_id = 0
        self._producer_id_block_end = 0
        self.on_created: list[Callable[[Topic], None]] = []
        self.on_deleted: list[Callable[[Topic], None]] = []
        self.on_config_changed: list[Callable[[ConfigResource, str], None]] = []

    # Look-ups

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def __iter__(self) -> Iterator[Topic]:
        """All topics, sorted by name."""
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def __len__(self) -> int:
        return len(self._by_name)

    def partition(self, name: str, index: int) -> Partition | None:
        topic = self._by_name.get(name)
        return None if topic is None else topic.partition(index)

    def online_partition(self, name: str, index: int) -> Partition:
        """Returns a partition whose log is online.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR while its log is offline.
        """
        partition = self.partition(name, index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}.")
        if partition.offline is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {partition} is offline: {partition.offline}")
        return partition

    def partitions(self) -> Iterator[Partition]:
        for topic in self:
            yield from topic.partitions

    def configs(self, kind: ConfigResource, name: str) -> dict[str, str]:
        """The keys that are set for a resource, without defaults."""
        return dict(self._configs.get((kind, name), {}))

    def all_configs(self, kind: ConfigResource) -> list[dict[str, str]]:
        """The keys that are set, of each resource of a kind."""
        return [self.configs(kind, name) for name in self.config_names(kind)]

    def config_names(self, kind: ConfigResource) -> list[str]:
        """The resources of a kind that have keys set."""
        return sorted(name for (of, name), configs in self._configs.items() if of == kind and configs)

    # Changes

    def check_new(self, name: str, partitions: int) -> None:
        """Raises what `create` would raise."""
        check_topic_name(name)
        if name in self._by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if name in self._changing:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is being created or deleted.")
        if name == METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' is the broker's own.")
        other = self._collisions.get(_collision_key(name))
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with '{other}': '.' and '_' count as the same.",
            )
        if partitions < 1:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"A topic has at least 1 partition, not {partitions}.")
        if partitions > MAX_PARTITIONS_AT_ONCE:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"At most {MAX_PARTITIONS_AT_ONCE} partitions can be created at once, not {partitions}.",
            )

    def create(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> Topic:
        """Creates a topic, wholly or not at all. `configs` must be validated.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, POLICY_VIOLATION, or
                KAFKA_STORAGE_ERROR.
        """
        return in_one_go(self.create_in_slices(name, partitions, configs))

    def create_in_slices(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> Slices[Topic]:
        """Does the same, a partition at a time; meanwhile the name is taken, but there is no such topic yet."""
        self.check_new(name, partitions)
        made = Topic(name, self._new_id(), configs=configs or {})
        records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=made.id)]
        for key, value in made.configs.items():
            records.append(ConfigRecord(resource_type=ConfigResource.TOPIC, resource_name=name, name=key, value=value))
        with self._change(name):
            logs = yield from self._new_logs(made, range(partitions))
            records += self._partition_records(made.id, range(partitions))
            self._commit_with(logs, records)
        topic = self._by_name[name]
        self._add_logs(topic, logs)
        return topic

    def delete(self, name: str) -> None:
        """Deletes a topic with its configuration and data.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR.
        """
        in_one_go(self.delete_in_slices(name))

    def delete_in_slices(self, name: str) -> Slices[None]:
        """Does the same, a partition at a time; there is no such topic from the first on."""
        topic = self._by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
        self._check_unchanging(name)
        self._commit([RemoveTopicRecord(topic_id=topic.id)])
        for callback in self.on_deleted:
            callback(topic)
        with self._change(name):
            for partition in topic.partitions:
                self._logs.remove(partition.log)
                yield

    def add_partitions(self, name: str, total: int) -> None:
        """Adds partitions to a topic, up to `total`; all of them or none.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, POLICY_VIOLATION, REQUEST_TIMED_OUT while others
                are being added, or KAFKA_STORAGE_ERROR.
        """
        in_one_go(self.add_partitions_in_slices(name, total))

    def add_partitions_in_slices(self, name: str, total: int) -> Slices[None]:
        """Does the same, a partition at a time; they are there when all are made."""
        topic = self._by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
        has = len(topic.partitions)
        if total <= has:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic '{name}' has {has} partitions; {total} aren't more.")
        if total - has > MAX_PARTITIONS_AT_ONCE:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"At most {MAX_PARTITIONS_AT_ONCE} partitions can be created at once, not {total - has}.",
            )
        self._check_unchanging(name)
        with self._change(name):
            logs = yield from self._new_logs(topic, range(has, total))
            self._commit_with(logs, self._partition_records(topic.id, range(has, total)))
        self._add_logs(topic, logs)

    def set_configs(self, kind: ConfigResource, name: str, changes: dict[str, str | None]) -> None:
        """Sets keys of a resource, or removes those whose value is None; applied at once.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if not changes:
            return
        self._commit([
            ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
            for key, value in changes.items()
        ])  # fmt: skip
        topic = self._by_name.get(name) if kind is ConfigResource.TOPIC else None
        if topic is not None:
            self._logs.configure(topic)
        else:
            for listener in self.on_config_changed:
                listener(kind, name)

    def next_producer_id(self) -> int:
        """Returns an unused producer id.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if self._next_producer_id >= self._producer_id_block_end:
            first = self._producer_id_block_end
            self._commit([ProducerIdsRecord(broker_id=self.node_id, next_producer_id=first + PRODUCER_ID_BLOCK)])
            self._next_producer_id = first
        self._next_producer_id += 1
        return self._next_producer_id - 1

    # The metadata log

    def replay(self, record: MetadataRecord) -> None:
        """Applies a record of the metadata log."""
        match record:
            case TopicRecord():
                topic = Topic(record.name, record.topic_id)
                topic.configs = self._configs.setdefault((ConfigResource.TOPIC, record.name), {})
                self._by_name[record.name] = self._by_id[record.topic_id] = topic
                self._collisions[_collision_key(record.name)] = record.name
            case PartitionRecord():
                count = self._partition_counts.get(record.topic_id, 0)
                self._partition_counts[record.topic_id] = max(count, record.partition_id + 1)
            case ConfigRecord():
                configs = self._configs.setdefault((record.resource_type, record.resource_name), {})
                if record.value is None:
                    configs.pop(record.name, None)
                else:
                    configs[record.name] = record.value
            case RemoveTopicRecord():
                removed = self._by_id.pop(record.topic_id, None)
                if removed is not None:
                    removed.deleted = True
                    del self._by_name[removed.name]
                    self._collisions.pop(_collision_key(removed.name), None)
                    self._configs.pop((ConfigResource.TOPIC, removed.name), None)
                self._partition_counts.pop(record.topic_id, None)
            case ProducerIdsRecord():
                # The unused rest of an earlier block is skipped.
                self._next_producer_id = self._producer_id_block_end = record.next_producer_id

    def open_all(self) -> None:
        """Opens the logs of all topics, once the metadata log has been replayed."""
        for topic in self:
            logs = self._logs.open(topic, range(self._partition_counts[topic.id]))
            topic.partitions = [Partition(topic, index, log) for index, log in enumerate(logs)]

    def _commit(self, records: list[MetadataRecord]) -> None:
        self._append(records)
        for record in records:
            self.replay(record)

    @contextmanager
    def _change(self, name: str) -> Iterator[None]:
        self._changing.add(name)
        try:
            yield
        finally:
            self._changing.discard(name)

    def _check_unchanging(self, name: str) -> None:
        if name in self._changing:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Partitions are being added to topic '{name}'.")

    def _new_logs(self, topic: Topic, indexes: range) -> Slices[list[Log]]:
        """Makes the logs of partitions that don't exist yet: all of them, or none.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        logs: list[Log] = []
        try:
            for log in self._logs.open(topic, indexes, new=True):
                logs.append(log)
                if log.offline is not None:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"A partition can't be made: {log.offline}")
                yield
        except BaseException:  # a generator that is dropped ends with GeneratorExit
            self._remove(logs)
            raise
        return logs

    def _commit_with(self, logs: list[Log], records: list[MetadataRecord]) -> None:
        try:
            self._commit(records)
        except KafkaError:
            self._remove(logs)
            raise

    def _remove(self, logs: list[Log]) -> None:
        for log in logs:
            self._logs.remove(log)

    def _add_logs(self, topic: Topic, logs: list[Log]) -> None:
        for index, log in enumerate(logs, len(topic.partitions)):
            topic.partitions.append(Partition(topic, index, log))
        for callback in self.on_created:
            callback(topic)

    def _partition_records(self, topic_id: uuid.UUID, indexes: range) -> list[MetadataRecord]:
        node = (self.node_id,)
        return [
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=node,
                isr=node,
                leader=self.node_id,
                leader_epoch=0,
                partition_epoch=0,
                directories=(_DIRECTORY,),
            )
            for index in indexes
        ]
