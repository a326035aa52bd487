"""A member of a classic group against answers that a test makes up."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kohort.client.backoff import Backoff
from kohort.client.errors import FencedError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.streams.classic.assignment import Assignment, encode_assignment
from kohort.client.streams.classic.membership import ClassicMembership
from kohort.client.streams.classic.phases import TRANSITIONS, Phase
from kohort.client.streams.classic.settings import ClassicSettings
from kohort.client.streams.classic.subscription import (
    ReadSubscription,
    Subscription,
    TopologyId,
    decode_subscription,
)
from kohort.client.streams.classic.subscription_prefix import SubscriptionPrefix, read_prefix
from kohort.client.streams.classic.versions import ErrorCode as LeaderError
from kohort.client.streams.events import Assigned, Event, Lost, Revoked, ShutdownRequested, StatusesChanged
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Request
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.streams_subscription import StreamsSubscription
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

TOPOLOGY = Topology({"0": Subtopology(source_topics=["in"], changelogs=[InternalTopic(name="app-store-changelog")])})
A, B, C = (TaskId("0", partition) for partition in range(3))
ACTIVE, STANDBY, WARMUP = Role
INTERVAL, SESSION, REBALANCE = 3_000, 45_000, 60_000


class Scripted:
    """A member, its clock, and the coordinator and leader that the test plays."""

    def __init__(self, latest: int = 3, **settings: Any) -> None:
        self.now = 1_000_000
        given = {"group_id": "app", "topology": TOPOLOGY, "member_id": "unused", "process_id": "p"} | settings
        self.member = ClassicMembership(
            MemberSettings(**given, rebalance_timeout_ms=REBALANCE),
            Backoff(100, 1000, Random(1)),
            ClassicSettings(session_timeout_ms=SESSION, heartbeat_interval_ms=INTERVAL, latest=latest),
            leave_within_ms=10_000,
        )

    def sent(self, kind: type[Request], version: int | None = None) -> Any:
        """The request that is due now, or next."""
        due = self.member.due_at
        assert due is not None, f"none is due in {self.member.state}, {self.member.phase}"
        self.now = max(self.now, due)
        call = self.member.call(self.now)
        assert call.request is kind
        version = kind.__message__.versions[-1] if version is None else version
        request = self.member.request(self.now, version)
        request.encode(version)
        assert self.member.due_at is None, "one at a time"
        return request

    def answer(self, response: Any) -> Reaction:
        return self.member.on_response(response, self.now)

    def join(self, generation: int = 1, leader: str = "other", **more: Any) -> ReadSubscription:
        """A JoinGroup, its response, and what it told the leader."""
        request = self.sent(JoinGroupRequest)
        fields = {"generation_id": generation, "protocol_type": "stream", "protocol_name": "stream", "leader": leader}
        self.answer(JoinGroupResponse(**(fields | {"member_id": "m", "skip_assignment": False, "members": []} | more)))
        return decode_subscription(request.protocols[0].metadata)

    def sync(self, tasks: dict[TaskId, Role] | None = None, **more: Any) -> SyncGroupRequest:
        request: SyncGroupRequest = self.sent(SyncGroupRequest)
        data = encode_assignment(Assignment(tasks=tasks or {}, **more))
        self.answer(SyncGroupResponse(assignment=data))
        return request

    def heartbeat(self, error: ErrorCode = ErrorCode.NONE) -> HeartbeatRequest:
        request: HeartbeatRequest = self.sent(HeartbeatRequest)
        self.answer(HeartbeatResponse(error_code=error))
        return request

    def joined(self, tasks: dict[TaskId, Role] | None = None, **more: Any) -> Scripted:
        self.member.begin(self.now)
        self.join()
        self.sync(tasks, **more)
        self.events()
        return self

    def events(self) -> list[Event]:
        found = []
        while (event := self.member.next_event(self.now)) is not None:
            found.append(event)
        return found


def subscription(request: JoinGroupRequest) -> Subscription:
    return decode_subscription(request.protocols[0].metadata).subscription


def prefix(scripted: Scripted, generation: int) -> SubscriptionPrefix:
    """What any leader reads when the member joins."""
    request = scripted.sent(JoinGroupRequest)
    scripted.answer(
        JoinGroupResponse(
            generation_id=generation, protocol_type="stream", leader="other", member_id="m", skip_assignment=False
        )
    )
    return read_prefix(request.protocols[0].metadata)


def join_number(request: JoinGroupRequest) -> int:
    return StreamsSubscription.decode(request.protocols[0].metadata[2:], 3).join_number


def test_it_joins_with_the_id_that_it_is_given_and_all_that_it_is_made_of() -> None:
    scripted = Scripted(rack_id="r", client_tags={"zone": "a"}, instance_id="i")
    scripted.member.offsets.update({A: 5}, {A: 9})
    scripted.member.begin(scripted.now)
    request = scripted.sent(JoinGroupRequest)
    assert (request.member_id, request.group_instance_id, request.protocol_type) == ("", "i", "stream")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (SESSION, REBALANCE)
    assert subscription(request) == Subscription(
        state_stores={},
        offsets={A: 5},
        ends={A: 9},
        process_id="p",
        rack_id="r",
        client_tags={"zone": "a"},
        topology=TOPOLOGY,
    )
    scripted.answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"))
    assert scripted.member.due_at is not None and scripted.member.due_at <= scripted.now
    assert scripted.sent(JoinGroupRequest).member_id == "m"


def test_it_takes_tasks_and_heartbeats() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    scripted.join(generation=4)
    request = scripted.sync({A: ACTIVE, B: STANDBY})
    assert (request.generation_id, request.member_id, request.assignments) == (4, "m", [])
    assert scripted.member.state is State.RECONCILING
    assert scripted.events() == [Assigned({A: ACTIVE, B: STANDBY})]
    assert scripted.member.state is State.STABLE
    before = scripted.now
    assert scripted.heartbeat().generation_id == 4
    assert scripted.now == before + INTERVAL
    assert scripted.member.group_metadata() == GroupMetadata("app", 4, "m")


def test_a_first_generation_may_be_0() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    scripted.join(generation=0)
    assert scripted.sync({A: ACTIVE}).generation_id == 0
    scripted.events()
    assert scripted.member.runs([TopicPartition("in", 0)])
    assert not scripted.member.runs([TopicPartition("in", 1)])
    scripted.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert not scripted.member.runs([TopicPartition("in", 0)])
    assert scripted.member.group_metadata().generation == 0


def test_the_leader_gets_all_subscriptions_and_sends_what_was_placed() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    members = [
        JoinGroupResponse.Member(member_id="m", group_instance_id=None, metadata=b"1"),
        JoinGroupResponse.Member(member_id="n", group_instance_id="static", metadata=b"2"),
    ]
    scripted.join(leader="m", members=members)
    assert scripted.member.due_at is None
    assert scripted.member.subscriptions == {"m": b"1", "n": b"2"}
    assert scripted.member.instances == {"n": "static"}
    scripted.member.placed({"m": b"3", "n": b"4"}, scripted.now)
    request = scripted.sync()
    assert {each.member_id: each.assignment for each in request.assignments} == {"m": b"3", "n": b"4"}
    assert scripted.member.subscriptions is None


def test_a_static_leader_that_comes_back_places_nothing() -> None:
    scripted = Scripted(instance_id="i")
    scripted.member.begin(scripted.now)
    scripted.join(leader="m", skip_assignment=True)
    assert scripted.sync({A: ACTIVE}).assignments == []


def test_tasks_run_on_while_the_group_rebalances() -> None:
    scripted = Scripted().joined({A: ACTIVE, B: STANDBY})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert scripted.events() == []
    told = scripted.join(generation=2).subscription
    assert told.tasks == {A: ACTIVE, B: STANDBY}
    assert told.state_stores == {A: 1, B: 1}
    assert scripted.events() == []
    scripted.sync({A: ACTIVE, B: STANDBY})
    assert scripted.events() == []
    assert scripted.member.state is State.STABLE
    assert scripted.heartbeat().generation_id == 2


def test_it_joins_again_when_it_has_closed_what_others_wait_for() -> None:
    scripted = Scripted().joined({A: ACTIVE, B: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sync({A: ACTIVE}, join_again=True)
    assert scripted.events() == [Revoked({B: ACTIVE})]
    scripted.heartbeat()
    scripted.member.closed([B], scripted.now)
    assert scripted.join(generation=3).subscription.tasks == {A: ACTIVE}
    scripted.sync({A: ACTIVE})
    assert scripted.member.state is State.STABLE
    scripted.heartbeat()


def test_it_claims_what_it_is_still_closing() -> None:
    scripted = Scripted().joined({A: ACTIVE, B: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sync({A: ACTIVE}, join_again=True)
    scripted.events()
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert scripted.join(generation=3).subscription.tasks == {A: ACTIVE, B: ACTIVE}


def test_it_joins_again_when_a_warm_up_has_caught_up_and_tells_so_once() -> None:
    scripted = Scripted().joined({A: WARMUP}, acceptable_lag=100)
    scripted.member.offsets.update({A: 100}, {A: 1_000})
    scripted.heartbeat()
    scripted.member.offsets.update({A: 950}, {A: 1_000})
    told = scripted.join(generation=2).subscription
    assert (told.offsets, told.ends) == ({A: 950}, {A: 1_000})
    scripted.sync({A: WARMUP}, acceptable_lag=100)
    scripted.heartbeat()


def test_each_rebalance_that_it_wants_makes_another_subscription_and_no_other_join_does() -> None:
    scripted = Scripted().joined()
    numbers = []

    def join(generation: int) -> None:
        request = scripted.sent(JoinGroupRequest)
        numbers.append(join_number(request))
        response = JoinGroupResponse(
            generation_id=generation, protocol_type="stream", leader="other", member_id="m", skip_assignment=False
        )
        scripted.answer(response)

    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    join(2)
    scripted.sync(probing_ms=INTERVAL + 1)
    scripted.heartbeat()
    join(3)
    scripted.sync(join_again=True)
    join(4)
    scripted.sync()
    scripted.member.rebalance("topics have changed")
    numbers.append(join_number(scripted.sent(JoinGroupRequest)))
    scripted.member.on_failure(scripted.now)
    join(5)
    scripted.sync()
    scripted.member.shut_application_down()
    join(6)
    assert numbers == [0, 1, 2, 3, 3, 4]


def test_probing_rebalances() -> None:
    scripted = Scripted().joined(probing_ms=INTERVAL + 1)
    scripted.heartbeat()
    before = scripted.now
    scripted.join(generation=2)
    assert scripted.now == before + 1
    scripted.sync()
    scripted.heartbeat()
    scripted.heartbeat()


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_a_static_member_that_lacks_topics_joins_again_as_nobody_may_know_who_leads(instance_id: str | None) -> None:
    lacking = {"statuses": (Status(StatusCode.MISSING_SOURCE_TOPICS, "in"),)}
    scripted = Scripted(instance_id=instance_id).joined(**lacking)
    for generation in (2, 3):
        before = scripted.now
        for _ in range(3):
            scripted.heartbeat()
        if instance_id is None:
            scripted.heartbeat()
            continue
        scripted.join(generation=generation)
        assert scripted.now == before + 10_000
        scripted.sync(**lacking)


def test_an_older_leader_is_joined_again_in_its_version_at_once_and_the_tasks_stay() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert scripted.join(generation=2).version == 3
    scripted.sync(version=2, supported=2, common=2, error=LeaderError.SUBSCRIPTION_TOO_NEW)
    assert scripted.events() == []
    told = scripted.join(generation=3)
    assert (told.version, told.latest_supported, told.subscription.tasks) == (2, 3, {A: ACTIVE})
    scripted.sync({A: ACTIVE}, version=2, supported=2, common=2)
    scripted.heartbeat()
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert scripted.join(generation=4).version == 2
    scripted.sync({A: ACTIVE}, version=2, supported=3, common=3)
    assert scripted.join(generation=5).version == 3
    assert scripted.events() == []


@pytest.mark.parametrize("when", ["heartbeat", "sync", "join"])
@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_fenced_member_loses_its_tasks_and_joins_again_when_they_are_closed(code: ErrorCode, when: str) -> None:
    scripted = Scripted().joined({A: ACTIVE})
    if when == "heartbeat":
        scripted.heartbeat(code)
    else:
        scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
        if when == "join":
            scripted.sent(JoinGroupRequest)
            scripted.answer(JoinGroupResponse(error_code=code, member_id="m"))
        else:
            scripted.join(generation=2)
            scripted.sent(SyncGroupRequest)
            scripted.answer(SyncGroupResponse(error_code=code))
    assert scripted.member.state is State.FENCED
    assert scripted.events() == [Lost({A: ACTIVE})]
    assert scripted.member.due_at is None
    scripted.member.closed([A], scripted.now)
    request = scripted.sent(JoinGroupRequest)
    assert request.member_id == ("" if code is ErrorCode.UNKNOWN_MEMBER_ID else "m")
    assert subscription(request).tasks == {}


def test_a_static_member_that_was_replaced_fails() -> None:
    scripted = Scripted(instance_id="i").joined({A: ACTIVE})
    scripted.heartbeat(ErrorCode.FENCED_INSTANCE_ID)
    assert scripted.member.state is State.FAILED
    assert isinstance(scripted.member.error, FencedError)
    assert scripted.events() == [Lost({A: ACTIVE})]


def test_another_kind_of_group_fails_it() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    scripted.join(protocol_type="consumer")
    assert scripted.member.state is State.FAILED
    assert isinstance(scripted.member.error, KafkaError)
    assert scripted.member.error.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_it_revokes_all_before_it_leaves_and_joins_no_more_meanwhile() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.stop(scripted.now)
    assert scripted.events() == [Revoked({A: ACTIVE})]
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.member.closed([A], scripted.now)
    request = scripted.sent(LeaveGroupRequest)
    assert [each.member_id for each in request.members] == ["m"]
    scripted.answer(LeaveGroupResponse())
    assert scripted.member.state is State.LEFT


def test_an_old_broker_is_told_of_one_member_that_leaves() -> None:
    scripted = Scripted().joined()
    scripted.member.quit(scripted.now)
    assert scripted.sent(LeaveGroupRequest, version=2).member_id == "m"


@pytest.mark.parametrize("for_good", [False, True])
def test_a_static_member_leaves_for_good_only_if_it_is_to(for_good: bool) -> None:
    scripted = Scripted(instance_id="i").joined()
    scripted.member.quit(scripted.now, for_good=for_good)
    assert scripted.member.ended is not for_good
    if for_good:
        assert [each.group_instance_id for each in scripted.sent(LeaveGroupRequest).members] == ["i"]


def test_a_static_member_leaves_for_good_though_its_first_join_still_waits() -> None:
    scripted = Scripted(instance_id="i")
    scripted.member.begin(scripted.now)
    scripted.sent(JoinGroupRequest)
    scripted.member.quit(scripted.now, for_good=True)
    scripted.member.on_failure(scripted.now)
    (leaver,) = scripted.sent(LeaveGroupRequest).members
    assert (leaver.member_id, leaver.group_instance_id) == ("", "i")
    scripted.answer(LeaveGroupResponse())
    assert scripted.member.state is State.LEFT


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_fenced_member_that_quits_tells_a_group_that_still_has_it(code: ErrorCode) -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.heartbeat(code)
    scripted.member.quit(scripted.now)
    if code is ErrorCode.ILLEGAL_GENERATION:
        assert [each.member_id for each in scripted.sent(LeaveGroupRequest).members] == ["m"]
        scripted.answer(LeaveGroupResponse())
    assert scripted.member.state is State.LEFT


def test_a_member_that_leaves_while_it_leads_still_answers_the_others() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2, leader="m")
    scripted.member.stop(scripted.now)
    assert scripted.events() == [Revoked({A: ACTIVE})]
    scripted.member.placed({"m": b"", "n": b"4"}, scripted.now)
    assert len(scripted.sync({A: ACTIVE}).assignments) == 2
    assert scripted.events() == []
    assert scripted.heartbeat().generation_id == 2


def test_the_member_asks_that_all_stop_and_hears_it() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.shut_application_down()
    assert scripted.join(generation=2).subscription.shutdown
    scripted.sync(statuses=(Status(StatusCode.SHUTDOWN_APPLICATION, "m asks"),))
    assert scripted.events()[0] == ShutdownRequested("m asks")
    assert scripted.member.state is State.LEAVING


SHUTDOWN = (Status(StatusCode.SHUTDOWN_APPLICATION, "m asks"),)


def test_who_stops_for_a_shutdown_leaves_when_all_others_have_heard_of_it() -> None:
    """The group rebalances when a member leaves, and the next generation doesn't know of the shutdown."""
    scripted = Scripted().joined()
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sync(statuses=SHUTDOWN)
    assert scripted.member.state is State.DEPARTING
    before = scripted.now
    scripted.sent(LeaveGroupRequest)
    assert scripted.now == before + INTERVAL


def test_a_member_asks_that_all_stop_before_it_leaves() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.shut_application_down()
    scripted.member.stop(scripted.now)
    assert scripted.events() == [Revoked({A: ACTIVE})]
    scripted.member.closed([A], scripted.now)
    assert scripted.join(generation=2).subscription.shutdown
    scripted.sent(SyncGroupRequest)
    scripted.answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert scripted.join(generation=3).subscription.shutdown
    scripted.sync(statuses=SHUTDOWN)
    scripted.sent(LeaveGroupRequest)


def test_a_member_that_is_closed_asks_first_that_all_stop() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.shut_application_down()
    scripted.member.quit(scripted.now)
    by = scripted.member.leave_by
    assert by >= scripted.now + 2 * INTERVAL
    told = scripted.join(generation=2).subscription
    assert (told.shutdown, told.tasks) == (True, {})
    scripted.sync({A: ACTIVE}, statuses=SHUTDOWN)
    assert Assigned not in map(type, scripted.events())
    scripted.sent(LeaveGroupRequest)
    scripted.answer(LeaveGroupResponse())
    assert scripted.member.state is State.LEFT
    assert scripted.now <= by


def test_a_fenced_member_that_is_closed_joins_again_to_ask_that_all_stop() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.shut_application_down()
    scripted.join(generation=2)
    scripted.sent(SyncGroupRequest)
    scripted.answer(SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
    scripted.member.quit(scripted.now)
    assert scripted.join(generation=3).subscription.shutdown
    scripted.sync(statuses=SHUTDOWN)
    scripted.sent(LeaveGroupRequest)


def test_a_member_that_is_abandoned_asks_for_nothing() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.shut_application_down()
    scripted.member.quit(scripted.now)
    scripted.member.abandon(scripted.now)
    assert scripted.member.state is State.LEFT


@pytest.mark.parametrize("asks_late", [False, True])
def test_a_member_that_stops_while_it_joins_asks_first_that_all_stop(asks_late: bool) -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    if asks_late:
        scripted.join()
    scripted.member.shut_application_down()
    scripted.member.stop(scripted.now)
    if asks_late:
        scripted.sync({A: ACTIVE})
    assert scripted.join(generation=2).subscription.shutdown
    scripted.sync(statuses=SHUTDOWN)
    assert Assigned not in map(type, scripted.events())
    scripted.sent(LeaveGroupRequest)


def test_a_member_gives_up_to_ask_that_all_stop_when_nobody_answers() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.shut_application_down()
    scripted.member.stop(scripted.now)
    scripted.events()
    scripted.member.closed([A], scripted.now)
    while scripted.member.state is State.LEAVING:
        scripted.sent(JoinGroupRequest)
        scripted.now += 1_000
        scripted.member.on_failure(scripted.now)
    scripted.sent(LeaveGroupRequest)


@pytest.mark.parametrize("joins", [False, True])
def test_a_member_gives_up_to_ask_that_all_stop_when_the_leader_cant_read_it(joins: bool) -> None:
    scripted = Scripted()
    if joins:
        scripted.member.begin(scripted.now)
        scripted.join()
        scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE)
    else:
        scripted.joined()
    scripted.member.shut_application_down()
    scripted.join(generation=2)
    if joins:
        scripted.member.stop(scripted.now)
    scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE)
    scripted.member.stop(scripted.now)
    assert scripted.member.state is State.LEAVING
    by = scripted.member.leave_by
    while scripted.member.state is State.LEAVING:
        scripted.heartbeat()
        assert scripted.now <= by
    scripted.sent(LeaveGroupRequest)
    scripted.answer(LeaveGroupResponse())
    assert scripted.member.state is State.LEFT


def test_a_member_that_has_long_been_leaving_still_asks_that_all_stop() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.member.stop(scripted.now)
    for _ in range(5):
        scripted.heartbeat()
    scripted.sent(HeartbeatRequest)
    scripted.member.shut_application_down()
    scripted.answer(HeartbeatResponse())
    assert scripted.join(generation=2).subscription.shutdown


def test_statuses() -> None:
    scripted = Scripted().joined()
    status = Status(StatusCode.MISSING_SOURCE_TOPICS, "in")
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sync(statuses=(status,))
    assert scripted.events() == [StatusesChanged((status,))]


def test_after_failures_it_pauses_and_asks_again() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    scripted.sent(JoinGroupRequest)
    scripted.member.on_failure(scripted.now)
    due = scripted.member.due_at
    assert due is not None and due > scripted.now
    scripted.sent(JoinGroupRequest)
    reaction = scripted.answer(JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
    assert reaction is Reaction.FIND_COORDINATOR
    scripted.join()
    scripted.sent(SyncGroupRequest)
    scripted.member.on_failure(scripted.now)
    scripted.sync({A: ACTIVE})
    assert scripted.events() == [Assigned({A: ACTIVE})]


def test_assignments_that_the_broker_couldnt_store_cost_no_tasks() -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sent(SyncGroupRequest)
    assert scripted.answer(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)) is Reaction.RETRY
    assert scripted.member.due_at is not None and scripted.member.due_at > scripted.now, "after a pause"
    scripted.sent(SyncGroupRequest)
    scripted.answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert scripted.join(generation=3).subscription.tasks == {A: ACTIVE}


@pytest.mark.parametrize("data", [b"", b"\0\1", b"\0\x09\0\0"])
def test_an_assignment_that_cannot_be_read_costs_no_tasks(data: bytes) -> None:
    scripted = Scripted().joined({A: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sent(SyncGroupRequest)
    scripted.answer(SyncGroupResponse(assignment=data))
    due = scripted.member.due_at
    assert due is not None and due > scripted.now, "after a pause"
    assert scripted.join(generation=2).subscription.tasks == {A: ACTIVE}
    assert scripted.events() == []


def test_a_static_member_that_is_back_joins_again_if_its_former_self_was_newer_than_the_leader() -> None:
    scripted = Scripted(latest=2, instance_id="i")
    scripted.member.begin(scripted.now)
    scripted.join()
    scripted.sync(version=2, supported=2, common=2, error=LeaderError.SUBSCRIPTION_TOO_NEW)
    assert scripted.member.state is State.JOINING
    assert scripted.join(generation=2).version == 2
    scripted.sync({A: ACTIVE}, version=2, supported=2, common=2)
    assert scripted.events() == [Assigned({A: ACTIVE})]


def test_a_static_member_that_is_back_joins_again_once_if_its_former_self_couldnt_be_read() -> None:
    scripted = Scripted(instance_id="i")
    scripted.member.begin(scripted.now)
    scripted.join()
    scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE)
    assert scripted.member.due_at is not None and scripted.member.due_at > scripted.now, "after a pause"
    scripted.join(generation=2)
    scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE)
    assert scripted.member.state is State.STABLE
    scripted.heartbeat()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_static_member_that_is_back_takes_no_tasks_of_another_topology(version: int) -> None:
    epoch, fingerprint = mine = TopologyId.of(TOPOLOGY)
    for other in (TopologyId(epoch + 1, fingerprint), TopologyId(epoch, fingerprint + 1)):
        scripted = Scripted(latest=version, instance_id="i")
        versions = {"version": version, "supported": version, "common": version}
        scripted.member.begin(scripted.now)
        scripted.join()
        scripted.sync({TaskId("gone", 1): ACTIVE}, topology=other, **versions)
        assert scripted.member.state is State.JOINING
        scripted.join(generation=2)
        scripted.sync({A: ACTIVE}, topology=mine, **versions)
        assert scripted.events() == [Assigned({A: ACTIVE})]
        scripted.heartbeat()


def test_a_member_whose_tasks_are_unknown_says_that_it_has_some_until_it_has_closed_them() -> None:
    """Others get them in the generation after that, and nothing would fence it there."""
    scripted = Scripted().joined({A: ACTIVE})
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    scripted.join(generation=2)
    scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE, join_again=True)
    scripted.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert prefix(scripted, generation=3).has_tasks
    assert scripted.events() == [Revoked({A: ACTIVE})]
    scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE, join_again=True)
    scripted.heartbeat()
    scripted.member.closed([A], scripted.now)
    assert not prefix(scripted, generation=4).has_tasks
    scripted.sync(error=LeaderError.SUBSCRIPTION_UNREADABLE)
    scripted.heartbeat()


def test_a_member_says_which_version_the_leader_knew_that_it_heard_last() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    assert prefix(scripted, generation=1) == (3, 3, 0, False)
    scripted.sent(SyncGroupRequest)
    scripted.answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert prefix(scripted, generation=2) == (3, 3, 0, False)
    scripted.sync(version=2, supported=2, common=2, error=LeaderError.SUBSCRIPTION_TOO_NEW)
    assert prefix(scripted, generation=3) == (2, 3, 2, False)
    scripted.sync({A: STANDBY}, version=2, supported=3, common=3)
    assert prefix(scripted, generation=4) == (3, 3, 3, True)


def test_the_table_of_phases_leads_from_each_to_each() -> None:
    assert TRANSITIONS.keys() == set(Phase)
    reached = {Phase.PREPARING_REBALANCE}
    for _ in Phase:
        reached |= {after for phase in reached for after in TRANSITIONS[phase].values()}
    assert reached == set(Phase)
