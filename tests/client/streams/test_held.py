"""Tasks an application has, and how it is told of others."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.client.streams.held import HeldTasks
from kohort.streams.tasks import Role, TaskId

A, B, C = (TaskId("0", partition) for partition in range(3))
ACTIVE, STANDBY, WARMUP = Role


def having(**tasks: Role) -> HeldTasks:
    held = HeldTasks()
    held.target = {{"a": A, "b": B, "c": C}[name]: role for name, role in tasks.items()}
    while held.next_event():
        pass
    return held


def test_tasks_come_and_go() -> None:
    held = HeldTasks()
    held.target = {A: ACTIVE, B: STANDBY}
    assert not held.settled
    assert held.next_event() == Assigned({A: ACTIVE, B: STANDBY})
    assert held.next_event() is None
    assert held.settled
    held.target = {B: STANDBY, C: WARMUP}
    assert held.next_event() == Revoked({A: ACTIVE})
    assert held.next_event() == Assigned({C: WARMUP}), "what is new doesn't wait for what is old"
    assert held.owned == {A: ACTIVE, B: STANDBY, C: WARMUP}
    assert not held.settled
    held.closed([A])
    assert held.owned == {B: STANDBY, C: WARMUP}
    assert held.settled


def test_one_by_one() -> None:
    held = having(a=ACTIVE, b=ACTIVE)
    held.target = {}
    assert held.next_event() == Revoked({A: ACTIVE, B: ACTIVE})
    held.closed([B])
    assert held.owned == {A: ACTIVE}
    held.closed([A])
    assert held.settled


def test_what_is_over_is_never_told() -> None:
    held = HeldTasks()
    held.target = {A: ACTIVE}
    held.target = {B: ACTIVE}
    assert held.next_event() == Assigned({B: ACTIVE})
    held.target = {}
    held.target = {B: ACTIVE}
    assert held.next_event() is None


def test_a_promised_task_counts_as_taken() -> None:
    held = HeldTasks()
    held.target = {A: ACTIVE, B: WARMUP}
    assert held.owned == {A: ACTIVE, B: WARMUP}


def test_a_copy_becomes_the_running_task_at_once() -> None:
    held = having(a=STANDBY, b=WARMUP)
    held.target = {A: ACTIVE, B: STANDBY}
    assert held.next_event() == RolesChanged({A: (STANDBY, ACTIVE), B: (WARMUP, STANDBY)})
    assert held.settled
    with pytest.raises(ValueError, match="task 0_0 isn't to be closed"):
        held.closed([A])


def test_a_running_task_that_becomes_a_copy_runs_until_it_is_closed() -> None:
    held = having(a=ACTIVE)
    held.target = {A: STANDBY}
    assert held.owned == {A: ACTIVE}
    assert held.next_event() == RolesChanged({A: (ACTIVE, STANDBY)})
    assert held.owned == {A: ACTIVE}
    assert not held.settled
    held.closed([A])
    assert held.owned == {A: STANDBY}
    assert held.settled


def test_a_task_that_comes_back_while_it_is_closed_is_assigned_anew() -> None:
    held = having(a=ACTIVE)
    held.target = {}
    assert held.next_event() == Revoked({A: ACTIVE})
    held.target = {A: ACTIVE}
    assert held.next_event() is None
    held.closed([A])
    assert held.next_event() == Assigned({A: ACTIVE})


def test_lost_tasks_are_told_once_with_those_that_are_being_closed() -> None:
    held = having(a=ACTIVE, b=STANDBY)
    held.target = {B: STANDBY, C: ACTIVE}
    assert held.next_event() == Revoked({A: ACTIVE})
    held.lose()
    assert held.next_event() == Lost({A: ACTIVE, B: STANDBY}), "C was never told"
    assert held.next_event() is None
    held.closed([A])
    assert not held.settled
    held.closed([B])
    assert held.settled
    held.closed([A])  # once more does no harm


def test_losing_nothing_is_nothing() -> None:
    held = HeldTasks()
    held.target = {A: ACTIVE}
    held.lose()
    assert held.settled
    assert held.next_event() is None


TASKS = [TaskId(name, partition) for name in "01" for partition in range(3)]
TARGETS = st.dictionaries(st.sampled_from(TASKS), st.sampled_from(Role))


class Telling(RuleBasedStateMachine):
    """Whatever is told in whatever order, an application that does as it is told comes to what it shall have."""

    def __init__(self) -> None:
        super().__init__()
        self.held = HeldTasks()
        self.has: dict[TaskId, Role] = {}
        self.closing: dict[TaskId, Role | None] = {}

    @rule(target_tasks=TARGETS)
    def told_by_the_group(self, target_tasks: dict[TaskId, Role]) -> None:
        self.held.target = target_tasks

    @rule()
    def asks(self) -> None:
        match self.held.next_event():
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
                assert kept.items() <= self.held.target.items()
                assert kept.keys() | self.closing.keys() >= self.held.target.keys()

    @precondition(lambda self: self.closing)
    @rule(data=st.data())
    def closes(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.closing)))
        after = self.closing.pop(task)
        if after is None:
            del self.has[task]
        else:
            self.has[task] = after
        self.held.closed([task])

    @rule()
    def is_fenced(self) -> None:
        self.held.lose()
        while self.held.next_event():
            pass
        self.closing = dict.fromkeys(self.has)

    @invariant()
    def the_group_reckons_with_all_that_runs(self) -> None:
        assert self.held.told == self.has
        for task, role in self.has.items():
            assert self.held.owned[task] is Role.ACTIVE or role is not Role.ACTIVE

    @invariant()
    def settled_means_settled(self) -> None:
        assert self.held.settled == (self.has == self.held.target and not self.closing)


TestTelling = Telling.TestCase
TestTelling.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
