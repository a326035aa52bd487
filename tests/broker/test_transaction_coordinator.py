"""Transactions of a server that syncs to the disk before it answers."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kohort.broker.server import Server
from kohort.log import Log
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kohort.protocol.messages.end_txn import EndTxnRequest
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.records.rows import encode_records
from tests.broker.conftest import Run
from tests.broker.handlers.served import with_bytes
from tests.broker.raw import RawClient, frame
from tests.produce_requests import produce_request


async def begin(server: Server, client: RawClient) -> InitProducerIdResponse:
    """A topic "t", and a producer for it."""
    server.broker.topics.create("t", 1)
    made = await client.call(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 5)
    assert isinstance(made, InitProducerIdResponse)
    return made


def produce_in_transaction(producer: InitProducerIdResponse, *, sequence: int = 0, acks: int = -1) -> ProduceRequest:
    batch = encode_records(
        [(b"k", b"v")], 1_000,
        producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, transactional=True,
    )  # fmt: skip
    return produce_request("t", with_bytes(batch, 53, sequence.to_bytes(4, "big")), acks=acks, transactional_id="x")


async def state(client: RawClient) -> str:
    response = await client.call(DescribeTransactionsRequest(transactional_ids=("x",)))
    return str(response.transaction_states[0].transaction_state)


def test_a_transaction_is_over_when_its_markers_are_on_the_disk(
    with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        producer = await begin(server, client)
        response = await client.call(produce_in_transaction(producer), 12)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE

        data, flush = server.broker.topics.get("t"), server.broker.flusher.flush
        disk, reached = asyncio.Event(), asyncio.Event()

        async def slow(log: Log) -> None:
            assert data is not None
            if log is data.partitions[0].log:
                reached.set()
                await disk.wait()
            await flush(log)

        monkeypatch.setattr(server.broker.flusher, "flush", slow)
        ended = EndTxnRequest(
            transactional_id="x",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=True,
        )
        assert (await client.call(ended, 5)).error_code == ErrorCode.NONE
        await asyncio.wait_for(reached.wait(), 10)
        assert await state(client) == "PrepareCommit"
        disk.set()
        async with asyncio.timeout(10):
            while await state(client) != "CompleteCommit":
                await asyncio.sleep(0)
        await client.close()

    with_server(test, durable=True)


def test_records_without_acks_that_are_refused_late_close_their_own_connection(
    with_server: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(server: Server) -> None:
        client, other = await RawClient.connect(server.port), await RawClient.connect(server.port)
        producer = await begin(server, client)
        client.writer.write(frame(produce_in_transaction(producer, sequence=5, acks=0), 12))
        async with asyncio.timeout(10):
            while await state(other) != "Ongoing":
                await asyncio.sleep(0)
        assert await client.closed()
        assert (await other.call(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        for each in (client, other):
            await each.close()

    with_server(test, durable=True)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
