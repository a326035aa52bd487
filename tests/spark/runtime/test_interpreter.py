"""The interpreter with jobs, stores, transactions and a group that do as they are told."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kohort.client.errors import (
    CommitFailedError,
    FencedError,
    NoBrokerError,
    RequestTimeoutError,
)
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.epoch import DEAD_SCHEMA, ROWS_SCHEMA, EpochInput, EpochOutput, EpochStatistics
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import EpochDone, Listener
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime import chain_epochs
from kohort.spark.runtime.activation import Activated
from kohort.spark.runtime.chain_runner import ChainRunner
from kohort.spark.runtime.epoch_interpreter import EpochInterpreter
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.epoch_writes import EpochWrites
from kohort.spark.runtime.interpreter import Interpreter
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, Unreadable
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskState
from kohort.spark.runtime.under_way import UnderWay
from kohort.spark.state import StateError
from kohort.streams.tasks import Role, TaskId

S0, S1 = TopicPartition("s", 0), TopicPartition("s", 1)
T0, T1 = TaskId("0", 0), TaskId("0", 1)
PLAN = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: StoreOutput("counts", "changelog", outputs=("out",))})
UNREADABLE = {"topic": "s", "partition": 0, "offset": 4, "key": None, "value": b"?", "error": "no JSON"}


class _Store:
    def __init__(self) -> None:
        self.content: dict[bytes, bytes] = {}
        self.position: int | None = None

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        raise AssertionError("no windows here")

    def write(self, keys: pa.Array, values: pa.Array, position: int, *, read_again: bool) -> None:
        self.content |= dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        self.position = position


class _Stores:
    """Of tasks; each is opened and closed in turn."""

    def __init__(self) -> None:
        self.open_ones: dict[TaskId, dict[str, _Store]] = {}

    def of(self, task: TaskId) -> Mapping[str, _Store]:
        return self.open_ones.get(task, {})

    async def open(self, task: TaskId) -> dict[str, _Store]:
        return self.open_ones.setdefault(task, {"counts": _Store()})

    async def close(self, task: TaskId) -> dict[TopicPartition, int]:
        await asyncio.sleep(0)
        stores = self.open_ones.pop(task, {})
        return {TopicPartition("changelog", task.partition): store.position or 0 for store in stores.values()}


class _Jobs:
    """Makes a row for each partition; waits while `gate` is closed."""

    def __init__(self) -> None:
        self.inputs: list[EpochInput] = []
        self.failures: list[Exception] = []
        self.dead = DEAD_SCHEMA.empty_table()
        self.gate, self.started = threading.Event(), threading.Event()
        self.gate.set()
        self.cancelled = False
        self.threads: set[threading.Thread] = set()

    def run(self, epoch_input: EpochInput) -> EpochOutput:
        self.threads.add(threading.current_thread())
        self.inputs.append(epoch_input)
        self.started.set()
        assert self.gate.wait(10)
        if self.cancelled:
            raise RuntimeError("the job was cancelled")
        if self.failures:
            raise self.failures.pop(0)
        rows = [
            {"key": b"k%d" % each.partition, "value": b'{"n":%d,"state":{}}' % each.end, "partition": each.partition}
            for each in epoch_input.ranges
        ]
        times = {each.partition: each.end for each in epoch_input.ranges}
        length = epoch_input.length
        statistics = EpochStatistics(records=length, bytes=length, max_times=times, dead=self.dead)
        return EpochOutput({0: pa.Table.from_pylist(rows, schema=ROWS_SCHEMA)}, statistics)

    def run_table(self, table: str, epoch_input: EpochInput) -> EpochOutput:
        raise AssertionError("no tables here")

    def cancel(self) -> None:
        self.cancelled = True
        self.gate.set()


class _Committer:
    """A log: what is committed counts."""

    def __init__(self) -> None:
        self.committed: list[Mapping[TopicPartition, OffsetAndMetadata]] = []
        self.send_failures: list[Exception] = []
        self.commit_failures: list[Exception] = []
        self.sent = self.closed = self.aborted = 0
        self.hang: asyncio.Event | None = None
        self.hangs = False
        self._changelogs = 0
        self._offsets: Mapping[TopicPartition, OffsetAndMetadata] = {}

    async def open(self) -> None:
        """Nothing to do."""

    async def send(self, writes: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.sent += 1
        if self.send_failures:
            raise self.send_failures.pop(0)
        self._keys, self._offsets = [(store, partition) for store, _, partition in writes.changelogs], offsets

    async def commit(self) -> dict[Any, int]:
        if self.hang is not None:
            self.hangs = True
            await self.hang.wait()
        if self.commit_failures:
            raise self.commit_failures.pop(0)
        self.committed.append(self._offsets)
        return {key: 100 + len(self.committed) for key in self._keys}

    async def abort(self) -> None:
        self.aborted += 1

    async def close(self, *, timeout_ms: float = 0) -> None:
        self.closed += 1


class _Ends:
    def __init__(self) -> None:
        self.now: dict[TopicPartition, int] = {}
        self.failures: list[Exception] = []
        self.no_partitions: list[Exception] = []

    async def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if self.failures:
            raise self.failures.pop(0)
        return {each: self.now[each] for each in partitions if each in self.now}

    async def partitions(self, topics: Collection[str]) -> dict[str, int]:
        if self.no_partitions:
            raise self.no_partitions.pop(0)
        return dict.fromkeys(topics, 4)

    async def written(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.of(partitions)

    async def known_partitions(self, topic: str) -> int:
        return 4

    async def pause(self) -> None:
        await asyncio.sleep(0.001)


class _World(Listener):
    """An interpreter and all it has to do with."""

    def __init__(self, plan: SubtopologyPlan = PLAN, probe: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.jobs, self.committer, self.ends, self.stores = _Jobs(), _Committer(), _Ends(), _Stores()
        self.epochs: list[EpochDone] = []
        self.failures: list[str] = []
        self.reasons: list[str | None] = []
        self.acknowledged: list[TaskId] = []
        self.followed: set[TopicPartition] = set()
        self.stopped: list[BaseException] = []
        self.positions: dict[TaskId, int] = {}
        self.cannot_restore: list[Exception] = []
        self.restorable = asyncio.Event()
        self.restorable.set()
        self.manager = TaskManager({"0": plan}, Fingerprint("p"))
        self.runner = ChainRunner(
            self.manager.epochs["0"].chain, lambda name: self.jobs, self.committer, self.stores.of,  # type: ignore[arg-type]
            **({} if probe is None else {"probe": probe}),  # type: ignore[arg-type]
        )  # fmt: skip
        application: Any = SimpleNamespace(changelogs=lambda task: {"counts": TopicPartition("c", task.partition)})
        under_way = UnderWay(self.stopped.append)
        self.epoch_interpreter = EpochInterpreter(
            self.manager, self.ends, lambda chain: self.runner, under_way, listener=self,
            fail=self.stopped.append,
        )  # fmt: skip
        self.interpreter = Interpreter(
            application, self.manager, self, self.stores, self, self, self.epoch_interpreter, under_way,  # type: ignore[arg-type]
            fail=self.stopped.append, changed=lambda: self.reasons.append(self.manager.reason),
        )  # fmt: skip

    # What it listens to, and what it is to the interpreter.

    def epoch(self, done: EpochDone) -> None:
        self.epochs.append(done)

    def failed(self, text: str) -> None:
        self.failures.append(text)

    def closed(self, *tasks: TaskId) -> None:
        self.acknowledged.extend(tasks)

    def follow(self, store: object, partition: TopicPartition) -> None:
        self.followed.add(partition)

    async def unfollow(self, partition: TopicPartition) -> None:
        self.followed.discard(partition)

    async def activate(self, task: TaskId, open_producer: Callable[[], Awaitable[None]]) -> Activated:
        await self.stores.open(task)
        await open_producer()
        await self.restorable.wait()
        if self.cannot_restore:
            raise self.cannot_restore.pop(0)
        partition = TopicPartition("s", task.partition)
        return Activated({partition: max([self.positions.get(task, 0), *self.offsets(partition)])}, None)

    # What happens.

    def assigned(self, *tasks: TaskId, role: Role = Role.ACTIVE) -> None:
        self.interpreter.do(self.manager.assigned(dict.fromkeys(tasks, role)))

    def revoked(self, *tasks: TaskId) -> None:
        self.interpreter.do(self.manager.revoked(tasks))

    def lost(self) -> None:
        self.interpreter.do(self.manager.lost())

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.001)

    def offsets(self, partition: TopicPartition = S0) -> list[int]:
        """What was committed of a partition."""
        return [each[partition].offset for each in self.committer.committed if partition in each]


def with_interpreter(
    scenario: Callable[[_World], Awaitable[None]],
    plan: SubtopologyPlan = PLAN,
    probe: Callable[[str], Awaitable[None]] | None = None,
) -> None:
    async def main() -> None:
        world = _World(plan, probe)
        try:
            await scenario(world)
        finally:
            await world.interpreter.close()
        assert not any(thread.is_alive() for thread in world.jobs.threads)

    asyncio.run(main())


def test_epochs() -> None:
    async def scenario(world: _World) -> None:
        world.positions[T1] = 3
        world.ends.now = {S0: 10, S1: 5}
        world.assigned(T0, T1)
        await world.until(lambda: len(world.epochs) == 1)
        (done,) = world.epochs
        assert (done.subtopology, done.input, done.records, done.out_records, done.lag) == ("0", "stream", 12, 4, 0)
        assert done.positions == {"s-0": 10, "s-1": 5} and done.tasks == ("0_0", "0_1")
        assert 0 < done.merge_ms < done.job_ms < done.took_ms and 0 < done.send_ms < done.commit_ms < done.took_ms
        assert done.took_ms == pytest.approx(done.job_ms + done.commit_ms + done.store_ms)
        assert world.committer.committed == [
            {S0: OffsetAndMetadata(10, metadata='{"stream_time":10,"program":"p"}'),
             S1: OffsetAndMetadata(5, metadata='{"stream_time":5,"program":"p"}')}
        ]  # fmt: skip
        store = world.stores.of(T0)["counts"]
        assert store.content == {b"k0": b'{"n":10,"state":{}}'} and store.position == 101
        world.ends.now[S0] = 11
        await world.until(lambda: len(world.epochs) == 2)
        assert world.jobs.inputs[-1].stream_times == {0: 10}
        assert len(world.jobs.threads) == 1 and threading.current_thread() not in world.jobs.threads

    with_interpreter(scenario)


@pytest.mark.parametrize("placed", [True, False])
def test_how_many_partitions_there_are_is_asked_where_it_matters(placed: bool) -> None:
    """A broker that doesn't say is waited for: that is no failure of the epoch."""

    async def scenario(world: _World) -> None:
        world.ends.now, world.ends.no_partitions = {S0: 10}, [NoBrokerError("away")] * 2
        world.assigned(T0)
        await world.until(lambda: len(world.epochs) == 1)
        assert [each.partitions for each in world.jobs.inputs] == [4 if placed else 0]
        assert bool(world.ends.no_partitions) != placed and not world.failures

    with_interpreter(scenario, dataclasses.replace(PLAN, placed=frozenset(["s"])) if placed else PLAN)


def test_a_revoked_task_is_closed_when_its_epoch_is_committed() -> None:
    async def scenario(world: _World) -> None:
        world.jobs.gate.clear()
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(world.jobs.started.is_set)
        world.revoked(T0)
        await asyncio.sleep(0.02)
        assert not world.acknowledged
        world.jobs.gate.set()
        await world.until(lambda: world.acknowledged == [T0])
        assert world.offsets() == [10] and not world.stores.open_ones and world.manager.left == {T0: 101}

    with_interpreter(scenario)


@pytest.mark.parametrize("where", ["job", "commit"])
def test_a_lost_task_is_given_up_at_once(where: str) -> None:
    async def scenario(world: _World) -> None:
        if where == "job":
            world.jobs.gate.clear()
        else:
            world.committer.hang = asyncio.Event()
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(world.jobs.started.is_set if where == "job" else lambda: world.committer.hangs)
        world.lost()
        await world.until(lambda: world.acknowledged == [T0])
        assert world.committer.committed == [] and world.committer.closed == 1
        assert world.jobs.cancelled == (where == "job")
        assert not world.failures and not world.stopped

    with_interpreter(scenario)


def test_a_copy_follows_its_changelogs_until_it_is_closed() -> None:
    async def scenario(world: _World) -> None:
        world.assigned(T0, role=Role.STANDBY)
        await world.until(lambda: world.followed)
        assert T0 in world.stores.open_ones
        world.revoked(T0)
        await world.until(lambda: world.acknowledged)
        assert not world.followed and not world.stores.open_ones

    with_interpreter(scenario)


def test_restoring_is_cancelled() -> None:
    async def scenario(world: _World) -> None:
        world.restorable.clear()
        world.assigned(T0)
        await asyncio.sleep(0.01)
        world.revoked(T0)
        await world.until(lambda: world.acknowledged)
        assert not world.stores.open_ones and not world.manager.tasks

    with_interpreter(scenario)


def test_it_is_cancelled_before_it_takes_its_first_step() -> None:
    async def scenario(world: _World) -> None:
        world.assigned(T0)
        world.revoked(T0)
        await world.until(lambda: world.acknowledged)

    with_interpreter(scenario)


@pytest.mark.parametrize("error", [NoBrokerError("away"), StateError("the disk is full")], ids=repr)
def test_what_cannot_be_restored_is_tried_again(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.runtime.task_manager.RETRY_S", 0.001)

    async def scenario(world: _World) -> None:
        world.cannot_restore = [error, ExceptionGroup("several stores", [error])]
        world.assigned(T0)
        await world.until(lambda: world.manager.tasks[T0].state is TaskState.RUNNING)
        assert f"task 0_0 can't be restored yet: {error}" in world.reasons and world.reasons[-1] is None

    with_interpreter(scenario)


def test_what_can_never_be_restored_stops_the_application() -> None:
    async def scenario(world: _World) -> None:
        world.cannot_restore = [ApplicationError("another program's offsets")]
        world.assigned(T0)
        await world.until(lambda: world.stopped)
        world.revoked(T0)  # the member leaves its group
        await world.until(lambda: world.acknowledged)

    with_interpreter(scenario)


def test_a_bug_stops_the_application() -> None:
    async def scenario(world: _World) -> None:
        world.cannot_restore = [ZeroDivisionError()]
        world.assigned(T0)
        await world.until(lambda: world.stopped)
        assert isinstance(world.stopped[0], ZeroDivisionError)

    with_interpreter(scenario)


@pytest.mark.parametrize("where", ["send", "commit"])
def test_a_producer_that_is_fenced_has_its_tasks_begin_from_what_is_committed(where: str) -> None:
    async def scenario(world: _World) -> None:
        getattr(world.committer, f"{where}_failures").append(FencedError("fenced"))
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.epochs)
        assert world.offsets() == [10] and world.committer.closed == 1 and len(world.jobs.inputs) == 2
        assert not world.failures

    with_interpreter(scenario)


def test_what_is_refused_is_sent_again_and_nothing_is_computed_again() -> None:
    async def scenario(world: _World) -> None:
        world.committer.send_failures = [CommitFailedError("the member's epoch is stale")]
        world.committer.commit_failures = [RequestTimeoutError("no answer")] * 2
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.epochs)
        assert (world.committer.sent, world.committer.aborted, len(world.jobs.inputs)) == (2, 1, 1)
        assert any(reason and "is tried again" in reason for reason in world.reasons)
        assert any(reason and "don't say whether a transaction is committed" in reason for reason in world.reasons)

    with_interpreter(scenario)


def test_a_job_that_fails_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_epochs, "_BACK_OFF_S", (0, 0, 0))

    async def scenario(world: _World) -> None:
        world.jobs.failures = [RuntimeError("an executor is gone")]
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.epochs)
        assert world.failures == ["subtopology 0: an executor is gone"] and world.offsets() == [10]

    with_interpreter(scenario)


def test_one_that_always_fails_stops_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_epochs, "_BACK_OFF_S", (0, 0, 0))

    async def scenario(world: _World) -> None:
        world.jobs.failures = [RuntimeError("a bug")] * 3
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.stopped)
        (error,) = world.stopped
        assert isinstance(error, ApplicationError) and isinstance(error.__cause__, RuntimeError)
        assert str(error) == "subtopology 0 failed 3 times in a row at the same records, from s-0:0: a bug"
        world.revoked(T0)
        await world.until(lambda: world.acknowledged)

    with_interpreter(scenario)


def test_a_record_that_cannot_be_read_stops_it() -> None:
    async def scenario(world: _World) -> None:
        world.jobs.dead = pa.Table.from_pylist([UNREADABLE], schema=DEAD_SCHEMA)
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.stopped)
        assert "s-0, offset 4: no JSON" in str(world.stopped[0]) and world.committer.committed == []

    with_interpreter(scenario)


def test_dead_letters_do_not() -> None:
    async def scenario(world: _World) -> None:
        world.jobs.dead = pa.Table.from_pylist([UNREADABLE], schema=DEAD_SCHEMA)
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.epochs)
        assert world.epochs[0].out_records == 3

    with_interpreter(scenario, dataclasses.replace(PLAN, unreadable={"s": Unreadable(stop=False, dead_letters="dead")}))


def test_a_broker_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_epochs, "_UNSEEN_S", 0.001)

    async def scenario(world: _World) -> None:
        world.ends.failures = [RequestTimeoutError("no answer")] * 5
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.epochs)
        assert any(reason and "can't see how far its topics go" in reason for reason in world.reasons)
        assert world.reasons[-1] is None

    with_interpreter(scenario)


STEPS = ("planned", "job", "committed", "stored")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("how", ["lost", "raises"])
def test_stopped_between_any_two_steps(step: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, what counts is what was committed; and the task comes back, or is let go of."""
    monkeypatch.setattr(chain_epochs, "_BACK_OFF_S", (0, 0, 0))
    reached = asyncio.Event()

    async def probe(at: str) -> None:
        if at == step and not reached.is_set():
            reached.set()
            if how == "raises":
                raise RuntimeError("injected")
            await asyncio.sleep(0.1 if step == "stored" else 10)

    async def scenario(world: _World) -> None:
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await reached.wait()
        if how == "lost":
            world.lost()
            await world.until(lambda: world.acknowledged)
            assert world.offsets() == ([10] if step in ("committed", "stored") else [])
            world.assigned(T0)
        world.ends.now = {S0: 15}
        await world.until(lambda: 15 in world.offsets())
        assert sorted(set(world.offsets())) == world.offsets()  # nothing was committed twice

    with_interpreter(scenario, probe=probe)


def test_how_far_it_is_behind_is_seen_while_an_epoch_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.runtime.epoch_interpreter._LOOK_S", 0.0)

    async def scenario(world: _World) -> None:
        epochs = world.manager.epochs["0"]
        world.jobs.gate.clear()
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(world.jobs.started.is_set)
        world.ends.now[S0] = 25
        await world.epoch_interpreter.look()
        assert epochs.lag("0") == 25
        world.ends.failures = [RequestTimeoutError("no answer")]
        await world.epoch_interpreter.look()
        assert epochs.lag("0") == 25  # as of then
        world.jobs.gate.set()
        await world.until(lambda: epochs.lag("0") == 0)

    with_interpreter(scenario)


def test_what_no_broker_would_take_stops_the_application() -> None:
    async def scenario(world: _World) -> None:
        world.committer.send_failures = [ValueError("a row takes too many bytes")]
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.stopped)
        (error,) = world.stopped
        assert str(error) == "what an epoch has made can't be written: a row takes too many bytes"
        assert isinstance(error.__cause__, ValueError)
        await world.until(lambda: world.committer.closed == 1)  # its transaction is aborted

    with_interpreter(scenario)


def test_nothing_of_an_epoch_is_kept_when_it_is_over() -> None:
    async def scenario(world: _World) -> None:
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.epochs)
        runner = world.runner
        assert not runner._writes.records and not runner._in_epoch and not runner._positions

    with_interpreter(scenario)


def test_stores_that_cannot_be_closed_stop_the_application_and_keep_nobody_waiting() -> None:
    async def scenario(world: _World) -> None:
        async def close(task: TaskId) -> dict[TopicPartition, int]:
            raise OSError("the disk is gone")

        world.stores.close = close  # type: ignore[method-assign]
        world.assigned(T0, role=Role.STANDBY)
        await world.until(lambda: world.followed)
        world.revoked(T0)
        await world.until(lambda: world.acknowledged)
        assert isinstance(world.stopped[0], OSError)

    with_interpreter(scenario)


def test_nothing_is_begun_after_the_end() -> None:
    async def scenario() -> None:
        under_way = UnderWay(lambda error: None)
        await under_way.close()
        over: list[object] = []
        under_way.begin(T0, asyncio.sleep(0), over.append, "late")
        await asyncio.sleep(0.01)
        assert under_way.get(T0) is None and not over

    asyncio.run(scenario())


def test_what_was_replaced_is_waited_for_at_the_end() -> None:
    async def scenario() -> None:
        under_way = UnderWay(lambda error: None)
        ended = asyncio.Event()

        async def slow() -> None:
            try:
                await asyncio.sleep(10)
            finally:
                await asyncio.sleep(0.02)
                ended.set()

        under_way.begin(T0, slow(), lambda outcome: None, "first")
        await asyncio.sleep(0)
        under_way.begin(T0, asyncio.sleep(10), lambda outcome: None, "second")
        await under_way.close()
        assert ended.is_set()

    asyncio.run(scenario())


@pytest.mark.parametrize("first", [True, False])
def test_a_bug_beside_a_store_that_fails_stops_the_application(first: bool) -> None:
    errors = [KeyError("a bug"), StateError("the disk is full")]

    async def scenario(world: _World) -> None:
        world.cannot_restore = [ExceptionGroup("two stores", errors if first else errors[::-1])]
        world.assigned(T0)
        await world.until(lambda: world.stopped)
        assert isinstance(world.stopped[0], KeyError)

    with_interpreter(scenario)


def test_what_is_aborted_ends_its_cleanup() -> None:
    async def scenario(world: _World) -> None:
        cleaned = asyncio.Event()

        async def send(writes: EpochWrites, offsets: object) -> None:
            try:
                await asyncio.sleep(10)
            finally:
                await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.05)
                cleaned.set()

        world.committer.send = send  # type: ignore[method-assign]
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(lambda: world.manager.tasks[T0].state is TaskState.COMMITTING)
        await asyncio.sleep(0)
        world.lost()
        await world.until(lambda: world.acknowledged)
        assert cleaned.is_set()

    with_interpreter(scenario)


def test_a_job_that_cannot_be_cancelled_is_abandoned_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.runtime.chain_runner._ABANDON_S", 0.05)

    async def main() -> None:
        world = _World()
        world.jobs.cancel = lambda: None  # type: ignore[method-assign]
        world.jobs.gate.clear()
        world.ends.now = {S0: 10}
        world.assigned(T0)
        await world.until(world.jobs.started.is_set)
        await world.interpreter.close()
        assert world.committer.closed == 1
        world.jobs.gate.set()

    asyncio.run(main())
