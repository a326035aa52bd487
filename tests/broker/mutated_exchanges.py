"""Exchanges of strangers with broken bytes, which learn nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from kohort.broker.server import Server
from tests.broker.raw import RawClient


def mutated(generator: random.Random, frames: Sequence[bytes]) -> bytes:
    data = bytearray(b"".join(generator.choices(frames, k=generator.randrange(1, 4))))
    for _ in range(generator.randrange(4)):
        data[generator.randrange(len(data))] = generator.randrange(256)
    return bytes(data[: generator.randrange(1, len(data) + 1)])


async def fuzz(server: Server, frames: Sequence[bytes], seed: int, rounds: int) -> None:
    """Sends mutated exchanges; no byte of another API is answered."""
    generator = random.Random(seed)
    for _ in range(rounds):
        client = await RawClient.connect(server.port)
        client.writer.write(mutated(generator, frames))
        client.writer.write_eof()
        answer = await asyncio.wait_for(client.reader.read(), 10)
        assert server.broker.cluster_id.encode() not in answer
        await client.close()
    assert all(connection.session.principal == "User:ANONYMOUS" for connection in server._connections)
