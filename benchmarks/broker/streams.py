"""A streams group's heartbeats, in a process of its own and on a core of its own: prints what it measured as JSON.

python -m benchmarks.broker.streams HOST PORT CORE PID MEMBERS SECONDS DEPTH...
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import sys
import time
import uuid
from dataclasses import dataclass

from benchmarks.broker.members import NOT_YET, await_coordinator, check
from benchmarks.broker.process import cpu_seconds
from benchmarks.broker.wire import Connection, frame
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.headers import ResponseHeader
from kohort.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)

CONNECTIONS = 100
BEAT = 0.25
"""Seconds between the heartbeats of a member that isn't stable yet."""
PATIENCE = 120.0
"""Seconds for all members to become stable."""

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse
Subtopology = Request.Topology.Subtopology


class Member:
    """A member of a streams group with one subtopology, whose tasks it runs as they are assigned."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self.connection = connection
        self.group = group
        self.topic = topic
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.endpoint_epoch = -1
        self.tasks: list[TaskIds] = []
        self.stable = False

    async def beat(self) -> None:
        """A heartbeat that says everything: it joins at first, and takes the tasks that it is given."""
        joining = self.epoch == 0
        answer = await self.connection.call(
            Request(
                group_id=self.group, member_id=self.member_id, member_epoch=self.epoch,
                endpoint_information_epoch=self.endpoint_epoch, rebalance_timeout_ms=300_000,
                topology=self.topology() if joining else None, process_id=self.member_id if joining else None,
                active_tasks=self.tasks, standby_tasks=[], warmup_tasks=[],
                client_tags=[] if joining else None,
            ), 0, Response,
        )  # fmt: skip
        if answer.error_code in NOT_YET:
            return
        check(answer.error_code, f"heartbeat ({answer.error_message})")
        assigned = answer.active_tasks
        # A member that gets tasks has to send once more that it has them.
        self.stable = not answer.status and assigned is None and answer.member_epoch == self.epoch
        self.epoch, self.endpoint_epoch = answer.member_epoch, answer.endpoint_information_epoch
        if assigned is not None:
            self.tasks = assigned

    def topology(self) -> Request.Topology:
        """One subtopology without state."""
        return Request.Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=(self.topic,))])

    def heartbeat(self) -> Request:
        """What it says when nothing has changed."""
        return Request(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
        )


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
        while (now := time.perf_counter()) < deadline:
            for descriptor, _ in poll.poll(1.0):
                load = by_descriptor[descriptor]
                whole = load.receive()
                if whole:
                    count += whole
                    load.send(whole)
        taken = now - started
        busy, served = time.process_time() - busy, cpu_seconds(pid) - served
        for load in loads:
            while load.received // load.answer_size < load.sent // load.request_size:
                poll.poll(1.0)
                load.connection.setblocking(True)
                load.receive()
                load.connection.setblocking(False)
    return {"rate": count / taken, "generator": busy / taken, "server": served / taken}


async def joined(host: str, port: int, number: int) -> list[tuple[bytes, bytes]]:
    """Heartbeats of members that report nothing new and get nothing new, each with its answer."""
    connections = [await Connection.open(host, port) for _ in range(CONNECTIONS)]
    group = topic = f"streams-{os.getpid()}"
    await await_coordinator(connections[0], group)
    created = await connections[0].call(
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.Topic(name=topic, num_partitions=number, replication_factor=1)],
            timeout_ms=60_000,
        ), 7, CreateTopicsResponse,
    )  # fmt: skip
    check(created.topics[0].error_code, "creating a topic")
    members = [Member(connections[index % CONNECTIONS], group, topic) for index in range(number)]

    async def beat(connected: list[Member]) -> None:
        for member in connected:
            await member.beat()

    async with asyncio.timeout(PATIENCE):
        while not all(member.stable for member in members) or len({member.epoch for member in members}) > 1:
            await asyncio.gather(*(beat(members[first::CONNECTIONS]) for first in range(CONNECTIONS)))
            await asyncio.sleep(BEAT)
    exchanges = []
    for member in members:
        request = frame(member.heartbeat(), 0)
        member.connection.writer.write(request)
        head = await member.connection.reader.readexactly(4)
        answer = await member.connection.reader.readexactly(int.from_bytes(head, "big"))
        _, start = ResponseHeader.read(answer, 0, 1)
        response, _ = Response.read(answer, start, 0)
        check(response.error_code, "heartbeat")
        if response.status or response.active_tasks is not None:
            raise RuntimeError(f"the coordinator sends a stable member changes: {response}")
        exchanges.append((request, head + answer))
    return exchanges


def main() -> None:
    host, port, core, pid, members, seconds, *depths = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    exchanges = asyncio.run(joined(host, int(port), int(members)))
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
