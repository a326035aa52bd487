"""Topics, as an admin sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kohort.client.administration.finding import anywhere, controller, leaders, metadata, topic_error
from kohort.client.administration.partitions import by_topic
from kohort.client.administration.routing import Failure, Line, Outcomes, Routes
from kohort.client.errors import UnsupportedError, kafka_error
from kohort.client.types import PartitionInfo, TopicInfo, TopicPartition
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kohort.protocol.messages.metadata import MetadataResponse

__all__ = ["CreatedTopic", "NewTopic", "Topics"]

_NO_TOPIC = UUID(int=0)
_IDS = 6
"""The first version of DeleteTopics that takes ids."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    Attributes:
        name: what it is called.
        partitions: how many; None for the cluster's default.
        replication_factor: replicas of each partition; None for the cluster's default.
        configs: settings that differ from the defaults, such as {"cleanup.policy": "compact"}.
        replica_assignments: the brokers of each partition, the preferred leader first; instead of the two numbers.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    replica_assignments: Mapping[int, Sequence[int]] | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.replica_assignments is not None and (self.partitions, self.replication_factor) != (None, None):
            raise ValueError(
                f"{self.name}: replica_assignments says how many partitions and replicas there are; leave these out"
            )


class CreatedTopic(NamedTuple):
    """A topic that was created; what an old broker or one that may not tell leaves out is None."""

    name: str
    topic_id: UUID | None
    partitions: int | None
    replication_factor: int | None


class Topics:
    """What an admin does with topics: `Admin.topics`.

    What is asked about several and fails for some raises `PartialFailureError`, about one its own `KafkaError`.
    Every method takes `timeout_ms`, for all of it; without it, the admin's own holds.
    """

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(self, *, internal: bool = False, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """All topics that this user may see, by name in order; Kafka's own ones only if asked for."""
        answer = await metadata(self._routes, None, self._routes.deadline(timeout_ms))
        found = [
            _info(topic) for topic in answer.topics if not topic.error_code and (internal or not topic.is_internal)
        ]
        return {topic.name: topic for topic in sorted(found, key=lambda topic: topic.name)}

    async def describe(self, *names: str, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """The topics by name: their partitions, leaders and replicas.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or the user may not see it.
        """

        async def ask(line: Line, some: Sequence[str]) -> Mapping[str, TopicInfo | Failure]:
            answer = await metadata(self._routes, some, deadline)
            return {
                topic.name or "": topic_error(topic) if topic.error_code else _info(topic) for topic in answer.topics
            }

        deadline = self._routes.deadline(timeout_ms)
        found: Outcomes[str, TopicInfo] = await self._routes.spread(names, anywhere, ask, deadline)
        return found.checked()

    async def create(
        self,
        *topics: str | NewTopic,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics.

        Args:
            topics: names, or what to create in full.
            partitions, replication_factor, configs: of those that are given by name alone.
            validate_only: only check whether they could be created.
            timeout_ms: as everywhere.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR, …, with the broker's reason.
        """
        wanted = [
            topic if isinstance(topic, NewTopic) else NewTopic(topic, partitions, replication_factor, configs or {})
            for topic in topics
        ]
        by_name = {topic.name: topic for topic in wanted}

        async def ask(line: Line, names: Sequence[str]) -> Mapping[str, CreatedTopic | Failure]:
            request = CreateTopicsRequest(
                topics=[_new_topic(by_name[name]) for name in names],
                timeout_ms=line.timeout_ms,
                validate_only=validate_only,
            )
            answer = await line.ask(request, CreateTopicsResponse)
            return {
                each.name: kafka_error(each.error_code, each.error_message) if each.error_code else _created(each)
                for each in answer.topics
            }

        deadline = self._routes.deadline(timeout_ms)
        return (await self._routes.spread(by_name, controller, ask, deadline)).checked()

    async def delete(self, *topics: str | UUID, timeout_ms: int | None = None) -> None:
        """Delete topics, by name or id, with all their records."""

        async def ask(line: Line, some: Sequence[str | UUID]) -> Mapping[str | UUID, Failure | None]:
            names = [topic for topic in some if isinstance(topic, str)]
            if line.version(DeleteTopicsRequest) >= _IDS:
                request = DeleteTopicsRequest(
                    topics=[
                        DeleteTopicsRequest.Topic(name=topic)
                        if isinstance(topic, str)
                        else DeleteTopicsRequest.Topic(name=None, topic_id=topic)
                        for topic in some
                    ],
                    timeout_ms=line.timeout_ms,
                )
            elif len(names) < len(some):
                raise UnsupportedError(f"{line.broker} deletes topics by name alone")
            else:
                request = DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=line.timeout_ms)
            answer = await line.ask(request, DeleteTopicsResponse)
            outcomes: dict[str | UUID, Failure | None] = {}
            for each in answer.responses:
                key = each.name if each.name in some else each.topic_id
                if key is not None:
                    outcomes[key] = kafka_error(each.error_code, each.error_message) if each.error_code else None
            return outcomes

        deadline = self._routes.deadline(timeout_ms)
        (await self._routes.spread(topics, controller, ask, deadline)).checked()

    async def add_partitions(
        self,
        topic: str,
        total: int,
        *,
        replica_assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Give a topic more partitions.

        Args:
            topic: its name.
            total: how many it is to have then.
            replica_assignments: the brokers of each added partition; None lets the controller choose.
            validate_only: only check whether it could be done.
            timeout_ms: as everywhere.
        """

        async def ask(line: Line, names: Sequence[str]) -> Mapping[str, Failure | None]:
            assignments = None
            if replica_assignments is not None:
                assignments = [
                    CreatePartitionsRequest.Topic.Assignment(broker_ids=tuple(brokers))
                    for brokers in replica_assignments
                ]
            request = CreatePartitionsRequest(
                topics=[CreatePartitionsRequest.Topic(name=topic, count=total, assignments=assignments)],
                timeout_ms=line.timeout_ms,
                validate_only=validate_only,
            )
            answer = await line.ask(request, CreatePartitionsResponse)
            return {
                each.name: kafka_error(each.error_code, each.error_message) if each.error_code else None
                for each in answer.results
            }

        (await self._routes.spread([topic], controller, ask, self._routes.deadline(timeout_ms))).checked()

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the oldest records of partitions: those before an offset, -1 for all there are.

        Returns:
            the first offset that each partition still has.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the high watermark; POLICY_VIOLATION for compacted topics.
        """

        async def ask(line: Line, some: Sequence[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
            kind = DeleteRecordsRequest.Topic
            request = DeleteRecordsRequest(
                topics=[
                    kind(
                        name=name,
                        partitions=[
                            kind.Partition(partition_index=number, offset=before[TopicPartition(name, number)])
                            for number in numbers
                        ],
                    )
                    for name, numbers in by_topic(some).items()
                ],
                timeout_ms=line.timeout_ms,
            )
            answer = await line.ask(request, DeleteRecordsResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    kafka_error(each.error_code) if each.error_code else each.low_watermark
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        deadline = self._routes.deadline(timeout_ms)
        return (await self._routes.spread(before, leaders, ask, deadline)).checked()

    async def partitions(self, topics: Iterable[str], *, timeout_ms: int | None = None) -> tuple[TopicPartition, ...]:
        """All partitions of topics, in order."""
        found = await self.describe(*topics, timeout_ms=timeout_ms)
        return tuple(
            TopicPartition(name, number) for name, topic in sorted(found.items()) for number in topic.partitions
        )


def _info(topic: MetadataResponse.Topic) -> TopicInfo:
    partitions = {
        each.partition_index: PartitionInfo(
            partition=each.partition_index,
            leader=each.leader_id if each.leader_id >= 0 else None,
            leader_epoch=each.leader_epoch,
            replicas=each.replica_nodes,
            in_sync=each.isr_nodes,
            offline=each.offline_replicas,
        )
        for each in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    }
    return TopicInfo(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def _new_topic(topic: NewTopic) -> CreateTopicsRequest.Topic:
    kind = CreateTopicsRequest.Topic
    return kind(
        name=topic.name,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            kind.Assignment(partition_index=number, broker_ids=tuple(brokers))
            for number, brokers in (topic.replica_assignments or {}).items()
        ],
        configs=[kind.Config(name=name, value=value) for name, value in topic.configs.items()],
    )


def _created(topic: CreateTopicsResponse.Topic) -> CreatedTopic:
    return CreatedTopic(
        topic.name,
        None if topic.topic_id == _NO_TOPIC else topic.topic_id,
        topic.num_partitions if topic.num_partitions >= 0 else None,
        topic.replication_factor if topic.replication_factor >= 0 else None,
    )
