"""Workers of a queue, and the broker's share partition that they get jobs from: both real, in virtual time.

What must hold, beside what `share_partitions.checker` says of the partition:

- A job is acknowledged as done when its row is in the topic of results, and rejected when its dead letter is written.
- It is done if it can be, and never given up then but at its last delivery; one that can't be has a dead letter.
- No job is given up without a word.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

import pyarrow as pa

from kohort.coordinator.share_partition import (
    AckBatch,
    AcknowledgeType,
    Acquired,
    AcquireMode,
    SharePartitionSettings,
)
from kohort.protocol.errors import ErrorCode
from kohort.spark.program.queues import QueueSettings
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.settlement import Settlement
from kohort.spark.queues.worker import QueueWorker
from tests.simulation.books import InvariantError
from tests.simulation.queues.jobs import DELIVERIES, DONE, SparkJobs, kind_of, value_of
from tests.simulation.share_partitions.log import Log
from tests.simulation.share_partitions.world import LOCK_MS, Broker, Clock
from tests.spark.queues.fakes import acquired, queue
from tests.spark.queues.virtual_time import at_once

LIMIT: Final = 25
"""Deliveries of the broker: more than chaos can use up."""
_REQUEST_S: Final = 0.5
_IDLE_S: Final = 0.2


class LoopClock(Clock):
    """The event loop's time, in ms."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()

    @property
    def now(self) -> int:
        return round(self._loop.time() * 1000)

    @now.setter
    def now(self, value: int) -> None:
        """Nobody sets it but who made it."""

    def after(self, ms: int, event: Callable[[], object]) -> None:
        self._loop.call_later(ms / 1000, event)


class World:
    """Attributes:
    rude: how likely requests get lost, topics can't be written, and jobs fail.
    results, letters: how often each job was written to both topics.
    """

    def __init__(self, rng: Random, seed: int) -> None:
        self.rng = rng
        settings = SharePartitionSettings(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=LIMIT,
            max_record_locks=rng.choice([50, 200]),
        )
        self.broker = Broker(rng, LoopClock(), Log(rng, transactions=False), settings)
        self.broker.seed = self.seed = seed
        self.rude = rng.choice((0.0, 0.05, 0.2))
        self.results: Counter[int] = Counter()
        self.letters: Counter[int] = Counter()

    def unlucky(self) -> bool:
        """Whether something goes wrong now."""
        return self.rng.random() < self.rude

    def demand(self, condition: bool, what: str) -> None:
        if not condition:
            raise InvariantError(f"seed {self.seed}, at {self.broker.clock.now}: {what}")

    def acknowledged(self, types: dict[int, AcknowledgeType]) -> None:
        """A worker is about to say so."""
        for offset, type_ in types.items():
            if type_ is AcknowledgeType.ACCEPT:
                self.demand(offset in self.results, f"{offset} is accepted, and no result is written")
            elif type_ is AcknowledgeType.REJECT:
                self.demand(offset in self.letters, f"{offset} is rejected, and no dead letter is written")

    def ended(self) -> None:
        """All is calm: what became of each job?"""
        self.broker.checker.ended(self.broker.partition, dead_letters=False)
        for offset in range(self.broker.log.end):
            kind, asked = kind_of(offset), self.broker.checker.asked[offset]
            verdict = asked & {AcknowledgeType.ACCEPT, AcknowledgeType.REJECT}
            self.demand(bool(verdict), f"{offset} ({kind}) was given up without a word")
            if kind in DONE:
                done = offset in self.results or self.broker.checker.delivered[offset] >= DELIVERIES
                self.demand(done, f"{offset} ({kind}) was given up early")
            else:
                self.demand(offset in self.letters, f"{offset} ({kind}) has no dead letter")
                self.demand(offset not in self.results, f"{offset} ({kind}) has a result")


class Worker:
    """A process with a worker, which may be killed, paused, and started again.

    It is the worker's consumer, too: locks are renewed when they are half over.
    """

    def __init__(self, name: str, world: World) -> None:
        self._name, self._world, self._lives = name, world, 0
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._awake = asyncio.Event()
        self._awake.set()
        self._held: dict[int, None] = {}

    @property
    def runs(self) -> bool:
        return self._running is not None and not self._running.done()

    @property
    def _member(self) -> str:
        return f"{self._name}.{self._lives}"

    def start(self) -> None:
        """Another life of it, unless there is one."""
        if self.runs:
            return
        self.check()
        self._lives += 1
        self._held = {}
        self._stopping = asyncio.Event()
        self._awake.set()
        self._running = asyncio.create_task(self._run())

    def check(self) -> None:
        """Raises what the last life ended with, if that wasn't foreseen."""
        if self._running is not None and self._running.done() and not self._running.cancelled():
            self._running.result()

    def forget(self) -> None:
        """What the last life ended with is known."""
        self._running = None

    async def kill(self) -> None:
        """End at once; the broker notices that its session is over after a while."""
        if self._running is not None and self.runs:
            self._running.cancel()
            await asyncio.wait([self._running])
            broker, member = self._world.broker, self._member
            broker.clock.after(self._world.rng.choice((1, 3 * LOCK_MS)), lambda: broker.leave(member))

    def stop(self) -> None:
        """End in good order."""
        self._stopping.set()

    def pause(self) -> None:
        """Hold it still (SIGSTOP)."""
        self._awake.clear()

    def go_on(self) -> None:
        """Not knowing that time has passed."""
        self._awake.set()

    async def _run(self) -> None:
        world, counts = self._world, QueueCounts("jobs")
        made = queue(QueueSettings(dead_letters="dead", max_deliveries=DELIVERIES))
        work = SparkJobs(world.rng, self._awake.wait, lambda: world.rude)
        clock = asyncio.get_running_loop().time
        worker = QueueWorker(made, self, work, self._send, counts, self._member, clock=clock, beside=at_once)
        renewing = asyncio.create_task(self._renew())
        try:
            await worker.run(self._stopping, 5.0)
        finally:
            renewing.cancel()
        world.broker.leave(self._member)

    # What it reads and writes ------------------------------------------------------------------------------------

    async def acquire(self, most: int) -> pa.Table | None:
        await self._awake.wait()
        broker, rng = self._world.broker, self._world.rng
        found = broker.fetch(self._member, min(rng.choice((1, 10, 40)), most), AcquireMode.RECORD_LIMIT)
        if not found or self._world.unlucky():  # the answer is lost: the locks end
            await asyncio.sleep(_IDLE_S)
            return None
        self._held = {offset: None for first, last, _ in found for offset in range(first, last + 1)}
        return _table(found)

    async def acknowledge(self, records: pa.Table, settlement: Settlement) -> None:
        await self._awake.wait()
        offsets = records["offset"].to_pylist()
        kinds = {at: AcknowledgeType(kind) for at, kind in zip(offsets, settlement.kinds.tolist(), strict=True) if kind}
        self._world.acknowledged(kinds)
        self._held = {}
        if kinds:
            await self._tell(kinds)

    async def _tell(self, kinds: dict[int, AcknowledgeType]) -> None:
        """Wait for the answer, for a while; the request may get lost as well."""
        answer: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def answered(code: ErrorCode) -> None:
            if not answer.done():
                answer.set_result(code)

        if not self._world.unlucky():
            batches = [AckBatch(at, at, [kind]) for at, kind in kinds.items()]
            self._world.broker.acknowledge(self._member, batches, answered)
        await asyncio.wait([answer], timeout=_REQUEST_S)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LOCK_MS / 2_000)
            await self._awake.wait()
            if self._held:
                await self._tell(dict.fromkeys(self._held, AcknowledgeType.RENEW))

    async def _send(self, topic: str, table: pa.Table) -> None:
        world = self._world
        await asyncio.sleep(world.rng.choice((0.001, 0.1)))
        await self._awake.wait()
        lost = world.unlucky()
        if not lost or world.rng.random() < 0.5:  # it may be written, though nobody says so
            self._written(topic, table)
        if lost:
            raise OSError("no answer")
        await asyncio.sleep(world.rng.choice((0.001, 0.1)))

    def _written(self, topic: str, table: pa.Table) -> None:
        for record in table.to_pylist():
            if topic == "dead":
                headers = {each["key"]: each["value"] for each in record["headers"]}
                self._world.letters[int(headers["__streams.errors.offset"])] += 1
            else:
                self._world.results[int(record["value"].split(b":")[1].strip(b" }"))] += 1


def _table(found: list[Acquired]) -> pa.Table:
    return pa.concat_tables(
        acquired(*(value_of(at) for at in range(first, last + 1)), first=first, delivery=count)
        for first, last, count in found
    )
