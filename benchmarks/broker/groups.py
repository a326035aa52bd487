"""Group traffic, in a process of its own and on a core of its own: prints what it measured as a line of JSON.

python -m benchmarks.broker.groups heartbeats HOST PORT CORE PID DEPTH SECONDS
python -m benchmarks.broker.groups joins HOST PORT CORE MEMBERS
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import sys
import time
from collections import Counter

from benchmarks.broker.answers import FEWEST, arrived
from benchmarks.broker.members import HEARTBEAT_VERSION, Member, await_coordinator
from benchmarks.broker.process import cpu_seconds
from benchmarks.broker.wire import Connection, frame
from kohort.protocol.messages.headers import ResponseHeader
from kohort.protocol.messages.heartbeat import HeartbeatResponse

CONNECTIONS = 100
BEAT = 0.05
"""Seconds between the heartbeats of a member that waits for its group to become stable."""


def heartbeats(host: str, port: int, pid: int, depth: int, seconds: float) -> dict[str, float]:
    """Heartbeats answered in a second over 100 connections, each with `depth` of them under way; each is a member of a
    group of its own. Everything is encoded beforehand, and responses are told by their bytes: all must be alike. And
    how much of a core this took here, and in the server with that process id.
    """
    requests = asyncio.run(_joined(host, port))
    header = ResponseHeader(correlation_id=0).encode(1)
    body = header + HeartbeatResponse().encode(HEARTBEAT_VERSION)
    answer = len(body).to_bytes(4, "big") + body
    size = len(answer)
    answers = answer * (depth + 1)
    sockets: dict[int, tuple[socket.socket, bytes, int]] = {}
    unread: dict[int, int] = {}
    with select.epoll() as poll:
        for request in requests:
            connected = socket.create_connection((host, port))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setblocking(False)
            sockets[connected.fileno()] = connected, request * depth, len(request)
            unread[connected.fileno()] = 0
            poll.register(connected, select.EPOLLIN)
        for connected, block, _ in sockets.values():
            connected.send(block)
        count = 0
        served, busy, started = cpu_seconds(pid), time.process_time(), time.perf_counter()
        deadline = started + seconds
        while (now := time.perf_counter()) < deadline or count < FEWEST:
            for descriptor, _ in arrived(poll):
                connected, block, length = sockets[descriptor]
                data = connected.recv(1 << 16)
                if not data:
                    raise RuntimeError("the server closed a connection")
                # What came continues the answer that an earlier read may have cut.
                cut = unread[descriptor]
                if not answers.startswith(data, cut):
                    raise RuntimeError(f"not the answer to a heartbeat that is well: {data[:size]!r}")
                whole, unread[descriptor] = divmod(cut + len(data), size)
                count += whole
                if whole:
                    connected.send(block[: whole * length])
        taken = now - started
        busy, served = time.process_time() - busy, cpu_seconds(pid) - served
        return {"rate": count / taken, "generator": busy / taken, "server": served / taken}


async def _joined(host: str, port: int) -> list[bytes]:
    """The heartbeat requests of members that have joined, one a group."""
    connections = [await Connection.open(host, port) for _ in range(CONNECTIONS)]
    run = f"{os.getpid()}"
    members = [Member(connection, f"alone-{run}-{n}") for n, connection in enumerate(connections)]
    await await_coordinator(connections[0], members[0].group)
    await asyncio.gather(*(member.join() for member in members))
    return [frame(member.heartbeat(), HEARTBEAT_VERSION) for member in members]


async def joins(host: str, port: int, number: int) -> dict[str, float]:
    """Seconds from the first of so many joins, all sent at once, until all members are in one generation."""
    connections = [await Connection.open(host, port) for _ in range(number)]
    group = f"together-{os.getpid()}"
    await await_coordinator(connections[0], group)
    # The group's partition is loaded, and the path is warm, before the clock runs.
    await Member(connections[0], group + "-first").join()
    settled: Counter[int] = Counter()
    stable = asyncio.Event()

    async def live(member: Member) -> None:
        while True:
            await member.join()
            settled[member.generation] += 1
            if settled[member.generation] == number:
                stable.set()
            await asyncio.sleep(BEAT)
            while await member.stable():
                await asyncio.sleep(BEAT)

    started = time.perf_counter()
    async with asyncio.timeout(120):
        tasks = [asyncio.create_task(live(Member(connection, group))) for connection in connections]
        waiting = asyncio.create_task(stable.wait())
        done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        seconds = time.perf_counter() - started
        for task in [*tasks, waiting]:
            task.cancel()
        for task in done:
            task.result()
    return {"seconds": seconds, "generations": len(settled)}


def main() -> None:
    what, host, port, core, *numbers = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    if what == "heartbeats":
        found = heartbeats(host, int(port), int(numbers[0]), int(numbers[1]), float(numbers[2]))
    else:
        found = asyncio.run(joins(host, int(port), int(numbers[0])))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
