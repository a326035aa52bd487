"""Transactions and their producers, as an admin sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.client.administration.finding import coordinators, everywhere, leaders
from kohort.client.administration.partitions import by_topic
from kohort.client.administration.routing import Failure, Line, Routes
from kohort.client.errors import UnsupportedError, kafka_error, raise_for
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.types import TopicPartition
from kohort.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

__all__ = ["ProducerState", "TransactionDescription", "TransactionListing", "Transactions"]

_DURATION, _PATTERN = 1, 2
"""The first versions of ListTransactions that filter by how long and by a pattern."""

_BY_COORDINATOR: Final = coordinators(CoordinatorKind.TRANSACTION)


class TransactionListing(NamedTuple):
    """A transactional id: its producer, its state (Ongoing, CompleteCommit, …), and the broker that coordinates it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """What a coordinator knows of a transactional id.

    Attributes:
        transactional_id, state: as in `TransactionListing`.
        coordinator: node id of the broker that coordinates it.
        producer_id, producer_epoch: who writes; lower epochs are fenced.
        timeout_ms: how long a transaction may be open.
        start_ms: when the open one began, in ms since 1970; None if none is open.
        partitions: what it writes to; while it ends, those that still lack a marker.
    """

    transactional_id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


class ProducerState(NamedTuple):
    """What a partition's leader remembers of a producer; -1 for what there is not.

    Attributes:
        producer_id, producer_epoch: who.
        last_sequence, last_timestamp: of its newest record here.
        coordinator_epoch: of the coordinator that wrote its last marker.
        transaction_start: the first offset of its open transaction here.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


class Transactions:
    """What an admin does with transactions: `Admin.transactions`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers, in order.

        Args:
            states, producer_ids: only these; none for all.
            running_longer_than_ms: only transactions that have been open for longer.
            pattern: only ids that match this regular expression (RE2).
            timeout_ms: as everywhere.

        Raises:
            UnsupportedError: a broker is too old to filter so.
        """
        deadline = self._routes.deadline(timeout_ms)
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=-1 if running_longer_than_ms is None else running_longer_than_ms,
            transactional_id_pattern=pattern,
        )
        needed = _PATTERN if pattern is not None else _DURATION if running_longer_than_ms is not None else 0

        async def ask(line: Line, nodes: Sequence[int]) -> Mapping[int, list[TransactionListing] | Failure]:
            if line.version(ListTransactionsRequest) < needed:
                raise UnsupportedError(f"{line.broker} is too old to list transactions by duration or by pattern")
            answer = await line.ask(request, ListTransactionsResponse)
            raise_for(answer.error_code)
            found = [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, nodes[0])
                for each in answer.transaction_states
            ]
            return {nodes[0]: found}

        listed = await everywhere(self._routes, ask, deadline)
        return sorted(each for found in listed.values() for each in found)

    async def describe(
        self, *transactional_ids: str, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """What the coordinators know of transactional ids.

        Raises:
            KafkaError: TRANSACTIONAL_ID_NOT_FOUND, …
        """

        async def ask(line: Line, some: Sequence[str]) -> Mapping[str, TransactionDescription | Failure]:
            request = DescribeTransactionsRequest(transactional_ids=tuple(some))
            answer = await line.ask(request, DescribeTransactionsResponse)
            return {
                each.transactional_id: (
                    kafka_error(each.error_code) if each.error_code else _description(each, line.broker.node_id)
                )
                for each in answer.transaction_states
            }

        deadline = self._routes.deadline(timeout_ms)
        return (await self._routes.spread(transactional_ids, _BY_COORDINATOR, ask, deadline)).checked()

    async def producers(
        self, *partitions: TopicPartition, timeout_ms: int | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """The producers that the leaders of partitions remember: what hangs in a partition, and whose it is."""

        async def ask(
            line: Line, some: Sequence[TopicPartition]
        ) -> Mapping[TopicPartition, tuple[ProducerState, ...] | Failure]:
            kind = DescribeProducersRequest.Topic
            topics = [kind(name=name, partition_indexes=tuple(numbers)) for name, numbers in by_topic(some).items()]
            answer = await line.ask(DescribeProducersRequest(topics=topics), DescribeProducersResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    kafka_error(each.error_code, each.error_message)
                    if each.error_code
                    else tuple(map(_producer, each.active_producers))
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        deadline = self._routes.deadline(timeout_ms)
        return (await self._routes.spread(partitions, leaders, ask, deadline)).checked()

    async def abort(self, partition: TopicPartition, producer: ProducerState, *, timeout_ms: int | None = None) -> None:
        """End a transaction that hangs in a partition: one that its coordinator knows nothing of (KIP-664).

        Args:
            partition: where it hangs.
            producer: whose it is, as `producers` gives it.
            timeout_ms: as everywhere.

        Raises:
            ValueError: the producer has no open transaction there.
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: the producer has gone on meanwhile.
        """
        if producer.transaction_start < 0:
            raise ValueError(f"{partition}: producer {producer.producer_id} has no open transaction")

        async def ask(line: Line, some: Sequence[TopicPartition]) -> Mapping[TopicPartition, Failure | None]:
            kind = WriteTxnMarkersRequest.Marker
            marker = kind(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                topics=[kind.Topic(name=partition.topic, partition_indexes=(partition.partition,))],
                coordinator_epoch=max(producer.coordinator_epoch, 0),
            )
            answer = await line.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
            return {
                TopicPartition(topic.name, each.partition_index): kafka_error(each.error_code)
                if each.error_code
                else None
                for one in answer.markers
                for topic in one.topics
                for each in topic.partitions
            }

        deadline = self._routes.deadline(timeout_ms)
        (await self._routes.spread([partition], leaders, ask, deadline)).checked()

    async def fence(self, *transactional_ids: str, timeout_ms: int | None = None) -> None:
        """Fence the producers of transactional ids: what they have open is aborted, and they can't go on (KIP-588)."""

        async def ask(line: Line, some: Sequence[str]) -> Mapping[str, Failure | None]:
            outcomes: dict[str, Failure | None] = {}
            for each in some:
                request = InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=line.timeout_ms)
                answer = await line.ask(request, InitProducerIdResponse)
                outcomes[each] = kafka_error(answer.error_code) if answer.error_code else None
            return outcomes

        deadline = self._routes.deadline(timeout_ms)
        (await self._routes.spread(transactional_ids, _BY_COORDINATOR, ask, deadline)).checked()


def _description(state: DescribeTransactionsResponse.TransactionState, coordinator: int) -> TransactionDescription:
    return TransactionDescription(
        state.transactional_id,
        state.transaction_state,
        coordinator,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        tuple(sorted(TopicPartition(topic.topic, number) for topic in state.topics for number in topic.partitions)),
    )


def _producer(state: DescribeProducersResponse.Topic.Partition.ActiveProducer) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        state.current_txn_start_offset,
    )
