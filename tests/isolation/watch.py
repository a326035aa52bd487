"""Members of groups that heartbeat beside an attack, and how long they wait for their answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.raw import RawClient
from tests.isolation.attacks import Attack

GROUPS = 20
SESSION_MS = 6000
BEAT_SECONDS = 0.02
"""Between one heartbeat and the next, of one group after the other."""


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, in all its threads: what others on the machine use doesn't count."""
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(used[11]) + int(used[12])) / 100


def peak_memory(pid: int) -> int:
    """The most memory that a process has ever had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError("no VmHWM")


@dataclass
class Waits:
    """What the members saw.

    Attributes:
        longest: seconds from a heartbeat to its answer.
        longest_work: processor seconds that the server used between them.
        errors: of heartbeats that weren't answered with NONE.
    """

    longest: float = 0.0
    longest_work: float = 0.0
    beats: int = 0
    errors: set[int] = field(default_factory=set)


class Watch:
    """Members of groups of their own, which heartbeat one after the other."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._pid = pid
        self._members: list[tuple[RawClient, HeartbeatRequest]] = []
        self._beating: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._waits = Waits()

    async def __aenter__(self) -> Self:
        self._members = await asyncio.gather(*(_joined(self._port, f"watched-{number}") for number in range(GROUPS)))
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        for client, _heartbeat in self._members:
            await client.close()

    async def beside(self, attack: Attack, port: int | None = None) -> Waits:
        """Runs an attack; returns what the members saw of it.

        Args:
            port: where; None for where the members are.
        """
        port = port or self._port
        # The members beat on meanwhile, or they would lose their groups. What they see of it doesn't count, since this
        # process has other work then.
        frames = await asyncio.to_thread(asyncio.run, attack.prepare(port))
        async with self._turn:
            waits = self._waits = Waits()
        await attack.run(port, frames)
        async with self._turn:
            pass
        return waits

    async def _beat(self) -> None:
        while True:
            for client, heartbeat in self._members:
                async with self._turn:
                    await self._heartbeat(client, heartbeat)
                await asyncio.sleep(BEAT_SECONDS)

    async def _heartbeat(self, client: RawClient, heartbeat: HeartbeatRequest) -> None:
        waits = self._waits
        began, worked = time.perf_counter(), cpu_seconds(self._pid)
        response = await client.call(heartbeat, 3)
        waits.longest = max(waits.longest, time.perf_counter() - began)
        waits.longest_work = max(waits.longest_work, cpu_seconds(self._pid) - worked)
        waits.beats += 1
        if response.error_code:
            waits.errors.add(response.error_code)


async def _joined(port: int, group: str) -> tuple[RawClient, HeartbeatRequest]:
    """A member of a group, as soon as the group has a coordinator."""
    client = await RawClient.connect(port)
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )
    response = await client.call(join, 3)
    while response.error_code:
        await client.call(FindCoordinatorRequest(key=group), 3)  # which makes Apache Kafka's topic of offsets
        await asyncio.sleep(0.1)
        response = await client.call(join, 3)
    member = {"generation_id": response.generation_id, "member_id": response.member_id}
    await client.call(SyncGroupRequest(group_id=group, **member), 2)
    return client, HeartbeatRequest(group_id=group, **member)
