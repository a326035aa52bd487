"""The producer against brokers that misbehave by script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from kohort.client.config import ClientConfig
from kohort.client.errors import (
    CommitFailedError,
    ConnectionLostError,
    FencedError,
    NotDeliveredError,
    RequestTimeoutError,
    TransactionAbortableError,
)
from kohort.client.producer import Producer
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kohort.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kohort.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.produce import ProduceRequest, ProduceResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kohort.protocol.records.batch import check_batch
from tests.waiting import run, until

from ..support.scripted_broker import Asked, HangUpError, ScriptedBroker
from .model_broker import ModelProducer

ID = UUID(int=5)
Codes = Iterator[ErrorCode]


def topic(name: str = "t", leader: int = 1, epoch: int = 1) -> MetadataResponse.Topic:
    part = MetadataResponse.Topic.Partition(
        partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=(1, 2), isr_nodes=(1, 2)
    )
    return MetadataResponse.Topic(name=name, topic_id=ID, partitions=[part])


def produced(
    code: ErrorCode = ErrorCode.NONE, offset: int = 0, leader: tuple[int, int] | None = None
) -> ProduceResponse:
    kind = ProduceResponse.TopicResponse.PartitionResponse
    hint = None if leader is None else kind.CurrentLeader(leader_id=leader[0], leader_epoch=leader[1])
    part = kind(index=0, error_code=code, base_offset=offset, current_leader=hint)
    return ProduceResponse(responses=[ProduceResponse.TopicResponse(name="t", topic_id=ID, partition_responses=[part])])


def broker(**rest: object) -> ScriptedBroker:
    made = ScriptedBroker(
        {
            InitProducerIdRequest: lambda asked: InitProducerIdResponse(producer_id=9, producer_epoch=0),
            ProduceRequest: lambda asked: produced(),
        },
        **rest,  # type: ignore[arg-type]
    )
    made.topics["t"] = topic()
    return made


def producer(*brokers: ScriptedBroker, request_timeout_ms: int = 2000, **settings: object) -> Producer:
    config = ClientConfig(
        bootstrap_servers=[each.address for each in brokers],
        request_timeout_ms=request_timeout_ms,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
    )
    return Producer(config, linger_ms=0, max_block_ms=2000, **settings)  # type: ignore[arg-type]


def sequences(*brokers: ScriptedBroker) -> list[tuple[int, int]]:
    """Epoch and sequence of each batch that came."""
    out = []
    for each in brokers:
        for request in each.requests(ProduceRequest):
            assert isinstance(request, ProduceRequest)
            records = request.topic_data[0].partition_data[0].records
            assert records is not None
            header = check_batch(bytes(records))
            out.append((header.producer_epoch, header.base_sequence))
    return out


def saying(*codes: ErrorCode) -> Callable[[], ErrorCode]:
    """These codes, and success after them."""
    left = iter(codes)
    return lambda: next(left, ErrorCode.NONE)


def test_a_lost_connection_is_made_up_for_with_the_same_sequence() -> None:
    async def body() -> None:
        async with broker() as server:
            hang_ups = iter([True, True])

            def say(asked: Asked) -> ProduceResponse:
                if next(hang_ups, False):
                    raise HangUpError
                return produced()

            server.script[ProduceRequest] = say
            async with producer(server) as client:
                assert (await (await client.send("t", b"v"))).offset == 0
            assert sequences(server) == [(0, 0)] * 3

    run(body())


def test_the_new_leader_that_an_answer_names_is_asked_at_once() -> None:
    async def body() -> None:
        async with broker() as first, broker(node_id=2) as second:
            first.others, second.others = [second.broker], [first.broker]
            first.script[ProduceRequest] = lambda asked: produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, leader=(2, 7))
            async with producer(first) as client:
                await client.send("t", b"v")
                await client.flush(timeout_ms=5000)
            assert len(first.requests(ProduceRequest)) == 1 and len(second.requests(ProduceRequest)) == 1
            assert sequences(first, second) == [(0, 0)] * 2

    run(body())


def test_a_gap_in_the_log_raises_the_epoch() -> None:
    async def body() -> None:
        async with broker() as server:
            say = saying(ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
            server.script[ProduceRequest] = lambda asked: produced(say())
            async with producer(server) as client:
                await (await client.send("t", b"1"))
                await (await client.send("t", b"2"))
            assert sequences(server) == [(0, 0), (0, 1), (1, 0), (2, 0)]

    run(body())


def test_what_is_never_answered_fails_in_time_and_says_why() -> None:
    async def body() -> None:
        async with broker() as server:
            server.script[ProduceRequest] = lambda asked: produced()
            async with producer(server, request_timeout_ms=150, delivery_timeout_ms=400) as client:
                await (await client.send("t", b"u"))  # it is connected: what comes next is sent at once
                server.script[ProduceRequest] = lambda asked: None
                delivery = await client.send("t", b"v")
                with pytest.raises(RequestTimeoutError, match=r"delivery_timeout_ms=400 \(they may be in the log\)"):
                    await delivery
                server.script[ProduceRequest] = lambda asked: produced()
                await (await client.send("t", b"w"))

    run(body())


def test_closing_ends_and_counts_what_is_left() -> None:
    async def body() -> None:
        async with broker() as server:
            server.script[ProduceRequest] = lambda asked: None
            client = producer(server)
            await client.start()
            deliveries = [await client.send("t", b"v") for _ in range(7)]
            with pytest.raises(NotDeliveredError, match=r"7 records weren't delivered \(7 of t\).*closed") as raised:
                await client.close(timeout_ms=100)
            assert raised.value.records == {"t": 7}
            assert all(delivery.done() for delivery in deliveries)
            await client.close()

    run(body())


def test_closing_ends_without_any_broker() -> None:
    async def body() -> None:
        async with broker() as server:
            client = producer(server)
            await client.start()
            await (await client.send("t", b"v"))
        await client.send("t", b"w")
        with pytest.raises(NotDeliveredError):
            await client.close(timeout_ms=100)

    run(body())


def test_an_error_that_is_looked_at_twice_hides_no_other() -> None:
    async def body() -> None:
        async with broker() as server:
            server.script[ProduceRequest] = lambda asked: produced(ErrorCode.INVALID_RECORD)
            async with producer(server) as client:
                first = await client.send("t", b"v")
                await client.send("t", b"w")
                with pytest.raises(KafkaError, match="INVALID_RECORD"):
                    await first
                assert first.exception() is not None
                with pytest.raises(NotDeliveredError, match="1 record"):
                    await client.flush()

    run(body())


def test_failures_that_nobody_looks_at_are_counted_and_take_no_memory() -> None:
    model = ModelProducer()
    for _ in range(5000):
        model.send(2)
        model.completer.drop(ConnectionLostError("no"))
    assert len(model.completer._failed) <= 1000
    lost, error = model.completer.take_losses()
    assert lost == {"t": 10_000} and isinstance(error, ConnectionLostError)
    assert model.completer.take_losses() == ({}, None)


def test_a_broker_that_wont_have_us_is_left_alone_when_there_is_nothing_for_it() -> None:
    model = ModelProducer()
    model.send(2)
    assert model.accumulator.has_active(1)
    model.completer.drop_from(1, ConnectionLostError("no"))
    assert not model.accumulator.has_active(1)


def test_authorization_fails_at_once() -> None:
    async def body() -> None:
        async with broker() as server:
            server.topics["no"] = MetadataResponse.Topic(name="no", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            async with producer(server) as client:
                with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                    await client.send("no", b"v")
                server.script[ProduceRequest] = lambda asked: produced(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                    await (await client.send("t", b"v"))
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            server.script[InitProducerIdRequest] = lambda asked: InitProducerIdResponse(error_code=code)
            with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await producer(server).start()

    run(body())


def transactional(**rest: object) -> ScriptedBroker:
    """A broker with transactions, without transaction.version 2."""
    server = broker(**rest)
    epochs = iter(range(100))
    server.script.update(
        {
            FindCoordinatorRequest: lambda asked: FindCoordinatorResponse(
                coordinators=[
                    FindCoordinatorResponse.Coordinator(key="tx", node_id=1, host=server.host, port=server.port)
                ]
            ),
            InitProducerIdRequest: lambda asked: InitProducerIdResponse(producer_id=9, producer_epoch=next(epochs)),
            AddPartitionsToTxnRequest: lambda asked: added(),
            AddOffsetsToTxnRequest: lambda asked: AddOffsetsToTxnResponse(),
            TxnOffsetCommitRequest: lambda asked: offsets_committed(),
            EndTxnRequest: lambda asked: EndTxnResponse(),
        }
    )
    return server


def added(code: ErrorCode = ErrorCode.NONE) -> AddPartitionsToTxnResponse:
    part = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name="t", results_by_partition=[part])]
    )


def offsets_committed(code: ErrorCode = ErrorCode.NONE) -> TxnOffsetCommitResponse:
    part = TxnOffsetCommitResponse.Topic.Partition(partition_index=0, error_code=code)
    return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponse.Topic(name="t", partitions=[part])])


def versions(server: ScriptedBroker) -> dict[str, int]:
    return {each.request.__message__.api: each.version for each in server.asked}


OFFSETS = {TopicPartition("t", 0): 5}
MEMBER = GroupMetadata("g", 3, "member", "instance")


def test_transactions_as_before_version_2() -> None:
    async def body() -> None:
        async with transactional() as server:
            say = saying(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            server.script[AddPartitionsToTxnRequest] = lambda asked: added(say())
            async with producer(server, transactional_id="tx") as client:
                async with client.transaction():
                    await client.send("t", b"v")
                    await client.send_offsets_to_transaction(OFFSETS, MEMBER)
                async with client.transaction():
                    pass
            used = versions(server)
            assert (used["AddPartitionsToTxn"], used["Produce"]) == (3, 11)
            assert (used["TxnOffsetCommit"], used["EndTxn"]) == (4, 4)
            names = [each.request.__message__.api for each in server.asked]
            assert names.index("AddPartitionsToTxn") < names.index("Produce") < names.index("EndTxn")
            assert names.count("AddPartitionsToTxn") == 3 and names.count("EndTxn") == 1
            (commit,) = server.requests(TxnOffsetCommitRequest)
            assert isinstance(commit, TxnOffsetCommitRequest)
            assert (commit.generation_id_or_member_epoch, commit.member_id, commit.group_instance_id) == (
                3,
                "member",
                "instance",
            )

    run(body())


def test_a_failed_record_fails_the_transaction_and_an_abort_makes_it_good() -> None:
    async def body() -> None:
        async with transactional() as server:
            say = saying(ErrorCode.INVALID_RECORD)
            server.script[ProduceRequest] = lambda asked: produced(say())
            async with producer(server, transactional_id="tx") as client:
                await client.begin_transaction()
                await client.send("t", b"v")
                with pytest.raises(TransactionAbortableError, match=r"must be aborted.*INVALID_RECORD"):
                    await client.commit_transaction()
                with pytest.raises(TransactionAbortableError):
                    await client.send("t", b"w")
                await client.abort_transaction()
                async with client.transaction():
                    await client.send("t", b"x")
            assert sequences(server) == [(0, 0), (1, 0)]
            ends = [each.committed for each in server.requests(EndTxnRequest) if isinstance(each, EndTxnRequest)]
            assert ends == [False, True]

    run(body())


def test_what_an_aborted_transaction_left_in_doubt_costs_an_epoch() -> None:
    async def body() -> None:
        async with transactional() as server:

            def hang_up(asked: Asked) -> ProduceResponse:
                raise HangUpError

            server.script[ProduceRequest] = hang_up
            async with producer(server, transactional_id="tx") as client:
                await client.begin_transaction()
                await client.send("t", b"v")
                await until(lambda: bool(server.requests(ProduceRequest)))
                await client.abort_transaction()
                server.script[ProduceRequest] = lambda asked: produced()
                async with asyncio.timeout(5), client.transaction():
                    await client.send("t", b"w")
            assert sequences(server)[0] == (0, 0)
            assert sequences(server)[-1] == (1, 0)

    run(body())


def test_a_group_that_moved_on_aborts_the_transaction() -> None:
    async def body() -> None:
        async with transactional() as server:
            server.script[TxnOffsetCommitRequest] = lambda asked: offsets_committed(ErrorCode.ILLEGAL_GENERATION)
            async with producer(server, transactional_id="tx") as client:
                with pytest.raises(CommitFailedError, match=r"g: the group has moved on.*ILLEGAL_GENERATION"):
                    async with client.transaction():
                        await client.send_offsets_to_transaction(OFFSETS, MEMBER)
                assert client._manager.state.name == "READY"

    run(body())


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionAbortableError),
        (ErrorCode.PRODUCER_FENCED, FencedError),
        (ErrorCode.INVALID_TXN_STATE, KafkaError),
    ],
)
def test_what_a_commit_may_answer(code: ErrorCode, error: type[Exception]) -> None:
    async def body() -> None:
        async with transactional() as server:
            say = saying(ErrorCode.NOT_COORDINATOR, code)
            server.script[EndTxnRequest] = lambda asked: EndTxnResponse(error_code=say())
            async with producer(server, transactional_id="tx") as client:
                await client.begin_transaction()
                await client.send("t", b"v")
                with pytest.raises(error):
                    await client.commit_transaction()
                if error is TransactionAbortableError:
                    await client.abort_transaction()
                    await client.begin_transaction()

    run(body())


def test_a_commit_that_is_cancelled_can_be_called_again() -> None:
    async def body() -> None:
        async with transactional() as server:
            server.script[EndTxnRequest] = lambda asked: None
            async with producer(server, transactional_id="tx") as client:
                await client.begin_transaction()
                await (await client.send("t", b"v"))
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await client.commit_transaction()
                with pytest.raises(RuntimeError, match="call it again"):
                    await client.abort_transaction()
                server.script[EndTxnRequest] = lambda asked: EndTxnResponse()
                server.hang_up()
                await client.commit_transaction()
                assert client._manager.state.name == "READY"

    run(body())
