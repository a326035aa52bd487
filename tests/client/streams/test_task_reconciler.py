"""Tasks an application has, and how it is told of others."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.client.streams.task_reconciler import TaskReconciler
from kohort.streams.tasks import Role, TaskId

A, B, C = (TaskId("0", partition) for partition in range(3))
ACTIVE, STANDBY, WARMUP = Role


def having(**tasks: Role) -> TaskReconciler:
    reconciler = TaskReconciler()
    reconciler.target = {{"a": A, "b": B, "c": C}[name]: role for name, role in tasks.items()}
    while reconciler.next_event():
        pass
    return reconciler


def test_tasks_come_and_go() -> None:
    reconciler = TaskReconciler()
    reconciler.target = {A: ACTIVE, B: STANDBY}
    assert not reconciler.reconciled
    assert reconciler.next_event() == Assigned({A: ACTIVE, B: STANDBY})
    assert reconciler.next_event() is None
    assert reconciler.reconciled
    reconciler.target = {B: STANDBY, C: WARMUP}
    assert reconciler.next_event() == Revoked({A: ACTIVE})
    assert reconciler.next_event() == Assigned({C: WARMUP}), "what is new doesn't wait for what is old"
    assert reconciler.owned == {A: ACTIVE, B: STANDBY, C: WARMUP}
    assert not reconciler.reconciled
    reconciler.closed([A])
    assert reconciler.owned == {B: STANDBY, C: WARMUP}
    assert reconciler.reconciled


def test_one_by_one() -> None:
    reconciler = having(a=ACTIVE, b=ACTIVE)
    reconciler.target = {}
    assert reconciler.next_event() == Revoked({A: ACTIVE, B: ACTIVE})
    reconciler.closed([B])
    assert reconciler.owned == {A: ACTIVE}
    reconciler.closed([A])
    assert reconciler.reconciled


def test_what_is_over_is_never_told() -> None:
    reconciler = TaskReconciler()
    reconciler.target = {A: ACTIVE}
    reconciler.target = {B: ACTIVE}
    assert reconciler.next_event() == Assigned({B: ACTIVE})
    reconciler.target = {}
    reconciler.target = {B: ACTIVE}
    assert reconciler.next_event() is None


def test_a_promised_task_counts_as_taken() -> None:
    reconciler = TaskReconciler()
    reconciler.target = {A: ACTIVE, B: WARMUP}
    assert reconciler.owned == {A: ACTIVE, B: WARMUP}


def test_a_copy_becomes_the_running_task_at_once() -> None:
    reconciler = having(a=STANDBY, b=WARMUP)
    reconciler.target = {A: ACTIVE, B: STANDBY}
    assert reconciler.next_event() == RolesChanged({A: (STANDBY, ACTIVE), B: (WARMUP, STANDBY)})
    assert reconciler.reconciled
    with pytest.raises(ValueError, match="task 0_0 isn't to be closed"):
        reconciler.closed([A])


def test_a_running_task_that_becomes_a_copy_runs_until_it_is_closed() -> None:
    reconciler = having(a=ACTIVE)
    reconciler.target = {A: STANDBY}
    assert reconciler.owned == {A: ACTIVE}
    assert reconciler.next_event() == RolesChanged({A: (ACTIVE, STANDBY)})
    assert reconciler.owned == {A: ACTIVE}
    assert not reconciler.reconciled
    reconciler.closed([A])
    assert reconciler.owned == {A: STANDBY}
    assert reconciler.reconciled


def test_a_task_that_comes_back_while_it_is_closed_is_assigned_anew() -> None:
    reconciler = having(a=ACTIVE)
    reconciler.target = {}
    assert reconciler.next_event() == Revoked({A: ACTIVE})
    reconciler.target = {A: ACTIVE}
    assert reconciler.next_event() is None
    reconciler.closed([A])
    assert reconciler.next_event() == Assigned({A: ACTIVE})


def test_lost_tasks_are_told_once_with_those_that_are_being_closed() -> None:
    reconciler = having(a=ACTIVE, b=STANDBY)
    reconciler.target = {B: STANDBY, C: ACTIVE}
    assert reconciler.next_event() == Revoked({A: ACTIVE})
    reconciler.lose()
    assert reconciler.next_event() == Lost({A: ACTIVE, B: STANDBY}), "C was never told"
    assert reconciler.next_event() is None
    reconciler.closed([A])
    assert not reconciler.reconciled
    reconciler.closed([B])
    assert reconciler.reconciled
    reconciler.closed([A])  # once more does no harm


def test_losing_nothing_is_nothing() -> None:
    reconciler = TaskReconciler()
    reconciler.target = {A: ACTIVE}
    reconciler.lose()
    assert reconciler.reconciled
    assert reconciler.next_event() is None


TASKS = [TaskId(name, partition) for name in "01" for partition in range(3)]
TARGETS = st.dictionaries(st.sampled_from(TASKS), st.sampled_from(Role))


class Telling(RuleBasedStateMachine):
    """Whatever is told in whatever order, an application that does as it is told comes to what it shall have."""

    def __init__(self) -> None:
        super().__init__()
        self.reconciler = TaskReconciler()
        self.has: dict[TaskId, Role] = {}
        self.closing: dict[TaskId, Role | None] = {}

    @rule(target_tasks=TARGETS)
    def told_by_the_group(self, target_tasks: dict[TaskId, Role]) -> None:
        self.reconciler.target = target_tasks

    @rule()
    def asks(self) -> None:
        match self.reconciler.next_event():
            case Assigned(tasks):
                assert tasks
                assert not tasks.keys() & self.has.keys()
                self.has.update(tasks)
            case Revoked(tasks):
                assert tasks.items() <= self.has.items()
                assert not tasks.keys() & self.closing.keys()
                self.closing.update(dict.fromkeys(tasks))
            case RolesChanged(tasks):
                for task, (before, after) in tasks.items():
                    assert self.has[task] is before
                    assert before is not after
                    assert task not in self.closing
                    if before is Role.ACTIVE:
                        self.closing[task] = after
                    else:
                        self.has[task] = after
            case Lost(tasks):
                assert tasks == self.has
                self.closing = dict.fromkeys(self.has)
            case None:
                kept = {task: role for task, role in self.has.items() if task not in self.closing}
                assert kept.items() <= self.reconciler.target.items()
                assert kept.keys() | self.closing.keys() >= self.reconciler.target.keys()

    @precondition(lambda self: self.closing)
    @rule(data=st.data())
    def closes(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.closing)))
        after = self.closing.pop(task)
        if after is None:
            del self.has[task]
        else:
            self.has[task] = after
        self.reconciler.closed([task])

    @rule()
    def is_fenced(self) -> None:
        self.reconciler.lose()
        while self.reconciler.next_event():
            pass
        self.closing = dict.fromkeys(self.has)

    @invariant()
    def the_group_reckons_with_all_that_runs(self) -> None:
        assert self.reconciler.current == self.has
        for task, role in self.has.items():
            assert self.reconciler.owned[task] is Role.ACTIVE or role is not Role.ACTIVE

    @invariant()
    def reconciled_means_reconciled(self) -> None:
        assert self.reconciler.reconciled == (self.has == self.reconciler.target and not self.closing)


TestTelling = Telling.TestCase
TestTelling.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
