"""Small batches that expand to very many records: they are checked and searched while others are answered."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from kohort.broker.expansion import AT_ONCE
from kohort.broker.server import Server
from kohort.log import Origin
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, Compression, read_header, write_header
from kohort.protocol.records.compression import compress
from kohort.protocol.records.rows import encode_records
from kohort.protocol.records.varint import varint
from tests.broker.conftest import Run
from tests.broker.raw import RawClient
from tests.produce_requests import produce_request

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
COUNT = 60_000


@cache
def records() -> bytes:
    """They expand to more than is decompressed at once, from a hundredth of it; no two after another are alike."""
    bodies = (
        b"\0\0" + varint(index) + b"\0" + varint(20 + index % 2) + b"x" * (20 + index % 2) + b"\0"
        for index in range(COUNT)
    )
    payload = b"".join(varint(len(body)) + body for body in bodies)
    assert len(payload) > AT_ONCE
    return bytes(compress(Compression.ZSTD, payload))


def bomb(claimed: int = COUNT, *, latest: int = 1_000) -> bytes:
    """A small batch that expands to `COUNT` records."""
    data = bytearray(HEADER_SIZE) + records()
    header = read_header(encode_records([(None, None)], 1_000))._replace(
        batch_length=len(data) - LENGTH_END,
        attributes=Compression.ZSTD,
        last_offset_delta=claimed - 1,
        record_count=claimed,
        max_timestamp=latest,
    )
    write_header(data, header)
    return bytes(data)


def by_time(timestamp: int) -> ListOffsetsRequest:
    partition = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name="t", partitions=[partition])])


async def answers_beside_heartbeats(server: Server, request: Request, version: int) -> list[Any]:
    """The answers to three such requests at a time; heartbeats of another client are answered before the last."""
    clients = [await RawClient.connect(server.port) for _ in range(3)]
    other = await RawClient.connect(server.port)
    pending = [asyncio.ensure_future(client.call(request, version)) for client in clients]
    beats = 0
    while not all(answer.done() for answer in pending):
        assert (await other.call(HEARTBEAT, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        beats += 1
    assert beats > 4  # in one go, it would be three at most
    for client in (*clients, other):
        await client.close()
    return [await answer for answer in pending]


def test_bombs_are_checked_beside_others(with_server: Run) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        for answer in await answers_beside_heartbeats(server, produce_request("t", bomb()), 8):
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert log.log_end_offset == 3 * COUNT

    with_server(test)


def test_bombs_that_lie_are_refused(with_server: Run) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        for claimed in (18_500_000, COUNT + 1, COUNT - 1):
            client = await RawClient.connect(server.port)
            answer = await client.call(produce_request("t", bomb(claimed)), 8)
            (partition,) = answer.responses[0].partition_responses
            assert partition.error_code == ErrorCode.INVALID_RECORD
            assert [error.batch_index for error in partition.record_errors] == [min(claimed - 1, COUNT)]
            await client.close()
        assert log.log_end_offset == 0

    with_server(test)


def test_bombs_of_another_broker_are_searched_beside_others(with_server: Run) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        for _ in range(2):  # that say to have a record as late, and haven't
            log.append(bomb(latest=5_000), now=1_000, origin=Origin.COORDINATOR)
        log.append(encode_records([(b"k", b"v")], 4_000), now=1_000)
        for answer in await answers_beside_heartbeats(server, by_time(2_000), 5):
            (partition,) = answer.topics[0].partitions
            assert (partition.error_code, partition.offset, partition.timestamp) == (0, 2 * COUNT, 4_000)

    with_server(test)
