"""Connections that hold more than queued.max.request.bytes aren't read, and one of them always goes on."""

from __future__ import annotations

import asyncio
import struct
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker import request_memory
from kohort.broker.request_memory import FREE_OF_CHARGE, RequestMemory
from kohort.broker.server import Server
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from tests.broker.conftest import Run
from tests.broker.raw import RawClient, frame
from tests.broker.test_large_requests import GROUPS
from tests.waiting import until

MB = 1024 * 1024
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@dataclass(eq=False)
class Client:
    """A connection that is read, or waits for memory."""

    peer: str = "client"
    last_active: float = field(default_factory=time.monotonic)
    busy: bool = False
    reads: bool = True
    closed: bool = False

    def go_on_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        self.closed = True


def in_a_loop(memory: RequestMemory, client: Client, size: int) -> None:
    client.reads = memory.hold(client, size)


def test_who_comes_when_it_is_full_waits_until_there_is_room() -> None:
    async def main() -> None:
        memory = RequestMemory(10 * MB)
        first, second, third = Client(), Client(), Client()
        assert memory.hold(first, 8 * MB)
        assert not memory.hold(second, 4 * MB)
        assert not memory.hold(third, 1 * MB)
        second.reads = third.reads = False
        assert memory.hold(Client(), FREE_OF_CHARGE)  # small requests always have room
        memory.hold(first, 0)
        assert second.reads
        assert third.reads
        memory.close()

    asyncio.run(main())


def test_one_goes_on_when_all_wait() -> None:
    async def main() -> None:
        memory = RequestMemory(1 * MB)
        clients = [Client() for _ in range(3)]
        reads = [memory.hold(client, 2 * MB) for client in clients]
        assert reads == [True, False, False]
        memory.hold(clients[0], 0)
        memory.close()

    asyncio.run(main())


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=60))
def test_nobody_is_forgotten(changes: list[tuple[int, int]]) -> None:
    async def main() -> None:
        memory = RequestMemory(6 * MB)
        clients = [Client() for _ in range(5)]
        held = dict.fromkeys(range(5), 0)
        for number, size in changes:
            client = clients[number]
            if size * MB > held[number] and not client.reads:
                continue  # it isn't read
            held[number] = size * MB
            client.reads = memory.hold(client, size * MB)
            assert memory.used == sum(held.values())
            holders = [each for each, bytes_held in zip(clients, held.values(), strict=True) if bytes_held]
            assert not holders or any(each.reads for each in holders)
            assert memory.used > 6 * MB or all(each.reads for each in clients)
        memory.close()

    asyncio.run(main())


def test_without_a_limit_nobody_waits() -> None:
    memory = RequestMemory(-1)
    assert all(memory.hold(Client(), 100 * MB) for _ in range(20))


def test_large_requests_are_answered_one_after_the_other_in_little_memory(with_server: Run) -> None:
    async def test(server: Server) -> None:
        clients = [await RawClient.connect(server.port) for _ in range(6)]
        for client in clients:
            client.writer.write(frame(GROUPS, 5))
        for client in clients:
            assert len((await client.receive(15, 5))[1].groups) == 40_000
            await client.close()
        await until(lambda: server.memory.used == 0)

    with_server(test, "queued.max.request.bytes=200000")


def test_who_leaves_a_request_unfinished_makes_room(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_memory, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(request_memory, "CHECK_SECONDS", 0.02)

    async def test(server: Server) -> None:
        stalled, other = await RawClient.connect(server.port), await RawClient.connect(server.port)
        stalled.writer.write(struct.pack(">i", 50 * MB) + bytes(1 * MB))
        await until(lambda: server.memory.used >= 1 * MB)
        other.writer.write(frame(GROUPS, 5))
        assert len((await other.receive(15, 5))[1].groups) == 40_000
        assert await stalled.closed()
        await other.call(HEARTBEAT, 4)
        for client in (stalled, other):
            await client.close()

    with_server(test, "queued.max.request.bytes=200000")
