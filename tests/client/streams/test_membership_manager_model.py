"""A member whom anything happens to, in any order: it never gets stuck, and says and has what it should."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kohort.client.backoff import Backoff
from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.client.streams.heartbeat_errors import HEARTBEAT_ERRORS
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import HEARTBEATING, State
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kohort.streams.tasks import Role, TaskId, task_ids
from kohort.streams.topology import Subtopology, Topology

TOPOLOGY = Topology({"0": Subtopology(source_topics=["in"])})
TASKS = st.dictionaries(st.builds(TaskId, st.just("0"), st.integers(0, 3)), st.sampled_from(Role))
TEMPORARY = [code for code in ErrorCode if code.retriable]


class Anything(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        member_settings = MemberSettings(group_id="g", topology=TOPOLOGY, member_id="m", process_id="p")
        self.member = StreamsMembershipManager(member_settings, Backoff(10, 100, Random(0)), leave_within_ms=1_000)
        self.asked: StreamsGroupHeartbeatRequest | None = None
        self.epoch = 0
        self.to_close: set[TaskId] = set()
        self.told_lost = 0

    @initialize()
    def begins(self) -> None:
        self.member.begin(self.now)

    @precondition(lambda self: self.member.due_at is not None)
    @rule()
    def sends(self) -> None:
        self.now = max(self.now, self.member.due_at or 0)
        self.asked = self.member.request(self.now, 1)
        assert self.asked.member_epoch in (0, self.epoch, -1)
        if self.asked.member_epoch == 0:
            assert self.asked.topology is not None
            assert not self.member.tasks.current, "it has nothing when it joins"
        else:
            assert self.asked.topology is None

    def answer(self, **fields: Any) -> None:
        assert self.asked is not None
        given: dict[str, Any] = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "status"))
        given |= {"member_id": "m", "member_epoch": self.epoch, "heartbeat_interval_ms": 100}
        given |= {"task_offset_interval_ms": 100, "partitions_by_user_endpoint": None}
        self.asked = None
        self.member.on_response(StreamsGroupHeartbeatResponse(**(given | fields)), self.now)

    @precondition(lambda self: self.asked)
    @rule(tasks=st.none() | TASKS, rises=st.booleans(), shutdown=st.integers(0, 20).map(lambda drawn: drawn == 0))
    def is_answered(self, tasks: dict[TaskId, Role] | None, rises: bool, shutdown: bool) -> None:
        assert self.asked is not None
        if self.asked.member_epoch < 0:
            self.answer(member_epoch=-1)
            assert self.member.state is State.LEFT
            return
        self.epoch = max(1, self.epoch + rises)
        fields: dict[str, Any] = {}
        if tasks is not None:
            names = ("active_tasks", "standby_tasks", "warmup_tasks")
            fields = {name: task_ids(TaskIds, tasks, role) for name, role in zip(names, Role, strict=True)}
        self.answer(status=[Status(status_code=4, status_detail="")] if shutdown else [], **fields)

    @precondition(lambda self: self.asked)
    @rule(
        code=st.sampled_from([*TEMPORARY, *[code for code in HEARTBEAT_ERRORS.reactions if code]]),
        message=st.none() | st.text(),
    )
    def is_refused(self, code: ErrorCode, message: str | None) -> None:
        self.answer(error_code=code, error_message=message)

    @precondition(lambda self: self.asked)
    @rule()
    def misses(self) -> None:
        self.asked = None
        self.member.on_failure(self.now)

    @rule()
    def looks(self) -> None:
        match self.member.next_event(self.now):
            case Revoked(tasks):
                self.to_close |= tasks.keys()
            case Lost(tasks):
                self.to_close = set(tasks)
            case RolesChanged(tasks):
                self.to_close |= {task for task, (before, _) in tasks.items() if before is Role.ACTIVE}
            case Assigned(tasks):
                assert not tasks.keys() & self.to_close

    @precondition(lambda self: self.to_close)
    @rule()
    def closes(self) -> None:
        self.member.closed([self.to_close.pop()], self.now)

    @rule(chance=st.integers(0, 9), how=st.sampled_from(["stop", "quit"]))
    def ends(self, chance: int, how: str) -> None:
        if chance == 0:
            if how == "stop":
                self.member.stop(self.now)
            else:
                self.member.quit(self.now)
                self.to_close.clear()

    @rule(ms=st.integers(1, 500))
    def waits(self, ms: int) -> None:
        self.now += ms

    @invariant()
    def somebody_has_to_do_something(self) -> None:
        member = self.member
        if member.state in HEARTBEATING:
            assert (member.due_at is None) == (self.asked is not None)
        else:
            assert member.due_at is None
        if member.state is State.FENCED:
            assert member.tasks.current, "with nothing to close it joins at once"
        if member.state is State.STABLE:
            assert member.tasks.reconciled
        if member.state is State.FAILED:
            assert member.error is not None


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
