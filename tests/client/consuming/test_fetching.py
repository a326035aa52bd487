"""Fetching from brokers that do what a script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from kohort.client.consumer import Consumer
from kohort.client.errors import NoOffsetError, RecordError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kohort.protocol.records.rows import encode_rows
from tests.client.consuming.support import take, values
from tests.client.support.scripted_broker import Asked, ScriptedBroker
from tests.waiting import run, until

T0 = TopicPartition("t", 0)
TOPIC = UUID(int=7)
Read = FetchResponse.TopicResponse.Partition


class Log:
    """A partition's log, which brokers serve that a script lets lead it.

    Attributes:
        batches: by base offset; each has one record, whose value is its offset.
        faults: what to answer next instead.
        serving: the brokers that serve it; the others say that they don't.
        asked: offsets that were fetched, with the broker and the leader epoch that was named.
    """

    def __init__(self, count: int, epoch: int = 0) -> None:
        self.batches = {offset: self.batch(offset, epoch) for offset in range(count)}
        self.faults: list[Callable[[Asked, int], FetchResponse | Read]] = []
        self.serving = {1, 2}
        self.asked: list[tuple[int, int, int]] = []
        self.epoch_end = (0, count)
        self.per_answer = 3
        self._position: dict[int, tuple[int, int]] = {}

    @staticmethod
    def batch(offset: int, epoch: int) -> bytes:
        return bytes(encode_rows([5], [None], [b"%d" % offset], base_offset=offset, leader_epoch=epoch))

    def serve(self, broker: ScriptedBroker) -> None:
        """Have a broker answer for the partition."""

        async def fetch(asked: Asked) -> FetchResponse:
            request = asked.request
            assert isinstance(request, FetchRequest)
            for topic in request.topics:
                for each in topic.partitions:
                    self._position[broker.node_id] = each.fetch_offset, each.current_leader_epoch
            offset, epoch = self._position[broker.node_id]
            self.asked.append((broker.node_id, offset, epoch))
            read: FetchResponse | Read
            if broker.node_id not in self.serving:
                read = partition(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif self.faults:
                read = self.faults.pop(0)(asked, offset)
                if isinstance(read, FetchResponse):
                    return read
            else:
                records = b"".join(self.batches.get(offset + more, b"") for more in range(self.per_answer))
                if not records:
                    await asyncio.sleep(request.max_wait_ms / 1000)
                read = partition(records=records, high_watermark=len(self.batches))
            topic_id = TOPIC if asked.version >= 13 else UUID(int=0)
            return FetchResponse(
                session_id=5 if asked.version >= 7 else 0,
                responses=[FetchResponse.TopicResponse(topic="t", topic_id=topic_id, partitions=[read])],
            )

        def offsets(asked: Asked) -> ListOffsetsResponse:
            found = ListOffsetsResponse.Topic.Partition(partition_index=0, error_code=0, offset=0)
            return ListOffsetsResponse(topics=[ListOffsetsResponse.Topic(name="t", partitions=[found])])

        def epochs(asked: Asked) -> OffsetForLeaderEpochResponse:
            epoch, end = self.epoch_end
            found = OffsetForLeaderEpochResponse.Topic.Partition(
                error_code=0, partition=0, leader_epoch=epoch, end_offset=end
            )
            return OffsetForLeaderEpochResponse(
                topics=[OffsetForLeaderEpochResponse.Topic(topic="t", partitions=[found])]
            )

        broker.script |= {FetchRequest: fetch, ListOffsetsRequest: offsets, OffsetForLeaderEpochRequest: epochs}


def partition(error_code: int = 0, **fields: Any) -> Read:
    return Read(
        **{"partition_index": 0, "error_code": error_code, "high_watermark": -1, "records": b"", **fields}  # type: ignore[arg-type]
    )


def leads(node_id: int, epoch: int, *brokers: ScriptedBroker) -> None:
    """Have all brokers say who leads the partition."""
    led = MetadataResponse.Topic.Partition(
        error_code=0, partition_index=0, leader_id=node_id, leader_epoch=epoch,
        replica_nodes=(1, 2), isr_nodes=(1, 2), offline_replicas=(),
    )  # fmt: skip
    for broker in brokers:
        broker.topics["t"] = MetadataResponse.Topic(error_code=0, name="t", topic_id=TOPIC, partitions=[led])


@asynccontextmanager
async def world(log: Log, **settings: Any) -> AsyncIterator[tuple[Consumer, ScriptedBroker, ScriptedBroker]]:
    """Two brokers, of which the first leads the partition, and a consumer that reads it."""
    settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, **settings}
    async with ScriptedBroker(node_id=1) as first, ScriptedBroker(node_id=2) as second:
        first.others, second.others = [second.broker], [first.broker]
        leads(1, 0, first, second)
        log.serve(first)
        log.serve(second)
        async with Consumer(first.address, **settings) as consumer:
            consumer.assign([T0])
            yield consumer, first, second


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def test_a_lost_connection_loses_nothing_and_repeats_nothing() -> None:
    async def test() -> None:
        log = Log(20)
        async with world(log) as (consumer, first, _):
            seen = values(await take(consumer, 4))
            first.hang_up()
            seen += values(await take(consumer, 7))
            first.hang_up()
            seen += values(await take(consumer, 9))
            assert seen == numbers(20)

    run(test())


@pytest.mark.parametrize(
    "code",
    [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR],
)
def test_a_session_that_ends_is_replaced(code: ErrorCode) -> None:
    async def test() -> None:
        log = Log(9)
        log.faults = [lambda asked, offset: FetchResponse(error_code=code)]
        async with world(log) as (consumer, first, _):
            assert values(await take(consumer, 9)) == numbers(9)
            asked = [each for each in first.requests(FetchRequest) if isinstance(each, FetchRequest)]
            assert [each.session_epoch for each in asked[:4]] == [0, 0, 1, 2]

    run(test())


@pytest.mark.parametrize("hint", [True, False])
def test_a_moved_leader_is_followed(hint: bool) -> None:
    async def test() -> None:
        log = Log(9)

        async with world(log) as (consumer, first, second):

            def moved(asked: Asked, offset: int) -> Read:
                leads(2, 1, first, second)
                log.serving = {2}
                current = Read.CurrentLeader(leader_id=2, leader_epoch=1) if hint else None
                return partition(ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=current)

            seen = values(await take(consumer, 1))
            log.faults = [moved]
            seen += values(await take(consumer, 8))
            assert seen == numbers(9)
            assert log.asked[-1][0] == 2
            assert log.asked[-1][2] == 1
            assert second.requests(OffsetForLeaderEpochRequest)

    run(test())


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_a_truncated_log_is_noticed(policy: str) -> None:
    async def test() -> None:
        log = Log(6)
        async with world(log, auto_offset_reset=policy) as (consumer, first, second):
            consumer.seek(T0, 0)
            assert values(await take(consumer, 6)) == numbers(6)
            # The new leader has only the first four of epoch 0, and others after them.
            log.epoch_end = (0, 4)
            log.batches |= {offset: Log.batch(offset, 1) for offset in range(4, 9)}
            leads(2, 1, first, second)
            log.serving = {2}
            consumer._running().cluster.request_refresh()
            if policy == "earliest":
                assert values(await take(consumer, 5)) == numbers(5, 4)
            else:
                with pytest.raises(NoOffsetError, match=r"t-0 \(offset 6\): the new leader's log lacks"):
                    await take(consumer, 1)

    run(test())


def test_a_replica_nearby_is_read_and_left_when_it_lags() -> None:
    async def test() -> None:
        log = Log(9)
        log.faults = [
            lambda asked, offset: partition(preferred_read_replica=2),
            lambda asked, offset: partition(records=log.batches[0]),
            lambda asked, offset: partition(ErrorCode.OFFSET_OUT_OF_RANGE),
        ]
        async with world(log) as (consumer, _, _):
            assert values(await take(consumer, 9)) == numbers(9)
            assert [(node, offset) for node, offset, _ in log.asked[:4]] == [(1, 0), (2, 0), (2, 1), (1, 1)]

    run(test())


def test_a_replica_that_cannot_be_reached_is_left_to_the_leader() -> None:
    async def test() -> None:
        log = Log(9)
        log.faults = [
            lambda asked, offset: partition(preferred_read_replica=2),
            lambda asked, offset: partition(records=log.batches[0]),
        ]
        async with world(log) as (consumer, _, second):
            assert values(await take(consumer, 1)) == numbers(1)
            await second.stop()  # the others still believe in it
            assert values(await take(consumer, 8)) == numbers(8, 1)

    run(test(), timeout_s=10)


def test_a_leader_that_names_an_unknown_replica_is_not_asked_again_and_again() -> None:
    async def test() -> None:
        log = Log(9)
        log.faults = [lambda asked, offset: partition(preferred_read_replica=7)] * 1_000
        async with world(log) as (consumer, _, _):
            assert await consumer.poll(timeout_ms=300) == []
            assert len(log.asked) < 5
            log.faults.clear()
            assert values(await take(consumer, 9)) == numbers(9)

    run(test())


def test_a_corrupt_batch_is_raised_until_the_user_seeks_past_it() -> None:
    async def test() -> None:
        log = Log(6)
        bad = bytearray(log.batches[2])
        bad[-2] ^= 1
        log.batches[2] = bytes(bad)
        async with world(log) as (consumer, _, _):
            seen = []
            for _ in range(2):
                with pytest.raises(RecordError, match="t-0, offset 2: corrupt data") as caught:
                    async for record in consumer:
                        seen.append(record.value)  # noqa: PERF401
            assert seen == numbers(2)
            assert consumer.position(T0) == 2
            consumer.seek(T0, caught.value.next_offset)
            assert values(await take(consumer, 3)) == numbers(3, 3)

    run(test())


def test_an_error_of_a_partition_is_raised_and_the_partition_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.client.consuming.fetch_collector._RETRY_MS", 10)

    async def test() -> None:
        log = Log(3)
        log.faults = [lambda asked, offset: partition(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
        async with world(log) as (consumer, _, _):
            with pytest.raises(KafkaError, match="t-0") as caught:
                await take(consumer, 1)
            assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert values(await take(consumer, 3)) == numbers(3)

    run(test())


@pytest.mark.parametrize("most", [4, 11, 12, 17])
def test_older_brokers_are_read_too(most: int) -> None:
    async def test() -> None:
        log = Log(6)
        async with ScriptedBroker(versions={FetchRequest: (4, most)}) as broker:
            leads(1, 0, broker)
            log.serve(broker)
            async with Consumer(broker.address, auto_offset_reset="earliest", fetch_max_wait_ms=50) as consumer:
                consumer.assign([T0])
                assert values(await take(consumer, 6)) == numbers(6)

    run(test())


def test_the_next_answer_is_fetched_while_the_user_works_and_no_more_than_allowed() -> None:
    async def test() -> None:
        log = Log(400)
        size = len(log.batches[0])
        async with world(log, max_partition_fetch_bytes=2 * size, queued_max_bytes=10 * size) as (consumer, _, _):
            log.per_answer = 2
            async for record in consumer:
                if record.offset == 0:
                    await until(lambda: len(log.asked) >= 2)
                    await asyncio.sleep(0.1)
                    assert [offset for _, offset, _ in log.asked] == [0, 2]  # one in hands, one queued
                if record.offset == 399:
                    break

    run(test())
