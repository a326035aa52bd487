"""Heartbeats of a streams or a consumer group that is settled, from a process of its own and on a core of its own:
prints what it measured as JSON.

python -m benchmarks.broker.settled KIND HOST PORT CORE PID MEMBERS SECONDS DEPTH...
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import sys
import time
from dataclasses import dataclass

from benchmarks.broker.answers import FEWEST, arrived
from benchmarks.broker.members import await_coordinator, check
from benchmarks.broker.modern_members import KINDS, ModernMember
from benchmarks.broker.process import cpu_seconds
from benchmarks.broker.wire import Connection
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CONNECTIONS = 100
BEAT = 0.25
"""Seconds between the heartbeats of a member that isn't settled yet."""
PATIENCE = 120.0
"""Seconds for all members to settle."""


@dataclass
class HeartbeatLoad:
    """A connection, and the heartbeats of its members over and over.

    Attributes:
        requests, answers: those of all its members, an even number of times over, so that many can be sent at once.
        request_size, answer_size: of each; they are all alike.
    """

    connection: socket.socket
    requests: bytes
    answers: bytes
    request_size: int
    answer_size: int
    sent: int = 0
    received: int = 0

    def send(self, count: int) -> None:
        """Send the next heartbeats."""
        period = len(self.requests) // 2
        while count:
            start = self.sent % period
            batch = min(count, period // self.request_size)
            size = batch * self.request_size
            self.connection.send(self.requests[start : start + size])
            self.sent += size
            count -= batch

    def receive(self) -> int:
        """Take in what came; the number of answers that are whole now."""
        data = self.connection.recv(1 << 16)
        if not data:
            raise RuntimeError("the server closed a connection")
        period = len(self.answers) // 2
        before = self.received // self.answer_size
        position = 0
        while position < len(data):
            start = self.received % period
            piece = data[position : position + period]
            if not self.answers.startswith(piece, start):
                raise RuntimeError(f"not the answer to a heartbeat with which all is well: {piece[:100]!r}")
            self.received += len(piece)
            position += len(piece)
        return self.received // self.answer_size - before


def measure(loads: list[HeartbeatLoad], pid: int, depth: int, seconds: float) -> dict[str, float]:
    """Heartbeats answered in a second with `depth` of them under way on each connection, and how much of a core this
    took here, and in the server with that process id.
    """
    with select.epoll() as poll:
        by_descriptor = {load.connection.fileno(): load for load in loads}
        for load in loads:
            poll.register(load.connection, select.EPOLLIN)
            load.send(depth)
        count = 0
        served, busy, started = cpu_seconds(pid), time.process_time(), time.perf_counter()
        deadline = started + seconds
        while (now := time.perf_counter()) < deadline or count < FEWEST:
            for descriptor, _ in arrived(poll):
                load = by_descriptor[descriptor]
                whole = load.receive()
                if whole:
                    count += whole
                    load.send(whole)
        taken = now - started
        busy, served = time.process_time() - busy, cpu_seconds(pid) - served
        for load in loads:
            while load.received // load.answer_size < load.sent // load.request_size:
                arrived(poll)
                load.connection.setblocking(True)
                load.receive()
                load.connection.setblocking(False)
    return {"rate": count / taken, "generator": busy / taken, "server": served / taken}


async def joined(kind: str, host: str, port: int, number: int) -> list[tuple[bytes, bytes]]:
    """Heartbeats of members that report nothing new and get nothing new, each with its answer."""
    connections = [await Connection.open(host, port) for _ in range(CONNECTIONS)]
    group = topic = f"{kind}-{os.getpid()}"
    await await_coordinator(connections[0], group)
    created = await connections[0].call(
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.Topic(name=topic, num_partitions=number, replication_factor=1)],
            timeout_ms=60_000,
        ), 7, CreateTopicsResponse,
    )  # fmt: skip
    check(created.topics[0].error_code, "creating a topic")
    members = [KINDS[kind](connections[index % CONNECTIONS], group, topic) for index in range(number)]

    async def beat(connected: list[ModernMember]) -> None:
        for member in connected:
            await member.beat()

    async with asyncio.timeout(PATIENCE):
        while not all(member.settled for member in members) or len({member.epoch for member in members}) > 1:
            await asyncio.gather(*(beat(members[first::CONNECTIONS]) for first in range(CONNECTIONS)))
            await asyncio.sleep(BEAT)
    exchanges = []
    for member in members:
        request = member.at_rest()
        member.connection.writer.write(request)
        head = await member.connection.reader.readexactly(4)
        answer = await member.connection.reader.readexactly(int.from_bytes(head, "big"))
        member.check_at_rest(answer)
        exchanges.append((request, head + answer))
    return exchanges


def main() -> None:
    kind, host, port, core, pid, members, seconds, *depths = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    exchanges = asyncio.run(joined(kind, host, int(port), int(members)))
    request_size, answer_size = len(exchanges[0][0]), len(exchanges[0][1])
    if {(len(request), len(answer)) for request, answer in exchanges} != {(request_size, answer_size)}:
        raise RuntimeError("members' heartbeats differ in size")
    loads = []
    for first in range(CONNECTIONS):
        connected = socket.create_connection((host, int(port)))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setblocking(False)
        requests, answers = zip(*exchanges[first::CONNECTIONS], strict=True)
        times = 2 * max(1, max(map(int, depths)) // len(requests))
        loads.append(
            HeartbeatLoad(connected, b"".join(requests) * times, b"".join(answers) * times, request_size, answer_size)
        )
    found = {depth: measure(loads, int(pid), int(depth), float(seconds)) for depth in depths}
    print(json.dumps({"request": request_size, "answer": answer_size, "found": found}))


if __name__ == "__main__":
    main()
