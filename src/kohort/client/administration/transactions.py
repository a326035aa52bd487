"""Transactions and their producers: list, describe, abort, fence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.client.administration.node_lookup import ask_all_brokers, coordinators, leaders
from kohort.client.administration.request_router import Failure, Node, RequestRouter
from kohort.client.errors import UnsupportedError, kafka_error, raise_for
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.types import TopicPartition, by_topic
from kohort.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_DURATION, _PATTERN = 1, 2
"""The first versions of ListTransactions that filter by duration and by pattern."""

_BY_COORDINATOR: Final = coordinators(CoordinatorKind.TRANSACTION)


class TransactionListing(NamedTuple):
    """A transactional id: its producer, its state (Ongoing, CompleteCommit, …), and its coordinator's node id."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id, as its coordinator knows it.

    Attributes:
        transactional_id, state: as in `TransactionListing`.
        coordinator: node id of its coordinator.
        producer_id, producer_epoch: of its producer; lower epochs are fenced.
        timeout_ms: the transaction timeout.
        start_ms: when the open transaction began, in ms since 1970; None if none is open.
        partitions: of the transaction; while it ends, those that still lack a marker.
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
    """A producer's state at a partition's leader; -1 for none.

    Attributes:
        producer_id, producer_epoch: of the producer.
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
    """Transactions: `Admin.transactions`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def list(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """Returns the transactional ids of all brokers, sorted.

        Args:
            states, producer_ids: only these; none for all.
            running_longer_than_ms: only transactions that have been open for longer.
            pattern: only ids that match this regular expression (RE2).
            timeout_ms: as everywhere.

        Raises:
            UnsupportedError: a broker is too old to filter so.
        """
        deadline = self._router.deadline(timeout_ms)
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=-1 if running_longer_than_ms is None else running_longer_than_ms,
            transactional_id_pattern=pattern,
        )
        needed = _PATTERN if pattern is not None else _DURATION if running_longer_than_ms is not None else 0

        async def ask(node: Node, nodes: Sequence[int]) -> Mapping[int, list[TransactionListing] | Failure]:
            if node.version(ListTransactionsRequest) < needed:
                raise UnsupportedError(f"{node.broker} is too old to list transactions by duration or by pattern")
            answer = await node.ask(request, ListTransactionsResponse)
            raise_for(answer.error_code)
            found = [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, nodes[0])
                for each in answer.transaction_states
            ]
            return {nodes[0]: found}

        listed = await ask_all_brokers(self._router, ask, deadline)
        return sorted(each for found in listed.values() for each in found)

    async def describe(
        self, *transactional_ids: str, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """Describes transactional ids.

        Raises:
            KafkaError: TRANSACTIONAL_ID_NOT_FOUND, …
        """

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, TransactionDescription | Failure]:
            request = DescribeTransactionsRequest(transactional_ids=tuple(some))
            answer = await node.ask(request, DescribeTransactionsResponse)
            return {
                each.transactional_id: (
                    kafka_error(each.error_code) if each.error_code else _description(each, node.broker.node_id)
                )
                for each in answer.transaction_states
            }

        deadline = self._router.deadline(timeout_ms)
        return (await self._router.ask_nodes(transactional_ids, _BY_COORDINATOR, ask, deadline)).checked()

    async def producers(
        self, *partitions: TopicPartition, timeout_ms: int | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Returns the producers that partitions' leaders know, with hanging transactions among them."""

        async def ask(
            node: Node, some: Sequence[TopicPartition]
        ) -> Mapping[TopicPartition, tuple[ProducerState, ...] | Failure]:
            kind = DescribeProducersRequest.Topic
            topics = [kind(name=name, partition_indexes=numbers) for name, numbers in by_topic(some).items()]
            answer = await node.ask(DescribeProducersRequest(topics=topics), DescribeProducersResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    kafka_error(each.error_code, each.error_message)
                    if each.error_code
                    else tuple(map(_producer, each.active_producers))
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        deadline = self._router.deadline(timeout_ms)
        return (await self._router.ask_nodes(partitions, leaders, ask, deadline)).checked()

    async def abort(self, partition: TopicPartition, producer: ProducerState, *, timeout_ms: int | None = None) -> None:
        """Aborts a hanging transaction of a partition, which its coordinator doesn't know (KIP-664).

        Args:
            partition: with the transaction.
            producer: of the transaction, from `producers`.
            timeout_ms: as everywhere.

        Raises:
            ValueError: the producer has no open transaction there.
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: the producer has gone on meanwhile.
        """
        if producer.transaction_start < 0:
            raise ValueError(f"{partition}: producer {producer.producer_id} has no open transaction")

        async def ask(node: Node, some: Sequence[TopicPartition]) -> Mapping[TopicPartition, Failure | None]:
            kind = WriteTxnMarkersRequest.Marker
            marker = kind(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                topics=[kind.Topic(name=partition.topic, partition_indexes=(partition.partition,))],
                coordinator_epoch=max(producer.coordinator_epoch, 0),
            )
            answer = await node.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
            return {
                TopicPartition(topic.name, each.partition_index): kafka_error(each.error_code)
                if each.error_code
                else None
                for one in answer.markers
                for topic in one.topics
                for each in topic.partitions
            }

        deadline = self._router.deadline(timeout_ms)
        (await self._router.ask_nodes([partition], leaders, ask, deadline)).checked()

    async def fence(self, *transactional_ids: str, timeout_ms: int | None = None) -> None:
        """Fences the producers of transactional ids: their open transactions are aborted, and they can't go on."""

        async def ask(node: Node, some: Sequence[str]) -> Mapping[str, Failure | None]:
            outcomes: dict[str, Failure | None] = {}
            for each in some:
                request = InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=node.timeout_ms)
                answer = await node.ask(request, InitProducerIdResponse)
                outcomes[each] = kafka_error(answer.error_code) if answer.error_code else None
            return outcomes

        deadline = self._router.deadline(timeout_ms)
        (await self._router.ask_nodes(transactional_ids, _BY_COORDINATOR, ask, deadline)).checked()


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
