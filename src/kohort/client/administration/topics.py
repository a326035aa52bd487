"""Topics: list, describe, create, delete, add partitions, delete records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kohort.client.administration.node_lookup import any_node, controller, leaders, metadata, topic_error
from kohort.client.administration.request_router import Failure, Node, Outcomes, RequestRouter
from kohort.client.errors import UnsupportedError, kafka_error
from kohort.client.types import PartitionInfo, TopicInfo, TopicPartition, by_topic
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kohort.protocol.messages.metadata import MetadataResponse

_NO_TOPIC = UUID(int=0)
_IDS = 6
"""The first version of DeleteTopics with ids."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    Attributes:
        name: its name.
        partitions: number of partitions; None for the cluster's default.
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
        """Refuses contradicting arguments."""
        if self.replica_assignments is not None and (self.partitions, self.replication_factor) != (None, None):
            raise ValueError(
                f"{self.name}: replica_assignments says how many partitions and replicas there are; leave these out"
            )


class CreatedTopic(NamedTuple):
    """A created topic; fields that the broker doesn't return are None."""

    name: str
    topic_id: UUID | None
    partitions: int | None
    replication_factor: int | None


class Topics:
    """Topics: `Admin.topics`.

    A call about several keys raises `PartialFailureError` if some fail, a call about one its `KafkaError`. Every method
    takes `timeout_ms` for all its requests; the admin's `default_api_timeout_ms` by default.
    """

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def list(self, *, internal: bool = False, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Returns all topics that this user may describe, sorted by name; with `internal` Kafka's own ones, too."""
        answer = await metadata(self._router, None, self._router.deadline(timeout_ms))
        found = [
            _info(topic) for topic in answer.topics if not topic.error_code and (internal or not topic.is_internal)
        ]
        return {topic.name: topic for topic in sorted(found, key=lambda topic: topic.name)}

    async def describe(self, *names: str, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Returns topics by name, with partitions, leaders and replicas.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or the user may not describe it.
        """

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, TopicInfo | Failure]:
            answer = await metadata(self._router, some, deadline)
            return {
                topic.name or "": topic_error(topic) if topic.error_code else _info(topic) for topic in answer.topics
            }

        deadline = self._router.deadline(timeout_ms)
        found: Outcomes[str, TopicInfo] = await self._router.ask_nodes(names, any_node, ask, deadline)
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
            topics: names, or `NewTopic`s.
            partitions, replication_factor, configs: of topics that are given by name.
            validate_only: only checks whether they could be created.
            timeout_ms: as everywhere.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR, …, with the broker's reason.
        """
        wanted = [
            topic if isinstance(topic, NewTopic) else NewTopic(topic, partitions, replication_factor, configs or {})
            for topic in topics
        ]
        by_name = {topic.name: topic for topic in wanted}

        async def ask(node: Node, names: Sequence[str]) -> Mapping[str, CreatedTopic | Failure]:
            request = CreateTopicsRequest(
                topics=[_new_topic(by_name[name]) for name in names],
                timeout_ms=node.timeout_ms,
                validate_only=validate_only,
            )
            answer = await node.ask(request, CreateTopicsResponse)
            return {
                each.name: kafka_error(each.error_code, each.error_message) if each.error_code else _created(each)
                for each in answer.topics
            }

        deadline = self._router.deadline(timeout_ms)
        return (await self._router.ask_nodes(by_name, controller, ask, deadline)).checked()

    async def delete(self, *topics: str | UUID, timeout_ms: int | None = None) -> None:
        """Deletes topics, by name or id."""

        async def ask(node: Node, some: Sequence[str | UUID]) -> Mapping[str | UUID, Failure | None]:
            names = [topic for topic in some if isinstance(topic, str)]
            if node.version(DeleteTopicsRequest) >= _IDS:
                request = DeleteTopicsRequest(
                    topics=[
                        DeleteTopicsRequest.Topic(name=topic)
                        if isinstance(topic, str)
                        else DeleteTopicsRequest.Topic(name=None, topic_id=topic)
                        for topic in some
                    ],
                    timeout_ms=node.timeout_ms,
                )
            elif len(names) < len(some):
                raise UnsupportedError(f"{node.broker} deletes topics by name alone")
            else:
                request = DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=node.timeout_ms)
            answer = await node.ask(request, DeleteTopicsResponse)
            outcomes: dict[str | UUID, Failure | None] = {}
            for each in answer.responses:
                key = each.name if each.name in some else each.topic_id
                if key is not None:
                    outcomes[key] = kafka_error(each.error_code, each.error_message) if each.error_code else None
            return outcomes

        deadline = self._router.deadline(timeout_ms)
        (await self._router.ask_nodes(topics, controller, ask, deadline)).checked()

    async def add_partitions(
        self,
        topic: str,
        total: int,
        *,
        replica_assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Adds partitions to a topic.

        Args:
            topic: its name.
            total: the new number of partitions.
            replica_assignments: the brokers of each added partition; None for the controller's choice.
            validate_only: only checks whether it could be done.
            timeout_ms: as everywhere.
        """

        async def ask(node: Node, names: Sequence[str]) -> Mapping[str, Failure | None]:
            assignments = None
            if replica_assignments is not None:
                assignments = [
                    CreatePartitionsRequest.Topic.Assignment(broker_ids=tuple(brokers))
                    for brokers in replica_assignments
                ]
            request = CreatePartitionsRequest(
                topics=[CreatePartitionsRequest.Topic(name=topic, count=total, assignments=assignments)],
                timeout_ms=node.timeout_ms,
                validate_only=validate_only,
            )
            answer = await node.ask(request, CreatePartitionsResponse)
            return {
                each.name: kafka_error(each.error_code, each.error_message) if each.error_code else None
                for each in answer.results
            }

        (await self._router.ask_nodes([topic], controller, ask, self._router.deadline(timeout_ms))).checked()

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes the records of partitions before an offset, -1 for all.

        Returns:
            the first offset of each partition then.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the high watermark; POLICY_VIOLATION for compacted topics.
        """

        async def ask(node: Node, some: Sequence[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
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
                timeout_ms=node.timeout_ms,
            )
            answer = await node.ask(request, DeleteRecordsResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    kafka_error(each.error_code) if each.error_code else each.low_watermark
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        deadline = self._router.deadline(timeout_ms)
        return (await self._router.ask_nodes(before, leaders, ask, deadline)).checked()

    async def partitions(self, topics: Iterable[str], *, timeout_ms: int | None = None) -> tuple[TopicPartition, ...]:
        """Returns all partitions of topics, sorted."""
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
