"""A server with one record, and requests to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kohort.broker.server import Server
from kohort.protocol.crc32c import crc32c
from kohort.protocol.message import Request
from kohort.protocol.records.rows import encode_records
from tests.broker.raw import RawClient

Run = Callable[..., None]


def answer_of(with_server: Run, request: Request, version: int, *settings: str, **options: Any) -> Any:
    """The response of a server that has a topic "t" with a record."""
    answers = []

    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        log.append(encode_records([(b"k", b"v")], 1_000), now=1_000)
        client = await RawClient.connect(server.port)
        answers.append(await client.call(request, version))
        await client.close()

    with_server(test, *settings, **options)
    return answers[0]


def transactional(sequence: int = 0) -> bytearray:
    batch = encode_records([(b"k", b"v")], 1_000, producer_id=7, producer_epoch=0, transactional=True)
    return with_bytes(batch, 53, sequence.to_bytes(4, "big"))


def with_bytes(batch: bytearray, place: int, value: bytes) -> bytearray:
    batch[place : place + len(value)] = value
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return batch
