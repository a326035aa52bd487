"""A member of a classic group, whatever happens to it, in whatever order."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.backoff import Backoff
from kohort.client.streams.classic.assignment import Assignment, encode_assignment
from kohort.client.streams.classic.membership import ClassicMembership
from kohort.client.streams.classic.phases import Phase
from kohort.client.streams.classic.settings import ClassicSettings
from kohort.client.streams.classic.subscription import TopologyId, decode_subscription
from kohort.client.streams.classic.versions import ErrorCode as LeaderError
from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import HEARTBEATING
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId
from tests.client.streams.simulated_tasks import TOPOLOGY

TASKS = [TaskId(name, partition) for name in "01" for partition in range(2)]
CODES = st.sampled_from(
    [ErrorCode.NONE] * 30
    + [
        ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_INSTANCE_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ]
)  # fmt: skip


def _readable(*errors: LeaderError) -> st.SearchStrategy[bytes]:
    return st.builds(
        Assignment,
        tasks=st.dictionaries(st.sampled_from(TASKS), st.sampled_from(Role)),
        join_again=st.booleans(),
        error=st.sampled_from(errors),
        supported=st.integers(1, 4),
        common=st.integers(1, 4),
        acceptable_lag=st.none() | st.integers(0, 100),
        probing_ms=st.none() | st.integers(0, 5_000),
        topology=st.sampled_from([None, *[TopologyId.of(TOPOLOGY)] * 4, TopologyId(7, 7)]),
        statuses=st.sampled_from([()] * 9 + [(Status(StatusCode.SHUTDOWN_APPLICATION, "x"),)]),
    ).map(encode_assignment)


ASSIGNMENTS = st.one_of(*[_readable(*[LeaderError.NONE] * 12, *LeaderError)] * 7, st.binary(max_size=8))
LUCKY_ASSIGNMENTS = _readable(*LeaderError)
LEAVE_WITHIN, INTERVAL = 5_000, ClassicSettings().heartbeat_interval_ms
STEPS = st.lists(
    st.sampled_from(
        ["talk"] * 14 + ["look"] * 5 + ["close"] * 3 + ["wait", "fail", "stop", "offsets", "shutdown"] + ["rejoin"] * 3
    ),
    min_size=30,
    max_size=80,
)
STEPS_OF_LUCKY = st.lists(st.sampled_from(["talk"] * 5 + ["catch_up"] * 2 + ["shutdown", "rejoin"]), max_size=20)


class Walk:
    """A member that things happen to."""

    def __init__(self, data: st.DataObject, instance_id: str | None) -> None:
        self.draw, self.now, self.generation = data.draw, 1_000, 0
        self.lucky = False  # no request fails any more, though the leader may not understand the member
        self.member = ClassicMembership(
            MemberSettings(
                group_id="app", topology=TOPOLOGY, member_id="unused", process_id="p", instance_id=instance_id
            ),
            Backoff(100, 1_000, Random(1)),
            ClassicSettings(),
            leave_within_ms=LEAVE_WITHIN,
        )
        self.has: dict[TaskId, Role] = {}
        self.closing: set[TaskId] = set()

    def talk(self) -> None:
        """The request that is due, and an answer."""
        member = self.member
        if member.phase is Phase.LEADING and member.subscriptions is not None:
            member.placed(dict.fromkeys(member.subscriptions, b""), self.now)
        if (due := member.due_at) is None:
            assert member.state not in HEARTBEATING or member.phase is Phase.LEADING
            return
        self.now = max(self.now, due)
        call = member.call(self.now)
        request = member.request(self.now, call.request.__message__.versions[-1])
        request.encode(call.request.__message__.versions[-1])
        if isinstance(request, JoinGroupRequest):
            claimed = decode_subscription(request.protocols[0].metadata).subscription.tasks
            mine = {task for task, role in self.has.items() if role is Role.ACTIVE}
            assert mine <= {task for task, role in claimed.items() if role is Role.ACTIVE}, "it claims what it runs"
        if isinstance(request, HeartbeatRequest | SyncGroupRequest):
            assert request.generation_id == member.epoch > 0
        if not self.lucky and self.draw(st.integers(0, 9)) == 0:
            member.on_failure(self.now)
            return
        member.on_response(self.answer(request), self.now)

    def answer(self, request: Any) -> Any:
        code = ErrorCode.NONE if self.lucky else self.draw(CODES)
        match request:
            case JoinGroupRequest():
                self.generation += 1
                members = [JoinGroupResponse.Member(member_id="m", group_instance_id=None, metadata=b"")]
                return JoinGroupResponse(
                    error_code=code, generation_id=self.generation, protocol_type="stream", protocol_name="stream",
                    leader=self.draw(st.sampled_from("mn")), member_id="m", members=members,
                    skip_assignment=self.draw(st.booleans()),
                )  # fmt: skip
            case SyncGroupRequest():
                return SyncGroupResponse(
                    error_code=code, assignment=self.draw(LUCKY_ASSIGNMENTS if self.lucky else ASSIGNMENTS)
                )
            case HeartbeatRequest():
                return HeartbeatResponse(error_code=code)
        return LeaveGroupResponse(error_code=code)

    def look(self) -> None:
        """The application takes an event."""
        match self.member.next_event(self.now):
            case Assigned(tasks):
                assert not tasks.keys() & self.has.keys()
                self.has.update(tasks)
            case Revoked(tasks):
                assert tasks.items() <= self.has.items()
                self.closing.update(tasks)
            case Lost(tasks):
                assert tasks == self.has
                self.closing.update(tasks)
            case RolesChanged(tasks):
                for task, (before, after) in tasks.items():
                    assert self.has[task] is before
                    if before is Role.ACTIVE:
                        self.closing.add(task)
                    else:
                        self.has[task] = after

    def close(self) -> None:
        """The application closes what it is to close."""
        self.member.closed(sorted(self.closing), self.now)
        for task in self.closing:
            if (role := self.member.tasks.current.get(task)) is None:
                self.has.pop(task, None)
            else:
                self.has[task] = role
        self.closing.clear()

    def catch_up(self) -> None:
        """The application takes all events, and closes what it is to close."""
        for _ in range(4):
            self.look()
            self.close()

    def step(self, what: str) -> None:
        match what:
            case "wait":
                self.now += self.draw(st.integers(0, 10_000))
            case "fail":
                self.member.on_failure(self.now)
            case "stop":
                self.member.stop(self.now)
            case "offsets":
                at = self.draw(st.dictionaries(st.sampled_from(TASKS), st.integers(0, 200)))
                self.member.offsets.update(at, dict.fromkeys(at, 200))
            case "shutdown":
                self.member.shut_application_down()
            case "rejoin":
                self.member.rebalance("the test wants it")
            case _:
                getattr(self, what)()


@settings(max_examples=150)
@given(data=st.data(), steps=STEPS, instance_id=st.sampled_from([None, "i"]))
def test_whatever_happens_its_events_and_claims_make_sense(
    data: st.DataObject, steps: list[str], instance_id: str | None
) -> None:
    walk = Walk(data, instance_id)
    walk.member.begin(walk.now)
    for step in steps:
        walk.step(step)
    walk.has.clear()  # it has closed all
    walk.closing.clear()
    walk.member.quit(walk.now)
    for _ in range(100):
        if walk.member.due_at is None:
            break
        walk.talk()
    walk.member.abandon(walk.now)
    assert walk.member.ended


@settings(max_examples=150)
@given(data=st.data(), steps=STEPS_OF_LUCKY)
def test_it_leaves_in_time_once_its_tasks_are_closed_whatever_the_leader_answers(
    data: st.DataObject, steps: list[str]
) -> None:
    walk = Walk(data, None)
    walk.lucky = True
    walk.member.begin(walk.now)
    for step in steps:
        walk.step(step)
    walk.member.stop(walk.now)
    by = walk.now + LEAVE_WITHIN + INTERVAL  # until then it tries to tell that all are to stop
    for _ in range(50):
        walk.catch_up()
        if walk.member.ended:
            break
        walk.talk()
        assert walk.member.ended or walk.now <= by + INTERVAL + LEAVE_WITHIN
