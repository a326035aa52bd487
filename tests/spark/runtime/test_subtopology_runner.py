"""A lane with jobs, stores and transactions that do as they are told."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
import pytest

from kohort.client.errors import NoBrokerError, RequestTimeoutError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ApplicationError
from kohort.spark.jobs.epoch import DEAD_SCHEMA, ROWS_SCHEMA, EpochInput, EpochOutput, EpochStatistics
from kohort.spark.monitoring.events import EpochDone, Listener
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime import subtopology_runner as lanes
from kohort.spark.runtime.active_task import ActiveTask
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.epoch_writes import EpochWrites
from kohort.spark.runtime.errors import RestartFromCommittedError
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, Unreadable
from kohort.spark.runtime.subtopology_runner import SubtopologyRunner
from kohort.streams.tasks import TaskId

S0, S1 = TopicPartition("s", 0), TopicPartition("s", 1)
T0, T1 = TaskId("0", 0), TaskId("0", 1)
DUTIES = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: StoreOutput("counts", "changelog", outputs=("out",))})
UNREADABLE = {"topic": "s", "partition": 0, "offset": 4, "key": None, "value": b"?", "error": "no JSON"}


class _Store:
    def __init__(self) -> None:
        self.content: dict[bytes, bytes] = {}
        self.position: int | None = None

    def get_many(self, keys: pa.Array) -> pa.Array:
        return pa.array([self.content.get(key) for key in keys.to_pylist()], pa.binary())

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        raise AssertionError("no windows here")

    def write(self, keys: pa.Array, values: pa.Array, position: int) -> None:
        self.content |= dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        self.position = position


class _Jobs:
    """Makes a row for each partition; waits while `gate` is closed."""

    def __init__(self) -> None:
        self.works: list[EpochInput] = []
        self.failures: list[Exception] = []
        self.dead = DEAD_SCHEMA.empty_table()
        self.gate, self.started = threading.Event(), threading.Event()
        self.gate.set()
        self.cancelled = False
        self.threads: set[int] = set()

    def run(self, work: EpochInput) -> EpochOutput:
        self.threads.add(threading.get_ident())
        self.works.append(work)
        self.started.set()
        assert self.gate.wait(10)
        if self.cancelled:
            raise RuntimeError("the job was cancelled")
        if self.failures:
            raise self.failures.pop(0)
        rows = [
            {"key": b"k%d" % each.partition, "value": b'{"n":%d,"state":{}}' % each.end, "partition": each.partition}
            for each in work.ranges
        ]
        times = {each.partition: each.end for each in work.ranges}
        read = EpochStatistics(records=work.length, bytes=work.length, max_times=times, dead=self.dead)
        return EpochOutput({0: pa.Table.from_pylist(rows, schema=ROWS_SCHEMA)}, read)

    def run_table(self, table: str, work: EpochInput) -> EpochOutput:
        raise AssertionError("no tables here")

    def cancel(self) -> None:
        self.cancelled = True
        self.gate.set()


class _Committer:
    """A log: what is committed counts."""

    def __init__(self) -> None:
        self.committed: list[Mapping[TopicPartition, OffsetAndMetadata]] = []
        self.failures: list[BaseException] = []
        self.closed = 0
        self.hang: asyncio.Event | None = None
        self.hangs = False

    async def open(self) -> None:
        """Nothing to do."""

    async def commit(self, out: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[Any, int]:
        if self.hang is not None:
            self.hangs = True
            await self.hang.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.committed.append(offsets)
        return {(store, partition): 100 + len(self.committed) for store, _, partition in out.changelogs}

    async def close(self, *, timeout_ms: float = 0) -> None:
        self.closed += 1


class _Ends:
    def __init__(self) -> None:
        self.now: dict[TopicPartition, int] = {}
        self.failures: list[Exception] = []
        self.losses: list[Exception] = []

    async def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if self.failures:
            raise self.failures.pop(0)
        return {each: self.now[each] for each in partitions if each in self.now}

    async def partitions(self, topics: Collection[str]) -> dict[str, int]:
        if self.losses:
            raise self.losses.pop(0)
        return dict.fromkeys(topics, 4)

    async def pause(self) -> None:
        await asyncio.sleep(0.001)


class _World(Listener):
    """A lane and all it has to do with."""

    def __init__(self, duties: SubtopologyPlan = DUTIES, probe: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.jobs, self.committer, self.ends = _Jobs(), _Committer(), _Ends()
        self.epochs: list[EpochDone] = []
        self.failures: list[str] = []
        self.reasons: list[str | None] = []
        self.reopened: list[set[TaskId]] = []
        self.opening = False
        self.lane = SubtopologyRunner(
            duties, lambda: self.jobs, self.committer, self.ends, lambda tasks: self.reopened.append(set(tasks)),  # type: ignore[arg-type]
            program=Fingerprint("p"), listener=self, waiting=self.reasons.append, opening=lambda: self.opening,
            **({} if probe is None else {"probe": probe}),  # type: ignore[arg-type]
        )  # fmt: skip
        self.running = asyncio.create_task(self.lane.run())

    def epoch(self, done: EpochDone) -> None:
        self.epochs.append(done)

    def failed(self, text: str) -> None:
        self.failures.append(text)

    def task(self, number: int, at: int = 0) -> ActiveTask:
        """A task that begins at an offset."""
        return ActiveTask(TaskId("0", number), {"counts": _Store()}, {TopicPartition("s", number): at})

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something."""
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        """Close the lane."""
        self.running.cancel()
        await asyncio.wait([self.running])
        await self.lane.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def test_tasks_that_are_opened_together_begin_together() -> None:
    """Or the backlog of the first would go before that of the others."""

    async def scenario() -> None:
        world = _World()
        world.ends.now = {S0: 10, S1: 10}
        world.opening = True
        world.lane.add(world.task(0))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not world.jobs.works
        world.opening = False
        world.lane.add(world.task(1))
        await world.until(lambda: len(world.epochs) > 0)
        assert world.epochs[0].tasks == ("0_0", "0_1")
        await world.end()

    run(scenario)


def test_a_task_that_takes_long_to_open_holds_up_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_GATHER_S", 0.01)

    async def scenario() -> None:
        world = _World()
        world.ends.now = {S0: 10}
        world.opening = True
        world.lane.add(world.task(0))
        await world.until(lambda: len(world.epochs) > 0)
        await world.end()

    run(scenario)


def test_epochs() -> None:
    async def scenario() -> None:
        world = _World()
        first, second = world.task(0), world.task(1, 3)
        world.ends.now = {S0: 10, S1: 5}
        world.lane.add(first)
        world.lane.add(second)
        await world.until(lambda: len(world.epochs) == 1)
        (done,) = world.epochs
        assert (done.subtopology, done.input, done.records, done.out_records, done.lag) == ("0", "stream", 12, 4, 0)
        assert done.positions == {"s-0": 10, "s-1": 5} and done.tasks == ("0_0", "0_1")
        assert world.committer.committed == [
            {S0: OffsetAndMetadata(10, metadata='{"stream_time":10,"program":"p"}'),
             S1: OffsetAndMetadata(5, metadata='{"stream_time":5,"program":"p"}')}
        ]  # fmt: skip
        store = first.stores["counts"]
        assert isinstance(store, _Store)
        assert store.content == {b"k0": b'{"n":10,"state":{}}'} and store.position == 101
        world.ends.now[S0] = 11
        await world.until(lambda: len(world.epochs) == 2)
        assert world.jobs.works[-1].stream_times == {0: 10}
        assert len(world.jobs.threads) == 1 and threading.get_ident() not in world.jobs.threads
        await world.end()

    run(scenario)


def test_how_many_partitions_there_are_is_asked_where_it_matters() -> None:
    """A broker that doesn't say is waited for: that is no failure of the epoch."""

    async def scenario() -> None:
        world = _World(dataclasses.replace(DUTIES, placed=frozenset(["s"])))
        world.ends.now, world.ends.losses = {S0: 10}, [NoBrokerError("away")] * 5
        world.lane.add(world.task(0))
        await world.until(lambda: len(world.epochs) == 1)
        assert [work.partitions for work in world.jobs.works] == [4]
        assert not world.ends.losses and not world.failures
        await world.end()
        world = _World()
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await world.until(lambda: len(world.epochs) == 1)
        assert [work.partitions for work in world.jobs.works] == [0]
        await world.end()

    run(scenario)


def test_dropped_when_the_epoch_is_done_and_others_go_on() -> None:
    async def scenario() -> None:
        world = _World()
        world.jobs.gate.clear()
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await world.until(world.jobs.started.is_set)
        world.lane.add(world.task(1))
        await world.lane.drop([T1])  # it isn't in the epoch: at once
        world.lane.add(world.task(1))
        dropping = asyncio.create_task(world.lane.drop([T0]))
        await asyncio.sleep(0.02)
        assert not dropping.done()
        world.jobs.gate.set()
        await dropping
        assert len(world.committer.committed) == 1
        world.ends.now = {S0: 20, S1: 5}
        await world.until(lambda: len(world.epochs) == 2)
        assert world.epochs[1].tasks == ("0_1",)
        await world.end()

    run(scenario)


@pytest.mark.parametrize("where", ["job", "commit"])
def test_lost_at_once(where: str) -> None:
    async def scenario() -> None:
        world = _World()
        if where == "job":
            world.jobs.gate.clear()
        else:
            world.committer.hang = asyncio.Event()
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await world.until(world.jobs.started.is_set if where == "job" else lambda: world.committer.hangs)
        async with asyncio.timeout(5):
            await world.lane.lose([T0])
        assert world.committer.committed == [] and world.committer.closed == 1
        assert world.jobs.cancelled == (where == "job")
        assert not world.failures
        await world.end()

    run(scenario)


def test_begun_anew_when_nobody_knows() -> None:
    async def scenario() -> None:
        world = _World()
        world.committer.failures = [RestartFromCommittedError("fenced")]
        world.ends.now = {S0: 10, S1: 10}
        world.lane.add(world.task(0))
        await world.until(lambda: bool(world.reopened))
        assert world.reopened == [{T0}] and world.lane.tasks == () and world.committer.closed == 1
        world.lane.add(world.task(0, 10))  # it was committed, as it turns out
        world.ends.now[S0] = 12
        await world.until(lambda: bool(world.epochs))
        assert world.epochs[0].records == 2
        await world.end()

    run(scenario)


def test_a_job_that_fails_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_PAUSES_S", (0, 0, 0))

    async def scenario() -> None:
        world = _World()
        world.jobs.failures = [RuntimeError("an executor is gone")]
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await world.until(lambda: bool(world.reopened))
        world.lane.add(world.task(0))
        await world.until(lambda: bool(world.epochs))
        assert world.failures == ["part 0: an executor is gone"]
        await world.end()

    run(scenario)


def test_one_that_always_fails_stops_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_PAUSES_S", (0, 0, 0))

    async def scenario() -> None:
        world = _World()
        world.jobs.failures = [RuntimeError("a bug")] * 3
        world.ends.now = {S0: 10}
        for times in range(2):
            world.lane.add(world.task(0))
            await world.until(lambda times=times: len(world.reopened) > times)  # type: ignore[misc]
        world.lane.add(world.task(0))
        with pytest.raises(ApplicationError, match="failed 3 times in a row at the same records, from s-0:0: a bug"):
            await world.running
        await world.end()

    run(scenario)


def test_a_record_that_cannot_be_read_stops_it() -> None:
    async def scenario() -> None:
        world = _World()
        world.jobs.dead = pa.Table.from_pylist([UNREADABLE], schema=DEAD_SCHEMA)
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        with pytest.raises(ApplicationError, match="s-0, offset 4: no JSON"):
            await world.running
        assert world.committer.committed == []
        await world.end()

    run(scenario)


def test_dead_letters_do_not() -> None:
    async def scenario() -> None:
        duties = SubtopologyPlan(
            "0",
            SubtopologyInputs("s", {}),
            DUTIES.branches,
            unreadable={"s": Unreadable(stop=False, dead_letters="dead")},
        )
        world = _World(duties)
        world.jobs.dead = pa.Table.from_pylist([UNREADABLE], schema=DEAD_SCHEMA)
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await world.until(lambda: bool(world.epochs))
        assert world.epochs[0].out_records == 3
        await world.end()

    run(scenario)


def test_a_broker_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_BROKER_PAUSE_S", 0.001)

    async def scenario() -> None:
        world = _World()
        world.ends.failures = [RequestTimeoutError("no answer")] * 5
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await world.until(lambda: bool(world.epochs))
        assert any(reason and "can't see how far its topics go" in reason for reason in world.reasons)
        assert world.reasons[-1] is None
        await world.end()

    run(scenario)


def test_a_topic_that_was_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_SHORT_S", 0.05)

    async def scenario() -> None:
        world = _World()
        world.ends.now = {S0: 3}
        world.lane.add(world.task(0, 10))
        with pytest.raises(ApplicationError, match="s-0 ends at offset 3, but the application has read up to 10"):
            await world.running
        await world.end()

    run(scenario)


STEPS = ("planned", "job", "committed", "stored")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("how", ["cancelled", "raises"])
def test_stopped_between_any_two_steps(step: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, what counts is what was committed; and the task comes back, or is let go of."""
    monkeypatch.setattr(lanes, "_PAUSES_S", (0, 0, 0))

    async def scenario() -> None:
        reached = asyncio.Event()

        async def probe(at: str) -> None:
            if at == step and not reached.is_set():
                reached.set()
                if how == "raises":
                    raise RuntimeError("injected")
                await asyncio.sleep(10)

        world = _World(probe=probe)
        world.ends.now = {S0: 10}
        world.lane.add(world.task(0))
        await reached.wait()
        if how == "cancelled":
            await world.lane.lose([T0])
        else:
            await world.until(lambda: bool(world.reopened))
        counted = [offsets[S0].offset for offsets in world.committer.committed]
        assert counted == ([10] if step in ("committed", "stored") else [])
        world.lane.add(world.task(0, counted[-1] if counted else 0))
        world.ends.now = {S0: 15}
        await world.until(lambda: bool(world.epochs))
        assert [offsets[S0].offset for offsets in world.committer.committed] == [*counted, 15]
        await world.end()
        assert not world.lane._worker._thread.is_alive()

    run(scenario)


def test_a_task_may_be_dropped_before_its_epoch_takes_its_first_step() -> None:
    async def scenario() -> None:
        world = _World()
        world.ends.now = {S0: 5}
        begin = world.lane._run_epoch

        def dropped(*args: Any) -> Any:
            world.lane._tasks.pop(T0)
            return begin(*args)

        world.lane._run_epoch = dropped  # type: ignore[assignment, method-assign]
        world.lane.add(world.task(0))
        await world.until(lambda: len(world.epochs) == 1)
        assert not world.failures and not world.reopened
        await world.end()

    asyncio.run(scenario())


def test_those_that_shared_an_epoch_with_one_that_was_lost_begin_from_what_is_committed() -> None:
    async def scenario() -> None:
        world = _World()
        world.ends.now = {S0: 5, S1: 5}
        world.jobs.gate.clear()
        world.lane.add(world.task(0))
        world.lane.add(world.task(1))
        await world.until(lambda: world.jobs.started.is_set())
        await world.lane.lose([T0])
        assert world.jobs.cancelled and world.reopened == [{T0, T1}] and world.lane.tasks == ()
        await world.end()

    asyncio.run(scenario())


def test_how_far_it_is_behind_is_seen_while_an_epoch_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(lanes, "_HEARD_S", 0.0)
        world = _World()
        world.jobs.gate.clear()
        world.ends.now = {S0: 10}
        assert world.lane.behind is None
        world.lane.add(world.task(0))
        await world.until(world.jobs.started.is_set)
        world.ends.now[S0] = 25
        await world.lane.look()
        behind = world.lane.behind
        assert behind is not None and behind[0] == 25
        world.ends.failures = [RequestTimeoutError("no answer")]
        await world.lane.look()
        assert world.lane.behind == behind  # as of then
        world.jobs.gate.set()
        await world.until(lambda: world.lane.behind is not None and world.lane.behind[0] == 0)
        await world.end()

    run(scenario)
