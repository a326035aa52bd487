"""A member against answers that a test makes up."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kohort.client.backoff import Backoff
from kohort.client.errors import ClientError, ConfigError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.streams.events import (
    Assigned,
    EndpointPartitions,
    EndpointsChanged,
    Event,
    Lost,
    Revoked,
    ShutdownRequested,
    StatusesChanged,
)
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_heartbeat import Endpoint as WireEndpoint
from kohort.protocol.messages.streams_group_heartbeat import Status as WireStatus
from kohort.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kohort.protocol.messages.streams_group_heartbeat import TopicPartition as WirePartitions
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId, task_ids
from kohort.streams.topology import InternalTopic, Subtopology, Topology
from kohort.streams.topology_messages import topology_request

TOPOLOGY = Topology(
    {"0": Subtopology(source_topics=["in"], changelogs=[InternalTopic(name="app-store-changelog")])}, epoch=2
)
A, B, C = (TaskId("0", partition) for partition in range(3))
ACTIVE, STANDBY, WARMUP = Role
INTERVAL = 5_000


class Scripted:
    """A member, its clock, and the group that the test plays."""

    def __init__(self, **settings: Any) -> None:
        self.now = 1_000_000
        given = {"group_id": "app", "topology": TOPOLOGY, "member_id": "m", "process_id": "p"} | settings
        self.member = StreamsMembershipManager(
            MemberSettings(**given), Backoff(100, 1000, Random(1)), leave_within_ms=10_000
        )

    def joined(self, epoch: int = 3, tasks: dict[TaskId, Role] | None = None) -> Scripted:
        self.member.begin(self.now)
        self.beat(epoch=epoch, tasks=tasks or {})
        self.events()
        if tasks:
            self.beat(epoch=epoch)
        return self

    def sent(self, version: int = 1) -> StreamsGroupHeartbeatRequest:
        """The heartbeat that is due now, or next."""
        due = self.member.due_at
        assert due is not None, f"none is due in state {self.member.state}"
        self.now = max(self.now, due)
        request = self.member.request(self.now, version)
        assert StreamsGroupHeartbeatRequest.decode(request.encode(version), version) == request
        assert self.member.due_at is None, "one at a time"
        return request

    def answer(
        self, *, epoch: int = 3, tasks: dict[TaskId, Role] | None = None, error: ErrorCode = ErrorCode.NONE, **more: Any
    ) -> Reaction:
        fields: dict[str, Any] = {
            "error_code": error,
            "error_message": "because" if error else None,
            "member_id": "m",
            "member_epoch": epoch,
            "heartbeat_interval_ms": INTERVAL,
            "task_offset_interval_ms": 20_000,
            "acceptable_recovery_lag": 100,
            "active_tasks": None,
            "standby_tasks": None,
            "warmup_tasks": None,
            "endpoint_information_epoch": 7,
            "partitions_by_user_endpoint": None,
            "status": None,
        }
        if tasks is not None:
            names = ("active_tasks", "standby_tasks", "warmup_tasks")
            fields |= {name: task_ids(TaskIds, tasks, role) for name, role in zip(names, Role, strict=True)}
        return self.member.on_response(StreamsGroupHeartbeatResponse(**(fields | more)), self.now)

    def beat(self, **answer: Any) -> StreamsGroupHeartbeatRequest:
        """A heartbeat, and its answer."""
        request = self.sent()
        self.answer(**answer)
        return request

    def events(self) -> list[Event]:
        found = []
        while (event := self.member.next_event(self.now)) is not None:
            found.append(event)
        return found

    @property
    def wait(self) -> int:
        """ms until the next heartbeat."""
        assert self.member.due_at is not None
        return max(0, self.member.due_at - self.now)


def owned(request: StreamsGroupHeartbeatRequest) -> dict[TaskId, Role] | None:
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if None in lists:
        assert lists == (None, None, None)
        return None
    return {
        TaskId(ids.subtopology_id, partition): role
        for role, listed in zip(Role, lists, strict=True)
        for ids in listed or ()
        for partition in ids.partitions
    }


def test_it_joins_with_all_that_it_is_made_of() -> None:
    scripted = Scripted(
        client_tags={"zone": "a"}, user_endpoint=Endpoint("host", 80), rack_id="r", rebalance_timeout_ms=9
    )
    assert scripted.member.due_at is None
    scripted.member.begin(scripted.now)
    request = scripted.sent()
    assert (request.group_id, request.member_id, request.member_epoch) == ("app", "m", 0)
    assert request.topology == topology_request(TOPOLOGY)
    assert (request.rack_id, request.process_id, request.rebalance_timeout_ms) == ("r", "p", 9)
    assert [(tag.key, tag.value) for tag in request.client_tags or ()] == [("zone", "a")]
    assert request.user_endpoint == WireEndpoint(host="host", port=80)
    assert owned(request) == {}
    assert request.endpoint_information_epoch == -1
    assert (request.task_offsets, request.task_end_offsets) == ([], [])


def test_what_does_not_change_is_not_said_again() -> None:
    scripted = Scripted().joined()
    assert scripted.wait == INTERVAL
    request = scripted.beat(epoch=3)
    assert request.member_epoch == 3
    assert request.endpoint_information_epoch == 7
    assert (request.topology, request.rack_id, request.process_id, request.client_tags) == (None,) * 4
    assert request.rebalance_timeout_ms == -1
    assert owned(request) is None
    assert request.task_offsets is None


def test_tasks_are_told_and_said() -> None:
    scripted = Scripted().joined()
    scripted.beat(epoch=4, tasks={A: ACTIVE, B: STANDBY})
    assert scripted.member.state is State.RECONCILING
    assert scripted.events() == [Assigned({A: ACTIVE, B: STANDBY})]
    assert scripted.member.state is State.STABLE
    assert scripted.wait == 0
    assert owned(scripted.beat(epoch=4)) == {A: ACTIVE, B: STANDBY}
    assert scripted.wait == INTERVAL
    assert scripted.member.group_metadata() == GroupMetadata("app", 4, "m", None)


def test_promised_tasks_are_said_before_the_application_asks_for_them() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.beat(epoch=4, tasks={A: ACTIVE, B: ACTIVE})
    scripted.sent()
    scripted.member.on_failure(scripted.now)
    assert owned(scripted.beat(epoch=4, tasks={A: ACTIVE})) == {A: ACTIVE, B: ACTIVE}, "it may take B at any moment"
    assert owned(scripted.beat(epoch=5)) == {A: ACTIVE}, "now it won't"
    assert not scripted.events()


def test_each_task_is_released_when_it_is_closed() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE, B: ACTIVE, C: STANDBY})
    scripted.beat(tasks={C: STANDBY})
    assert scripted.events() == [Revoked({A: ACTIVE, B: ACTIVE})]
    assert scripted.wait == INTERVAL, "nothing is closed yet"
    assert owned(scripted.beat()) is None
    scripted.member.closed([B], scripted.now)
    assert scripted.wait == 0
    assert owned(scripted.beat()) == {A: ACTIVE, C: STANDBY}
    scripted.member.closed([A], scripted.now)
    assert scripted.member.state is State.STABLE
    assert owned(scripted.beat(epoch=4)) == {C: STANDBY}


def test_after_a_lost_answer_everything_is_said_on_the_same_epoch() -> None:
    scripted = Scripted(client_tags={"zone": "a"}).joined(tasks={A: ACTIVE})
    scripted.sent()
    scripted.member.on_failure(scripted.now)
    assert 80 <= scripted.wait <= 120
    request = scripted.sent()
    assert (request.member_epoch, owned(request), request.process_id) == (3, {A: ACTIVE}, "p")
    assert request.topology is None, "the group takes it from those who join only"
    assert request.client_tags
    scripted.member.on_failure(scripted.now)
    assert 160 <= scripted.wait <= 240
    scripted.beat(tasks={A: ACTIVE})
    assert scripted.wait == INTERVAL
    assert owned(scripted.beat()) is None
    assert not scripted.events()


def test_what_a_lost_answer_gave_is_asked_for_by_joining_anew() -> None:
    """Apache Kafka tells of tasks once. They would be nobody's, or never be given up."""
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.sent()
    scripted.member.on_failure(scripted.now)
    scripted.beat(epoch=4)
    assert scripted.events() == [Lost({A: ACTIVE})]
    scripted.member.closed([A], scripted.now)
    assert scripted.sent().member_epoch == 0
    scripted.answer(epoch=4, tasks={A: ACTIVE, B: ACTIVE})
    assert scripted.events() == [Assigned({A: ACTIVE, B: ACTIVE})]


def test_heartbeats_that_could_not_be_sent_lose_nothing() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.member.on_failure(scripted.now)
    scripted.beat()
    assert not scripted.events() and scripted.member.state is State.STABLE


def test_a_static_member_whose_join_was_not_answered_frees_its_name_first() -> None:
    scripted = Scripted(instance_id="i")
    scripted.member.begin(scripted.now)
    assert scripted.sent().member_epoch == 0
    scripted.member.on_failure(scripted.now)
    assert scripted.sent().member_epoch == -2
    scripted.answer(error=ErrorCode.UNKNOWN_MEMBER_ID)
    request = scripted.sent()
    assert request.member_epoch == 0 and request.topology is not None
    scripted.answer(tasks={A: ACTIVE})
    assert scripted.events() == [Assigned({A: ACTIVE})]


def test_a_name_that_is_taken_is_waited_for_as_long_as_a_session_lasts() -> None:
    scripted = Scripted(instance_id="i")
    scripted.member.begin(scripted.now)
    begin = scripted.now
    while scripted.member.state is State.JOINING:
        scripted.sent()
        scripted.answer(error=ErrorCode.UNRELEASED_INSTANCE_ID)
    assert 60_000 < scripted.now - begin < 63_000
    assert "UNRELEASED_INSTANCE_ID" in str(scripted.member.error)


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (ErrorCode.NOT_COORDINATOR, Reaction.FIND_COORDINATOR),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, Reaction.FIND_COORDINATOR),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Reaction.RETRY),
        (ErrorCode.REQUEST_TIMED_OUT, Reaction.RETRY),
    ],
)
def test_errors_of_the_moment(error: ErrorCode, reaction: Reaction) -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.sent()
    assert scripted.answer(error=error) is reaction
    assert scripted.wait > 0
    assert owned(scripted.beat()) == {A: ACTIVE}
    assert not scripted.events()


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_fenced_it_abandons_its_tasks_and_joins_anew(error: ErrorCode) -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE, B: WARMUP})
    scripted.sent()
    assert scripted.answer(error=error) is Reaction.REJOIN
    assert scripted.member.state is State.FENCED
    assert scripted.member.due_at is None, "not before all is closed"
    assert scripted.events() == [Lost({A: ACTIVE, B: WARMUP})]
    assert scripted.member.group_metadata().generation == 3, "what it commits now is refused"
    scripted.member.closed([A], scripted.now)
    assert scripted.member.due_at is None
    scripted.member.closed([B], scripted.now)
    request = scripted.beat(epoch=9, tasks={A: ACTIVE})
    assert (request.member_epoch, request.topology, owned(request)) == (0, topology_request(TOPOLOGY), {})
    assert scripted.events() == [Assigned({A: ACTIVE})]


def test_fenced_again_and_again_it_takes_its_time() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    waits = []
    for _ in range(4):
        scripted.sent()
        scripted.answer(error=ErrorCode.UNKNOWN_MEMBER_ID)
        assert not scripted.events()
        waits.append(scripted.wait)
    assert waits[0] < waits[1] < waits[2] < waits[3] < 1_000


def test_a_group_that_was_deleted_is_joined_anew() -> None:
    scripted = Scripted().joined()
    scripted.sent()
    scripted.answer(error=ErrorCode.GROUP_ID_NOT_FOUND)
    assert scripted.member.state is State.JOINING
    scripted.sent()
    scripted.answer(error=ErrorCode.GROUP_ID_NOT_FOUND)
    assert scripted.member.state is State.FAILED, "the group isn't one of streams"


@pytest.mark.parametrize("error", [ErrorCode.STREAMS_INVALID_TOPOLOGY, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_fatal_errors(error: ErrorCode) -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.sent()
    assert scripted.answer(error=error) is Reaction.FAIL
    assert scripted.member.state is State.FAILED
    assert scripted.member.ended
    assert scripted.member.due_at is None
    assert scripted.events() == [Lost({A: ACTIVE})]
    assert isinstance(scripted.member.error, KafkaError)
    assert "because; " in str(scripted.member.error)


def test_tasks_of_unknown_subtopologies_are_fatal() -> None:
    scripted = Scripted().joined()
    scripted.beat(tasks={TaskId("7", 0): ACTIVE})
    assert isinstance(scripted.member.error, ClientError)
    assert "subtopologies that its topology lacks (7)" in str(scripted.member.error)
    assert not scripted.events()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"active_tasks": []}, "not of all"),
        ({"member_epoch": -1}, "member epoch -1"),
        ({"heartbeat_interval_ms": 0}, "interval 0"),
        ({"active_tasks": [TaskIds(subtopology_id="0", partitions=(-1,))]}, "negative"),
        ({"standby_tasks": [TaskIds(subtopology_id="0", partitions=(0,))] * 2}, "listed twice"),
    ],
)
def test_answers_that_make_no_sense_count_as_missed(fields: dict[str, Any], why: str) -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    if "standby_tasks" in fields or why == "negative":
        fields = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []} | fields
    scripted.sent()
    with pytest.raises(ValueError, match=why):
        scripted.answer(**fields)
    assert scripted.wait > 0
    assert owned(scripted.beat(tasks={A: ACTIVE})) == {A: ACTIVE}
    assert not scripted.events()


def test_it_leaves_when_its_tasks_are_closed() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE, B: ACTIVE})
    scripted.member.stop(scripted.now)
    assert scripted.events() == [Revoked({A: ACTIVE, B: ACTIVE})]
    scripted.beat(tasks={A: ACTIVE, B: ACTIVE, C: ACTIVE})
    assert not scripted.events(), "nothing new is taken"
    scripted.member.closed([A], scripted.now)
    assert owned(scripted.beat()) == {B: ACTIVE}
    scripted.member.closed([B], scripted.now)
    request = scripted.sent()
    assert request.member_epoch == -1
    scripted.answer(epoch=-1, heartbeat_interval_ms=0)
    assert scripted.member.state is State.LEFT
    assert not scripted.events()
    assert scripted.member.due_at is None


@pytest.mark.parametrize(("for_good", "epoch"), [(False, -2), (True, -1)])
def test_static_members_leave_for_a_while_or_for_good(for_good: bool, epoch: int) -> None:
    scripted = Scripted(instance_id="i").joined(tasks={A: ACTIVE})
    scripted.member.quit(scripted.now, for_good=for_good)
    request = scripted.sent()
    assert (request.member_epoch, request.instance_id) == (epoch, "i")
    assert not scripted.events(), "the user has closed its tasks, or won't any more"


def test_leaving_waits_for_the_heartbeat_that_is_under_way() -> None:
    scripted = Scripted()
    scripted.member.begin(scripted.now)
    scripted.sent()
    scripted.member.quit(scripted.now)
    scripted.answer(tasks={A: ACTIVE})
    assert scripted.member.state is State.DEPARTING
    assert scripted.sent().member_epoch == -1
    scripted.answer(error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert scripted.member.state is State.LEFT


def test_leaving_is_tried_for_a_while() -> None:
    scripted = Scripted().joined()
    started = scripted.now
    scripted.member.quit(scripted.now)
    while scripted.member.state is State.DEPARTING:
        assert scripted.sent().member_epoch == -1
        scripted.member.on_failure(scripted.now)
    assert scripted.member.state is State.LEFT
    assert 8_000 < scripted.now - started <= 10_000


def test_fenced_while_it_leaves_it_is_gone() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.member.stop(scripted.now)
    scripted.sent()
    scripted.answer(error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert scripted.member.state is State.LEFT
    assert scripted.events() == [Lost({A: ACTIVE})]


def test_stopped_while_it_is_fenced_it_is_gone() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.sent()
    scripted.answer(error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert scripted.events() == [Lost({A: ACTIVE})]
    scripted.member.stop(scripted.now)
    assert scripted.member.state is State.LEFT
    assert not scripted.events(), "that is told once"


def test_a_shutdown_ends_every_member() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE})
    scripted.member.shut_application_down()
    assert scripted.wait == 0
    request = scripted.beat(status=[WireStatus(status_code=4, status_detail="enough")])
    assert request.shutdown_application
    assert scripted.member.state is State.LEAVING
    shutdown, revoked, statuses = scripted.events()
    assert shutdown == ShutdownRequested("enough")
    assert revoked == Revoked({A: ACTIVE})
    assert statuses == StatusesChanged((Status(StatusCode.SHUTDOWN_APPLICATION, "enough"),))
    scripted.member.closed([A], scripted.now)
    request = scripted.beat(epoch=-1)
    assert (request.member_epoch, request.shutdown_application) == (-1, False)
    assert scripted.member.state is State.LEFT


def test_a_request_to_shut_down_is_said_until_it_is_heard() -> None:
    scripted = Scripted().joined()
    scripted.member.shut_application_down()
    assert scripted.sent().shutdown_application
    scripted.member.on_failure(scripted.now)
    assert scripted.beat().shutdown_application
    assert not scripted.beat().shutdown_application


def test_statuses_and_endpoints_are_told_when_they_change() -> None:
    scripted = Scripted().joined()
    reported = [WireStatus(status_code=0, status_detail="old"), WireStatus(status_code=99, status_detail="new to us")]
    partitions = WirePartitions(topic="in", partitions=(0, 1))
    of_endpoint = StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint
    endpoints = [
        of_endpoint(
            user_endpoint=WireEndpoint(host="h", port=1), active_partitions=[partitions], standby_partitions=[]
        ),
        of_endpoint(
            user_endpoint=WireEndpoint(host="h", port=1), active_partitions=[], standby_partitions=[partitions]
        ),
    ]
    scripted.beat(status=reported, partitions_by_user_endpoint=endpoints)
    both = frozenset({TopicPartition("in", 0), TopicPartition("in", 1)})
    assert scripted.events() == [
        StatusesChanged((Status(StatusCode.STALE_TOPOLOGY, "old"), Status(99, "new to us"))),
        EndpointsChanged({Endpoint("h", 1): EndpointPartitions(both, both)}),
    ]
    scripted.beat(status=reported)
    assert not scripted.events()
    scripted.beat(status=[])
    assert scripted.events() == [StatusesChanged(())]
    assert scripted.member.endpoints


def test_offsets_are_reported_at_intervals() -> None:
    scripted = Scripted()
    report = scripted.member.offsets.update
    report({A: 5}, {A: 10})
    scripted.member.begin(scripted.now)
    request = scripted.beat(tasks={})
    assert [(reported.partition, reported.offset) for reported in request.task_offsets or ()] == [(0, 5)]
    assert [(reported.partition, reported.offset) for reported in request.task_end_offsets or ()] == [(0, 10)]
    report({A: 6}, {A: 10})
    started, reported = scripted.now, []
    while scripted.now - started < 50_000:
        if scripted.beat().task_offsets is not None:
            reported.append(scripted.now - started)
            report({A: 10 + len(reported)}, {A: 20})
    assert reported == [20_000, 40_000]


def test_a_warm_up_that_has_caught_up_is_reported_at_once_and_once() -> None:
    scripted = Scripted().joined(tasks={A: WARMUP, B: STANDBY})
    scripted.member.offsets.update({A: 0, B: 1000}, {A: 1000, B: 1000})
    assert scripted.wait == INTERVAL, "no warm-up has caught up"
    scripted.member.offsets.update({A: 900, B: 1000}, {A: 1000, B: 1000})
    assert scripted.wait == 0
    assert scripted.beat().task_offsets
    scripted.member.offsets.update({A: 901, B: 1000}, {A: 1000, B: 1000})
    assert scripted.wait == INTERVAL


def test_the_begin_and_the_end_of_a_restore_are_reported_at_once() -> None:
    scripted = Scripted().joined(tasks={A: ACTIVE, B: STANDBY})
    scripted.member.offsets.update({A: 0, B: 0}, {A: 1000, B: 1000})
    assert scripted.wait == 0
    assert len(scripted.beat().task_offsets or ()) == 2
    scripted.member.offsets.update({A: 900, B: 1000}, {A: 1000, B: 1000})
    assert scripted.wait == INTERVAL
    scripted.member.offsets.update({B: 1000}, {B: 1000})
    assert scripted.wait == 0
    assert [each.partition for each in scripted.beat().task_offsets or ()] == [B.partition]
    assert scripted.wait == INTERVAL


def test_brokers_of_version_0_are_told_no_offsets() -> None:
    scripted = Scripted().joined(tasks={A: WARMUP})
    scripted.member.offsets.update({A: 1000}, {A: 1000})
    request = scripted.sent(version=0)
    assert (request.task_offsets, request.task_end_offsets) == (None, None)
    scripted.answer(acceptable_recovery_lag_v0=7)
    assert scripted.member.offsets.acceptable_lag == 7
    assert scripted.wait == INTERVAL, "and not asked for them again and again"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"group_id": " "}, "group_id must not be empty"),
        ({"process_id": ""}, "process_id must not be empty"),
        ({"instance_id": ""}, "instance_id must be None or not empty"),
        ({"rebalance_timeout_ms": 0}, "more than 0"),
        ({"user_endpoint": Endpoint("h", 0)}, "a port from 1 to 65535"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Scripted(**settings)
