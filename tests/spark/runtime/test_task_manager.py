"""The task manager by itself: what the group wants and what came of effects in, effects out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from kohort.client.types import TopicPartition
from kohort.spark.epoch import EpochStatistics, OffsetRange
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime.clock_timers import NO_TIMERS, DueTimers
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs, ForTask
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent, EpochState
from kohort.spark.runtime.local_task import tasks_now
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskEffect, TaskEvent, TaskState
from kohort.streams.tasks import Role, TaskId

S0, S1 = TopicPartition("s", 0), TopicPartition("s", 1)
T0, T1 = TaskId("0", 0), TaskId("0", 1)
PLAN = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: StoreOutput("counts", "changelog")})


class ManagedTasks:
    """A manager, and the effects that have no outcome yet: the latest for each task, and for the subtopology."""

    def __init__(self, *plans: SubtopologyPlan) -> None:
        self.manager = TaskManager({plan.id: plan for plan in plans or (PLAN,)}, Fingerprint("p"))
        self.tasks: dict[TaskId, ForTask] = {}
        self.epochs: ForEpochs | None = None
        self.acknowledged: list[TaskId] = []
        self.done: list[str] = []
        self.cancelled: set[TaskId] = set()

    def do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.done.append(effect.effect.name)
            if isinstance(effect, ForEpochs):
                if effect.effect not in (EpochEffect.REPORT, EpochEffect.STOP):
                    self.epochs = effect
            elif effect.effect is TaskEffect.ACKNOWLEDGE:
                self.acknowledged.append(effect.task)
            elif effect.effect is TaskEffect.CANCEL:
                self.cancelled.add(effect.task)
            else:
                self.tasks[effect.task] = effect

    def state(self, task: TaskId = T0) -> TaskState:
        return self.manager.tasks[task].state

    def take(self, task: TaskId, effect: TaskEffect) -> int:
        """What is under way for a task must be this; its operation."""
        assert self.tasks[task].effect is effect, self.tasks[task]
        return self.tasks.pop(task).operation

    def restored(self, task: TaskId = T0, at: int = 0) -> None:
        operation = self.take(task, TaskEffect.RESTORE)
        self.do(self.manager.restored(task, operation, {TopicPartition("s", task.partition): at}, None))

    def event(self, effect: TaskEffect, event: TaskEvent, task: TaskId = T0, why: str | None = None) -> None:
        self.do(self.manager.task_happened(task, self.take(task, effect), event, why))

    def stores_closed(self, task: TaskId = T0, position: int | None = None) -> None:
        self.do(self.manager.stores_closed(task, self.take(task, TaskEffect.CLOSE), position))

    def epoch(self, effect: EpochEffect) -> ForEpochs:
        """What is under way for the subtopology must be this."""
        assert self.epochs is not None and self.epochs.effect is effect, self.epochs
        found, self.epochs = self.epochs, None
        return found

    def epoch_event(self, effect: EpochEffect, event: EpochEvent, why: str | None = None) -> None:
        self.do(self.manager.epoch_happened("0", self.epoch(effect).operation, event, why))

    def looked(self, ends: dict[TopicPartition, int], now: float = 0, due: DueTimers = NO_TIMERS) -> None:
        self.do(self.manager.looked("0", self.epoch(EpochEffect.LOOK).operation, ends, {}, {}, now, due))

    def job_done(self, max_times: dict[int, int] | None = None) -> Epoch:
        effect = self.epoch(EpochEffect.JOB)
        assert effect.epoch is not None
        statistics = EpochStatistics(records=effect.epoch.epoch_input.length, max_times=max_times or {})
        self.do(self.manager.job_done("0", effect.operation, statistics))
        return effect.epoch

    def committed(self) -> None:
        self.epoch_event(EpochEffect.SEND, EpochEvent.SENT)
        self.epoch_event(EpochEffect.COMMIT, EpochEvent.COMMITTED)
        self.do(self.manager.stored("0", self.epoch(EpochEffect.STORE).operation, 100.0))

    def run(self, *tasks: TaskId) -> None:
        """Assign tasks and restore them."""
        self.do(self.manager.assigned(dict.fromkeys(tasks, Role.ACTIVE)))
        for task in tasks:
            self.restored(task)


def test_timers_of_the_clock_make_epochs_whose_time_goes_up() -> None:
    world, times = ManagedTasks(), []
    world.run(T0)
    for clock, due in ((5_000, [T0]), (4_000, [T0]), (9_000, [T0])):
        world.looked({S0: 0}, due=DueTimers(clock, due))
        epoch = world.job_done()
        assert epoch.epoch_input.ranges == (OffsetRange("s", 0, 0, 0),)
        times.append(epoch.epoch_input.now)
        world.committed()
        world.looked({S0: 0}, due=DueTimers(clock))
        world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
    assert times == [5_000, 5_001, 9_000]


def test_an_active_task_is_restored_and_runs_epochs() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    assert world.state() is TaskState.IN_EPOCH
    epoch = world.job_done({0: 99})
    assert (
        epoch.offsets is not None
        and epoch.offsets[S0].offset == 10
        and '"stream_time":99' in epoch.offsets[S0].metadata
    )
    assert world.state() is TaskState.COMMITTING
    world.committed()
    task = world.manager.tasks[T0]
    assert (task.state, task.positions, task.stream_time) == (TaskState.RUNNING, {S0: 10}, 99)
    assert world.epochs is not None and world.epochs.effect is EpochEffect.LOOK
    world.looked({S0: 10})
    assert world.epochs.effect is EpochEffect.PAUSE and world.manager.epochs["0"].state is EpochState.PAUSED


def test_topics_that_are_joined_where_they_lie_are_not_read_while_one_has_grown() -> None:
    """By the other's count records that lie well would be misplaced, and dropped."""
    inputs = SubtopologyInputs("s", {}, ("r",), together=True)
    world = ManagedTasks(SubtopologyPlan("0", inputs, {}, placed=frozenset({"s", "r"})))
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    r0 = TopicPartition("r", 0)
    world.do(world.manager.restored(T0, world.take(T0, TaskEffect.RESTORE), {S0: 0, r0: 0}, None))
    for counts, reads in (({"s": 2, "r": 4}, False), ({"s": 4, "r": 4}, True)):
        operation = world.epoch(EpochEffect.LOOK).operation
        world.do(world.manager.looked("0", operation, {S0: 5, r0: 5}, {}, counts, 0, NO_TIMERS))
        epochs = world.manager.epochs["0"]
        if not reads:
            assert epochs.why == "topics that are joined need equally many partitions, but r has 4 and s has 2"
            world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
    epoch = world.job_done()
    assert (epoch.epoch_input.length, epoch.epoch_input.partitions) == (10, 4)


def test_both_sides_of_a_join_are_committed_together_and_read_on_from_there() -> None:
    inputs, r0 = SubtopologyInputs("s", {}, ("r",), together=True), TopicPartition("r", 0)
    world = ManagedTasks(SubtopologyPlan("0", inputs, {}))
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.do(world.manager.restored(T0, world.take(T0, TaskEffect.RESTORE), {S0: 3, r0: 7}, 20))
    world.looked({S0: 5, r0: 7})
    offsets = world.job_done({0: 99}).offsets
    assert offsets is not None and {at: each.offset for at, each in offsets.items()} == {S0: 5, r0: 7}
    assert all('"stream_time":99' in each.metadata for each in offsets.values()), "of the side that wasn't read, too"
    world.committed()
    assert world.manager.tasks[T0].positions == {S0: 5, r0: 7}
    world.looked({S0: 5, r0: 8})
    assert world.job_done().epoch_input.ranges == (OffsetRange("s", 0, 5, 5), OffsetRange("r", 0, 7, 8))


def test_tasks_that_are_assigned_together_begin_together() -> None:
    """Or the backlog of the first would go before that of the others."""
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE, T1: Role.ACTIVE}))
    world.restored(T0)
    assert world.epochs is not None and world.epochs.effect is EpochEffect.GATHER
    world.restored(T1)
    world.looked({S0: 3, S1: 3})
    assert world.epochs.epoch is not None and world.epochs.epoch.plan.tasks == (T0, T1)


def test_one_that_takes_long_to_restore_holds_up_none() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE, T1: Role.ACTIVE}))
    world.restored(T0)
    world.epoch_event(EpochEffect.GATHER, EpochEvent.GATHERED)
    world.looked({S0: 3, S1: 3})
    assert world.epochs is not None and world.epochs.epoch is not None and world.epochs.epoch.plan.tasks == (T0,)


def test_a_revoked_task_finishes_its_epoch_and_the_others_go_on() -> None:
    world = ManagedTasks()
    world.run(T0, T1)
    world.looked({S0: 10, S1: 10})
    world.do(world.manager.revoked([T0]))
    assert world.state() is TaskState.SUSPENDING and not world.acknowledged
    world.job_done()
    world.committed()
    assert world.state(T1) is TaskState.RUNNING and world.state() is TaskState.CLOSING
    world.stores_closed(position=7)
    assert world.acknowledged == [T0] and T0 not in world.manager.tasks and world.manager.left == {T0: 7}


def test_one_that_is_in_no_epoch_is_closed_at_once() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.do(world.manager.assigned({T1: Role.ACTIVE}))
    world.restored(T1)
    world.do(world.manager.revoked([T1]))
    world.stores_closed(T1)
    assert world.acknowledged == [T1] and world.state() is TaskState.IN_EPOCH


def test_lost_tasks_take_their_epoch_with_them() -> None:
    world = ManagedTasks()
    world.run(T0, T1)
    world.looked({S0: 10, S1: 10})
    world.do(world.manager.revoked([T1]))
    world.do(world.manager.lost())
    assert world.state() is world.state(T1) is TaskState.ABORTING and not world.acknowledged
    world.epoch_event(EpochEffect.ABORT, EpochEvent.ABORTED)
    world.stores_closed(T0)
    world.stores_closed(T1)
    assert sorted(world.acknowledged) == [T0, T1] and not world.manager.tasks


def test_what_a_lost_job_comes_to_changes_nothing() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    job = world.epochs
    assert job is not None
    world.do(world.manager.lost())
    before = list(world.done)
    world.do(world.manager.job_done("0", job.operation, EpochStatistics()))
    world.do(world.manager.epoch_happened("0", job.operation, EpochEvent.FAILED, "cancelled"))
    assert world.done == before and world.manager.tasks[T0].failures == 0


def test_an_epoch_that_is_being_stored_when_its_task_is_lost_counts() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.job_done()
    world.epoch_event(EpochEffect.SEND, EpochEvent.SENT)
    world.epoch_event(EpochEffect.COMMIT, EpochEvent.COMMITTED)
    world.do(world.manager.lost())
    assert world.state() is TaskState.ABORTING
    world.do(world.manager.stored("0", world.epoch(EpochEffect.STORE).operation, 1.0))
    world.stores_closed()
    assert world.acknowledged == [T0]


def test_a_copy_follows_and_is_promoted_as_it_is() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.STANDBY}))
    world.event(TaskEffect.FOLLOW, TaskEvent.OPENED)
    world.do(world.manager.roles_changed({T0: (Role.STANDBY, Role.WARMUP)}))
    assert world.state() is TaskState.FOLLOWING and not world.tasks
    assert tasks_now(0, world.manager.tasks.values(), {}).warmup == ("0_0",)
    world.do(world.manager.roles_changed({T0: (Role.WARMUP, Role.ACTIVE)}))
    world.restored()
    assert world.state() is TaskState.RUNNING and "CLOSE" not in world.done and not world.acknowledged


def test_a_task_that_is_demoted_is_acknowledged_once_it_runs_no_more_and_follows() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.STANDBY)}))
    assert tasks_now(0, world.manager.tasks.values(), {}).closing == ("0_0",)
    world.job_done()
    assert not world.acknowledged
    world.committed()
    assert world.acknowledged == [T0]
    world.event(TaskEffect.FOLLOW, TaskEvent.OPENED)
    assert world.state() is TaskState.FOLLOWING and "CLOSE" not in world.done


def test_a_task_that_is_lost_while_it_is_demoted_is_acknowledged_once() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.STANDBY)}))
    world.do(world.manager.lost())
    world.epoch_event(EpochEffect.ABORT, EpochEvent.ABORTED)
    world.stores_closed()
    assert world.acknowledged == [T0] and not world.manager.tasks
    world.run(T0)  # it joins again, and gets the task back
    assert world.state() is TaskState.RUNNING


@pytest.mark.parametrize("then", ["revoked", "lost", "demoted"])
def test_restoring_is_cancelled_and_nothing_is_done_at_the_same_time(then: str) -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    match then:
        case "revoked":
            world.do(world.manager.revoked([T0]))
        case "lost":
            world.do(world.manager.lost())
        case _:
            world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.WARMUP)}))
    assert world.cancelled == {T0} and world.state() is TaskState.CANCELLING and not world.acknowledged
    world.event(TaskEffect.RESTORE, TaskEvent.CANCELLED)
    if then == "demoted":
        assert world.acknowledged == [T0]
        world.event(TaskEffect.FOLLOW, TaskEvent.OPENED)
    else:
        world.stores_closed()
        assert world.acknowledged == [T0] and not world.manager.tasks


def test_a_restore_that_is_done_before_it_is_cancelled_does_not_run() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.do(world.manager.revoked([T0]))
    world.restored()
    assert world.state() is TaskState.CLOSING and world.manager.epochs["0"].state is EpochState.IDLE


def test_however_often_the_group_changes_its_mind_the_last_word_holds() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.STANDBY)}))
    world.do(world.manager.roles_changed({T0: (Role.STANDBY, Role.ACTIVE)}))
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.WARMUP)}))
    world.do(world.manager.revoked([T0]))
    world.event(TaskEffect.RESTORE, TaskEvent.CANCELLED)
    world.stores_closed()
    assert world.acknowledged == [T0] and world.done == ["RESTORE", "CANCEL", "CLOSE", "ACKNOWLEDGE"]


def test_what_cannot_be_restored_is_tried_again_and_says_why() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.manager.says("group", "the group says nothing")
    for _ in range(2):
        world.event(TaskEffect.RESTORE, TaskEvent.FAILED, why="no broker")
        assert world.tasks[T0].seconds > 0
        world.manager.says("group", None)
        assert world.manager.reason == "task 0_0 can't be restored yet: no broker"
        world.event(TaskEffect.WAIT, TaskEvent.DUE)
    assert world.manager.reason is not None  # until it is restored
    world.restored()
    assert world.manager.reason is None


def test_one_that_waits_to_be_tried_again_is_given_up_at_once() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.STANDBY}))
    world.event(TaskEffect.FOLLOW, TaskEvent.FAILED, why="the disk is full")
    assert world.manager.reason == "task 0_0 can't follow its changelogs yet: the disk is full"
    pause = world.tasks[T0]
    world.do(world.manager.revoked([T0]))
    assert world.manager.reason is None
    world.do(world.manager.task_happened(T0, pause.operation, TaskEvent.DUE))  # too late
    world.stores_closed()
    assert world.acknowledged == [T0]


def test_a_transaction_is_sent_again_while_nothing_of_it_can_count() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.job_done()
    pauses = []
    for _ in range(3):
        world.epoch_event(EpochEffect.SEND, EpochEvent.SEND_AGAIN, "the member's epoch is stale")
        assert world.manager.reason == "the member's epoch is stale" and world.epochs is not None
        pauses.append(world.epochs.seconds)
        world.epoch_event(EpochEffect.SEND_LATER, EpochEvent.DUE)
    assert pauses == [0.05, 0.1, 0.2]
    world.epoch_event(EpochEffect.SEND, EpochEvent.SENT)
    world.epoch_event(EpochEffect.COMMIT, EpochEvent.UNANSWERED, "no answer")
    assert world.done.count("SEND") == 4 and world.manager.reason == "no answer"
    world.epoch_event(EpochEffect.COMMIT, EpochEvent.COMMITTED)
    assert world.manager.reason is None


def test_when_nobody_knows_whether_it_counts_its_tasks_begin_from_what_is_committed() -> None:
    world = ManagedTasks()
    world.run(T0, T1)
    world.looked({S0: 10})
    world.job_done()
    world.epoch_event(EpochEffect.SEND, EpochEvent.SENT)
    world.epoch_event(EpochEffect.COMMIT, EpochEvent.RESTART, "fenced")
    assert world.state() is TaskState.COMMITTING  # not before the producer is closed
    world.epoch_event(EpochEffect.CLOSE_PRODUCER, EpochEvent.CLOSED)
    assert world.state() is TaskState.CLOSING and world.state(T1) is TaskState.RUNNING  # it was in no epoch
    world.stores_closed()
    world.restored(T0, 10)
    assert world.manager.tasks[T0].failures == 0


def test_an_epoch_that_always_fails_stops_the_application_also_if_others_succeed() -> None:
    world = ManagedTasks()
    world.run(T0, T1)
    for failures in (1, 2, 3):
        world.looked({S0: 10})
        world.epoch_event(EpochEffect.JOB, EpochEvent.FAILED, "a bug")
        if failures == 3:
            break
        world.epoch_event(EpochEffect.CLOSE_PRODUCER, EpochEvent.CLOSED)
        assert world.epochs is not None and world.epochs.seconds == (0.5, 2.0)[failures - 1]
        world.epoch_event(EpochEffect.BACK_OFF, EpochEvent.DUE)
        world.epoch_event(EpochEffect.GATHER, EpochEvent.GATHERED)
        world.looked({S1: 10 * failures})
        world.job_done()
        world.committed()
        world.stores_closed()
        world.restored()
    assert world.done[-1] != "JOB" and "STOP" in world.done
    assert world.manager.stopped == {
        "0": "subtopology 0 failed 3 times in a row at the same records, from s-0:0: a bug"
    }
    world.stores_closed()
    assert world.state() is TaskState.CREATED  # it isn't restored any more
    world.do(world.manager.revoked([T0, T1]))
    world.stores_closed(T1)
    assert sorted(world.acknowledged) == [T0, T1]


def test_a_topic_that_is_shorter_than_what_was_read() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.restored(at=10)
    world.looked({S0: 3}, now=100)
    assert world.manager.reason == "s-0 ends at offset 3, but the application has read up to 10"
    world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
    world.looked({S0: 10}, now=114)  # a new leader knows by now
    assert world.manager.reason is None
    for now in (115, 129, 131):
        world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
        world.looked({S0: 3}, now=now)
    assert "deleted and created again" in world.manager.stopped["0"]


def test_brokers_that_do_not_say_where_inputs_end_are_asked_again() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.epoch_event(EpochEffect.LOOK, EpochEvent.UNSEEN, "no broker")
    assert world.manager.reason == "no broker" and world.epochs is not None and world.epochs.seconds > 0
    world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
    world.looked({S0: 1})
    assert world.manager.reason is None


def test_a_subtopology_without_tasks_comes_to_rest() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.do(world.manager.revoked([T0]))
    world.stores_closed()
    world.looked({S0: 10})
    assert world.manager.epochs["0"].state is EpochState.IDLE and world.epochs is None


def test_a_failed_epoch_is_no_reason_any_more_when_its_tasks_have_gone() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.do(world.manager.revoked([T0]))
    world.epoch_event(EpochEffect.JOB, EpochEvent.FAILED, "an executor is gone")
    assert world.manager.reason == "an epoch of subtopology 0 failed: an executor is gone"
    world.epoch_event(EpochEffect.CLOSE_PRODUCER, EpochEvent.CLOSED)
    world.stores_closed()
    world.epoch_event(EpochEffect.BACK_OFF, EpochEvent.DUE)
    assert world.acknowledged == [T0] and world.manager.reason is None


def test_a_failed_epoch_is_the_reason_until_its_tasks_get_on() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.epoch_event(EpochEffect.JOB, EpochEvent.FAILED, "an executor is gone")
    world.epoch_event(EpochEffect.CLOSE_PRODUCER, EpochEvent.CLOSED)
    world.epoch_event(EpochEffect.BACK_OFF, EpochEvent.DUE)
    world.stores_closed()
    assert world.manager.reason == "an epoch of subtopology 0 failed: an executor is gone", "its task is being restored"
    world.restored()
    world.looked({S0: 10})
    assert world.manager.reason is None


def test_the_reason_that_has_held_the_longest_is_told() -> None:
    manager = TaskManager({"0": PLAN}, Fingerprint("p"))
    manager.says("changelogs", None)
    manager.says("group", "no tasks yet")
    manager.says("changelogs", "no broker")
    manager.says("group", "no tasks yet, still")
    assert manager.reason == "no tasks yet, still"
    manager.says("group", None)
    assert manager.reason == "no broker"
    manager.says("changelogs", None)
    assert manager.reason is None


def test_failures_of_a_task_that_followed_meanwhile_do_not_count() -> None:
    """Others have committed its records since."""
    world = ManagedTasks()
    world.run(T0)
    for _ in range(2):
        world.looked({S0: 10})
        world.epoch_event(EpochEffect.JOB, EpochEvent.FAILED, "a hiccup")
        world.epoch_event(EpochEffect.CLOSE_PRODUCER, EpochEvent.CLOSED)
        world.epoch_event(EpochEffect.BACK_OFF, EpochEvent.DUE)
        world.stores_closed()
        world.restored()
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.STANDBY)}))
    world.event(TaskEffect.FOLLOW, TaskEvent.OPENED)
    world.do(world.manager.roles_changed({T0: (Role.STANDBY, Role.ACTIVE)}))
    world.restored(at=5_000)
    assert world.manager.tasks[T0].failures == 0


def test_all_tasks_are_lost_together() -> None:
    """Also one that the member doesn't know of any more, since it was given up just before."""
    world = ManagedTasks()
    world.run(T0)
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.STANDBY)}))
    world.event(TaskEffect.FOLLOW, TaskEvent.OPENED)
    world.do(world.manager.lost())
    world.stores_closed()
    assert not world.manager.tasks


def test_how_long_a_topic_is_short_is_counted_anew_for_other_tasks() -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.restored(at=10)
    world.looked({S0: 3}, now=100)
    world.do(world.manager.revoked([T0]))
    world.stores_closed()
    world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
    world.do(world.manager.assigned({T1: Role.ACTIVE}))
    world.restored(T1, 10)
    world.looked({S1: 3}, now=4_000)
    assert not world.manager.stopped and world.manager.reason is not None


def test_a_failed_epoch_says_what_failed() -> None:
    world = ManagedTasks()
    world.run(T0)
    world.looked({S0: 10})
    world.epoch_event(EpochEffect.JOB, EpochEvent.FAILED, "ZeroDivisionError: division by zero")
    assert world.manager.reason == "an epoch of subtopology 0 failed: ZeroDivisionError: division by zero"


@pytest.mark.parametrize("role", [Role.ACTIVE, Role.STANDBY])
def test_what_is_cancelled_though_nobody_asked_for_that_is_tried_again(role: Role) -> None:
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: role}))
    world.event(TaskEffect.RESTORE if role is Role.ACTIVE else TaskEffect.FOLLOW, TaskEvent.CANCELLED)
    assert world.state() is TaskState.RETRYING


def test_it_is_known_whether_tasks_have_changed() -> None:
    world = ManagedTasks()
    world.run(T0)
    before = world.manager.changes
    world.looked({S0: 0})
    world.epoch_event(EpochEffect.PAUSE, EpochEvent.DUE)
    assert world.manager.changes == before
    world.looked({S0: 1})
    assert world.manager.changes > before


def test_many_tasks_are_assigned_in_linear_time() -> None:
    def looks(count: int) -> int:
        manager = TaskManager({"0": PLAN}, Fingerprint("p"))
        epochs = manager.epochs["0"]
        looked = 0

        def count_look(moved: Callable[[], None] = epochs.tasks_moved) -> None:
            nonlocal looked
            looked += 1
            moved()

        epochs.tasks_moved = count_look  # type: ignore[method-assign]
        manager.assigned({TaskId("0", number): Role.ACTIVE for number in range(count)})
        return looked

    assert looks(10) == looks(100) == 1


def test_a_task_that_is_assigned_again_owes_no_acknowledgement() -> None:
    """The member may have taken one that came just before it was fenced for that of the loss."""
    world = ManagedTasks()
    world.do(world.manager.assigned({T0: Role.ACTIVE}))
    world.do(world.manager.roles_changed({T0: (Role.ACTIVE, Role.STANDBY)}))
    world.do(world.manager.lost())
    world.do(world.manager.assigned({T0: Role.STANDBY}))
    world.event(TaskEffect.RESTORE, TaskEvent.CANCELLED)
    assert world.tasks[T0].effect is TaskEffect.FOLLOW and not world.acknowledged
