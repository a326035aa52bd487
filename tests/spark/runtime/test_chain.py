"""Subtopologies that hand each other rows share epochs, and rows are merged at once where that keeps their order."""

from __future__ import annotations

from dataclasses import replace

from kohort.client.types import TopicPartition as At
from kohort.spark.epoch import EpochStatistics, Mergers
from kohort.spark.program.committed_metadata import committed_by
from kohort.spark.runtime.chain import chains_of
from kohort.spark.runtime.effects import Epoch
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, TopicOutput
from kohort.spark.runtime.task_states import TaskEffect, TaskState
from kohort.spark.runtime.window_closing import Windows
from kohort.streams.tasks import Role, TaskId
from tests.spark.runtime.test_task_manager import ManagedTasks

MAKER = SubtopologyPlan(
    "0", SubtopologyInputs("s", {}), {0: TopicOutput("out"), 1: TopicOutput("r", routed=True, merged_by="1")}
)
MERGER = SubtopologyPlan("1", SubtopologyInputs("r", {}), {0: StoreOutput("counts", "changelog")})
OTHER = SubtopologyPlan("2", SubtopologyInputs("t", {}), {0: TopicOutput("out")})
T0, T1, M0, M1 = TaskId("0", 0), TaskId("0", 1), TaskId("1", 0), TaskId("1", 1)
S0, R0, R1 = At("s", 0), At("r", 0), At("r", 1)


class Chained(ManagedTasks):
    """A manager of two subtopologies, of which one merges what the other makes."""

    def __init__(self, merger: SubtopologyPlan = MERGER) -> None:
        super().__init__(MAKER, merger)

    def runs(self, *tasks: TaskId, at: int = 0) -> None:
        """Tasks are assigned, and restored."""
        self.do(self.manager.assigned(dict.fromkeys(tasks, Role.ACTIVE)))
        for task in tasks:
            operation = self.take(task, TaskEffect.RESTORE)
            topic = "s" if task.subtopology == "0" else "r"
            self.do(self.manager.restored(task, operation, {At(topic, task.partition): at}, None))

    def sees(self, ends: dict[At, int], written: dict[At, int] | None = None, now: float = 0.0) -> None:
        operation = self.epoch(EpochEffect.LOOK).operation
        self.manager.epochs["0"].ends_read(ends, 0.0)
        self.do(self.manager.looked("0", operation, ends, written or {}, {"r": 2}, now))

    def goes_on(self, merged: dict[int, int | None] | None = None) -> Epoch:
        """The epoch that is under way is done."""
        effect = self.epoch(EpochEffect.JOB)
        assert effect.epoch is not None
        times = {} if merged is None else {1: merged}
        statistics = EpochStatistics(effect.epoch.epoch_input.length, max_times={0: 50}, merged_times=times)
        self.do(self.manager.job_done("0", effect.operation, statistics))
        self.committed()
        return effect.epoch


def test_chains_are_of_what_hands_rows_on() -> None:
    chains = chains_of({each.id: each for each in (MAKER, MERGER, OTHER)})
    assert [(chain.id, list(chain.subtopologies), str(chain)) for chain in chains] == [
        ("0", ["1", "0"], "0 and 1"),
        ("2", ["2"], "2"),
    ]
    assert chains[0].repartitioned == {"r"} and not chains[1].repartitioned


def test_a_task_that_has_read_all_merges_at_once() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 0}, {R0: 0})
    assert world.state(M0) is TaskState.IN_EPOCH
    epoch = world.goes_on({0: 40})
    assert epoch.plan.mergers == {1: (M0,)}
    assert epoch.epoch_input.mergers == {1: Mergers(2, {0: None})}
    assert epoch.offsets is not None and (epoch.offsets[S0].offset, epoch.offsets[R0].offset) == (10, 0)
    said = committed_by(epoch.offsets[R0].metadata)
    assert said is not None and said.stream_time == 40
    assert (world.state(M0), world.manager.tasks[M0].stream_time) == (TaskState.RUNNING, 40)


def test_one_that_merged_nothing_commits_nothing() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 0}, {R0: 0})
    epoch = world.goes_on({})
    assert epoch.offsets is not None and set(epoch.offsets) == {S0}


def test_a_stream_waits_for_what_its_merger_still_has_to_read() -> None:
    """Some of it isn't decided yet: it is written, and can't be read."""
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 5}, {R0: 7})
    assert world.goes_on().plan.subtopology == "1"
    world.epoch(EpochEffect.LOOK)  # the stream isn't read in this round
    world.do(world.manager.looked("0", world.manager.epochs["0"].operation, {S0: 10, R0: 7}, {}, {"r": 2}, 0.0))
    assert world.goes_on().plan.subtopology == "1"
    assert world.goes_on({0: 1}).plan.mergers == {1: (M0,)}


def test_it_doesnt_wait_for_ever() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 0}, {R0: 7})
    assert world.manager.reason == "subtopology 0 waits until what was written to r-0 is merged"
    for now in (0.5, 0.9, 1.0):
        world.do(world.manager.epoch_happened("0", world.epoch(EpochEffect.PAUSE).operation, EpochEvent.DUE))
        world.sees({S0: 10, R0: 0}, now=now)
    assert world.manager.reason is None
    epoch = world.goes_on()
    assert epoch.plan.subtopology == "0" and not epoch.plan.mergers
    assert world.manager.epochs["0"].unsettled == {R0}  # the epoch has written to it


def test_rows_of_a_task_that_comes_may_have_gone_before() -> None:
    world = Chained()
    world.runs(M0)
    world.sees({R0: 0}, {R0: 0})
    assert not world.manager.epochs["1"].unsettled
    world.runs(T0)
    assert world.manager.epochs["1"].unsettled == {R0}


def test_rows_of_a_task_that_comes_during_an_epoch_may_have_gone_before_too() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 0}, {R0: 0})
    world.runs(T1)
    world.goes_on({0: 1})
    assert world.manager.epochs["1"].unsettled == {R0}


def test_what_was_asked_before_a_task_came_says_nothing_of_it() -> None:
    world = Chained()
    world.runs(M0)
    world.sees({R0: 0})
    world.do(world.manager.epoch_happened("0", world.epoch(EpochEffect.PAUSE).operation, EpochEvent.DUE))
    world.runs(T0)  # while it looks
    world.sees({R0: 0}, {R0: 0})
    assert world.manager.epochs["1"].unsettled == {R0}


def test_a_merger_that_is_revoked_goes_when_the_epoch_is_over() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 0}, {R0: 0})
    world.do(world.manager.revoked([M0]))
    assert world.state(M0) is TaskState.SUSPENDING and not world.acknowledged
    world.goes_on({0: 40})
    world.stores_closed(M0)
    assert world.acknowledged == [M0]
    world.sees({S0: 20})
    assert not world.goes_on().plan.mergers


def test_others_rows_go_through_the_topic() -> None:
    world = Chained()
    world.runs(T0, M0, M1)
    world.sees({S0: 10, R0: 0, R1: 0}, {R0: 0, R1: 50_000})  # M1 has much to read: nobody waits for that
    epoch = world.goes_on({0: 1})
    assert epoch.plan.mergers == {1: (M0,)}
    assert world.manager.epochs["0"].unsettled == {R1}


def test_what_waits_for_a_window_isnt_outrun() -> None:
    """What is merged at once moves stream time on: others' rows that wait for long would come late."""
    windowed = replace(MERGER, branches={0: StoreOutput("counts", "changelog", Windows(60_000, grace=0))})
    for merger, expected in ((MERGER, {1: (M0,)}), (windowed, {})):
        world = Chained(merger)
        world.runs(T0, M0)
        world.sees({S0: 10, R0: 0}, {R0: 0})
        assert world.goes_on({0: 1}).plan.mergers == {1: (M0,)}
        world.sees({S0: 20, R0: 100_000})
        assert world.goes_on().plan.subtopology == "1"  # only some of it
        assert world.goes_on({0: 1} if expected else None).plan.mergers == expected


def test_a_merger_isnt_to_blame_for_an_epoch_that_fails() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 0}, {R0: 0})
    world.epoch_event(EpochEffect.JOB, EpochEvent.FAILED, "an executor is gone")
    assert (world.manager.tasks[T0].failures, world.manager.tasks[M0].failures) == (1, 0)


def test_who_stops_the_application_is_told() -> None:
    world = Chained()
    world.runs(T0, M0)
    world.sees({S0: 10, R0: 5}, {R0: 5})
    world.epoch_event(EpochEffect.JOB, EpochEvent.STOP, "a bug")
    assert world.manager.stopped == {"1": "a bug"}
