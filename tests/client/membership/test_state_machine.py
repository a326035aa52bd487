"""The machine under any inputs, and its reaction to each error code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.errors import ConnectionLostError, FencedError, UnsupportedError
from kohort.client.membership.classic_group_protocol import ClassicGroupProtocol
from kohort.client.membership.consumer_group_protocol import ConsumerGroupProtocol
from kohort.client.membership.consumer_protocol import decode_subscription, encode_assignment, encode_subscription
from kohort.client.membership.effects import (
    Assign,
    Effect,
    FetchMetadata,
    FindCoordinator,
    RaiseError,
    Resume,
    Revoke,
    SendRequest,
    Suspend,
)
from kohort.client.membership.member_states import EventType, State
from kohort.client.membership.settings import MembershipSettings, Subscription
from kohort.client.membership.state_machine import MemberStateMachine
from kohort.client.types import TopicInfo, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

KINDS = ["eager", "cooperative", "consumer"]
TOPIC = UUID(int=7)
SUBSCRIPTION = Subscription(frozenset({"t"}))


class MembershipDriver:
    """A machine whose network and consumer do what the test says."""

    def __init__(self, kind: str, **extra: Any) -> None:
        chosen = MembershipSettings(
            group_id="g",
            group_protocol="consumer" if kind == "consumer" else "classic",
            partition_assignment_strategy=("cooperative-sticky",) if kind == "cooperative" else ("range",),
            **extra,
        )
        world: Any = SimpleNamespace(topics={"t": TopicInfo("t", TOPIC, False, {})}, names={TOPIC: "t"})
        self.kind = kind
        self.protocol: Any = (
            ConsumerGroupProtocol(chosen, world, "me") if kind == "consumer" else ClassicGroupProtocol(chosen, world)
        )
        self.machine = MemberStateMachine(chosen, self.protocol)
        self.now = 1_000
        self.asks: list[SendRequest] = []
        self.searches: list[FindCoordinator] = []
        self.learns: list[FetchMetadata] = []
        self.work: list[Revoke | Assign] = []
        self.errors: list[Exception] = []
        self.has: set[TopicPartition] = set()
        self.suspended = False

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Suspend():
                    assert not self.suspended
                    self.suspended = True
                case Resume():
                    assert self.suspended
                    self.suspended = False
                case RaiseError(error):
                    self.errors.append(error)
                case Revoke() | Assign():
                    self.work.append(effect)
                case FindCoordinator():
                    self.searches = [effect]
                case FetchMetadata():
                    self.learns = [effect]
                case SendRequest():
                    self.check(effect.call.request)
                    self.asks.append(effect)
        fetching = set() if self.suspended else self.has
        assert fetching <= self.machine.owned, "it fetches what it doesn't own"

    def check(self, request: Any) -> None:
        """What a request gives back isn't fetched any more."""
        match request:
            case JoinGroupRequest():
                owned = decode_subscription(request.protocols[0].metadata).owned
                assert self.has <= owned
            case ConsumerGroupHeartbeatRequest(member_epoch=epoch) if epoch >= 0:
                if request.topic_partitions is not None:
                    listed = {TopicPartition("t", n) for topic in request.topic_partitions for n in topic.partitions}
                    assert self.has <= listed
                    self.acknowledged = listed
                assert self.has <= self.acknowledged
            case LeaveGroupRequest():
                assert not self.has or self.machine.state is State.STALE

    def answer(self, response: Any) -> None:
        ask = self.asks.pop(0)
        self.perform(self.machine.response_received(ask.attempt, ask.call.request, response, self.now))

    def lose(self) -> None:
        ask = self.asks.pop(0)
        self.perform(self.machine.request_failed(ask.attempt, ConnectionLostError("lost"), self.now))

    def find(self) -> None:
        self.perform(self.machine.coordinator_found(self.searches.pop().search, self.now))

    def do_work(self) -> None:
        effect = self.work.pop(0)
        if isinstance(effect, Assign):
            assert not effect.added & self.has
            self.has |= effect.added
            assert self.has == effect.assigned
            self.perform(self.machine.done(EventType.ASSIGNED, effect.added, self.now))
        else:
            assert effect.partitions <= self.has
            self.has -= effect.partitions
            self.perform(self.machine.done(effect.done, effect.partitions, self.now))

    def tick(self, ms: int = 0, last_poll: int | None = None) -> None:
        self.now += ms
        self.perform(self.machine.tick(self.now, self.now if last_poll is None else last_poll))

    def subscribe(self, subscription: Subscription = SUBSCRIPTION) -> None:
        self.perform(self.machine.subscribe(subscription, self.now))

    def register(self, *numbers: int) -> None:
        """From UNSUBSCRIBED to STABLE."""
        self.subscribe()
        self.find()
        self.answer(good(self.asks[0].call.request, numbers))
        if self.kind != "consumer":
            self.answer(good(self.asks[0].call.request, numbers))
        self.do_work()
        assert self.machine.state is State.STABLE


def good(request: Any, numbers: Any = (), *, epoch: int = 1, leader: str = "other") -> Any:
    """A good answer; assignments have these partitions."""
    match request:
        case JoinGroupRequest():
            members = [
                JoinGroupResponse.Member(member_id="me", metadata=encode_subscription({"t"}, None, (), -1, None))
            ]
            return JoinGroupResponse(
                generation_id=epoch,
                protocol_type="consumer",
                protocol_name="range",
                member_id="me",
                leader=leader,
                members=members if leader == "me" else [],
            )
        case SyncGroupRequest():
            return SyncGroupResponse(assignment=encode_assignment(TopicPartition("t", n) for n in numbers))
        case HeartbeatRequest():
            return HeartbeatResponse()
        case LeaveGroupRequest():
            return LeaveGroupResponse()
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    assignment = None
    if numbers is not None:
        topics = [TopicPartitions(topic_id=TOPIC, partitions=tuple(numbers))] if numbers else []
        assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=topics)
    return ConsumerGroupHeartbeatResponse(member_epoch=epoch, heartbeat_interval_ms=500, assignment=assignment)


def bad(request: Any, code: int) -> Any:
    """An answer with an error."""
    return next(
        answer
        for asked, answer in {
            JoinGroupRequest: JoinGroupResponse(error_code=code, member_id="me", protocol_type=None),
            SyncGroupRequest: SyncGroupResponse(error_code=code),
            HeartbeatRequest: HeartbeatResponse(error_code=code),
            LeaveGroupRequest: LeaveGroupResponse(error_code=code),
            ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse(error_code=code),
        }.items()
        if type(request) is asked
    )


CODES = [
    ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_any_inputs(kind: str, data: st.DataObject) -> None:
    """It fetches only what it owns, acknowledges what has stopped, and can be closed whatever has happened."""
    member = MembershipDriver(kind)
    member.subscribe()
    last_poll = member.now
    epoch = 0
    for _ in range(data.draw(st.integers(0, 60))):
        choices = ["tick", "user", "subscribe", "stale"]
        choices += ["answer"] * 4 * bool(member.asks) + ["error", "lose"] * bool(member.asks)
        choices += (
            ["find"] * 3 * bool(member.searches)
            + ["learn"] * 3 * bool(member.learns)
            + ["work"] * 3 * bool(member.work)
        )
        match data.draw(st.sampled_from(choices)):
            case "tick":
                member.tick(data.draw(st.sampled_from([0, 500, 3_000, 50_000, 301_000])), last_poll)
            case "user":
                last_poll = member.now
            case "subscribe":
                names = data.draw(st.frozensets(st.sampled_from(["t", "u"]), max_size=2))
                member.subscribe(Subscription(names))
            case "answer":
                numbers = data.draw(st.none() | st.sets(st.integers(0, 3)))
                request = member.asks[0].call.request
                epoch += 1
                if numbers is None and not isinstance(request, ConsumerGroupHeartbeatRequest):
                    numbers = set()
                leader = data.draw(st.sampled_from(["me", "other"]))
                member.answer(good(request, numbers and sorted(numbers), epoch=epoch, leader=leader))
            case "error":
                member.answer(bad(member.asks[0].call.request, data.draw(st.sampled_from(CODES))))
            case "lose":
                member.lose()
            case "find":
                member.find()
            case "learn":
                member.perform(member.machine.metadata_ready(member.learns.pop().attempt, member.now))
            case "work":
                member.do_work()
            case "stale":
                member.perform(member.machine.metadata_changed(member.now))
    member.perform(member.machine.leave(member.now))
    while member.work or member.asks:
        if member.work:
            member.do_work()
        else:
            member.lose()
    assert member.machine.state is State.UNSUBSCRIBED
    assert not member.has and not member.machine.owned


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("code", "state"),
    [
        (ErrorCode.NOT_COORDINATOR, State.SUSPENDED),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, State.SUSPENDED),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, State.STABLE),
        (ErrorCode.UNKNOWN_MEMBER_ID, State.FENCED),
        (ErrorCode.ILLEGAL_GENERATION, State.FENCED),
        (ErrorCode.FENCED_MEMBER_EPOCH, State.FENCED),
        (ErrorCode.UNRELEASED_INSTANCE_ID, State.STABLE),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, State.STABLE),
        (ErrorCode.FENCED_INSTANCE_ID, State.FATAL),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, State.FATAL),
        (ErrorCode.INVALID_REQUEST, State.FATAL),
        (ErrorCode.UNKNOWN_SERVER_ERROR, State.FATAL),
        (999, State.FATAL),
    ],
)
def test_errors_of_heartbeats(kind: str, code: int, state: State) -> None:
    member = MembershipDriver(kind)
    member.register(0, 1)
    member.tick(3_000)
    member.answer(bad(member.asks[0].call.request, code))
    assert member.machine.state is state
    assert member.suspended == (state is not State.STABLE)
    raised = {ErrorCode.TOPIC_AUTHORIZATION_FAILED: KafkaError, ErrorCode.FENCED_INSTANCE_ID: FencedError}
    if state is State.FATAL or code in raised:
        assert [type(error) for error in member.errors] == [raised.get(code, KafkaError)]
    if state is State.FENCED:
        member.do_work()
        member.find()
        request: Any = member.asks[-1].call.request
        if kind == "consumer":
            assert request.member_epoch == 0 and request.member_id == "me" and request.topic_partitions == []
        else:
            assert request.member_id == ("me" if code == ErrorCode.ILLEGAL_GENERATION else "")
            assert decode_subscription(request.protocols[0].metadata).generation == -1


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_joins_that_fail_for_good(kind: str, code: ErrorCode) -> None:
    member = MembershipDriver(kind)
    member.subscribe()
    member.find()
    member.answer(bad(member.asks[0].call.request, code))
    assert member.machine.state is State.FATAL and len(member.errors) == 1
    # Another subscription is another chance.
    member.do_work()
    member.subscribe()
    assert member.machine.state is State.FINDING_COORDINATOR


@pytest.mark.parametrize("kind", KINDS[:2])
def test_join_and_sync_are_retried(kind: str) -> None:
    member = MembershipDriver(kind)
    member.subscribe()
    member.find()
    member.answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me", protocol_type=None))
    request: Any = member.asks[0].call.request
    assert request.member_id == "me" and not member.asks[0].after_pause
    member.answer(bad(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert member.asks[0].after_pause and member.machine.state is State.JOINING
    member.answer(good(member.asks[0].call.request))
    member.answer(bad(member.asks[0].call.request, ErrorCode.REBALANCE_IN_PROGRESS))
    assert member.machine.state is State.JOINING and isinstance(member.asks[0].call.request, JoinGroupRequest)


def test_a_sync_that_is_never_answered_is_given_up() -> None:
    """A join waits for the other members; a sync for the leader, whose session would end."""
    member = MembershipDriver("eager", session_timeout_ms=6_000)
    member.subscribe()
    member.find()
    assert member.asks[0].call.timeout_ms > 300_000
    member.answer(good(member.asks[0].call.request))
    assert isinstance(member.asks[0].call.request, SyncGroupRequest) and member.asks[0].call.timeout_ms == 6_000
    member.lose()
    member.find()
    request: Any = member.asks[0].call.request
    assert isinstance(request, JoinGroupRequest) and request.member_id == "me"


def test_broker_without_consumer_groups() -> None:
    member = MembershipDriver("consumer")
    member.subscribe()
    member.find()
    member.answer(bad(member.asks[0].call.request, ErrorCode.UNSUPPORTED_VERSION))
    assert isinstance(member.errors[0], UnsupportedError) and 'group_protocol="classic"' in str(member.errors[0])


@pytest.mark.parametrize("kind", KINDS)
def test_lost_connection(kind: str) -> None:
    """Fetchers are closed at once, and start again where they were if the coordinator still knows the member."""
    member = MembershipDriver(kind)
    member.register(0, 1)
    member.tick(3_000)
    member.lose()
    assert member.machine.state is State.SUSPENDED and member.suspended and member.searches[0].lost
    member.find()
    member.tick()
    request = member.asks[-1].call.request
    if kind == "consumer":
        # Everything is said again. Only then Kafka answers with all of the assignment, which may have been lost.
        assert request.topic_partitions is not None and request.subscribed_topic_names is not None
        assert request.rebalance_timeout_ms == 300_000
    member.answer(good(request, None))
    assert member.machine.state is State.STABLE and not member.suspended and len(member.has) == 2


@pytest.mark.parametrize("moved", [False, True])
def test_a_coordinator_that_moves_during_a_long_rebalance(moved: bool) -> None:
    """Whom it kept waiting, its successor knows: nothing is lost, though there was silence for a minute."""
    member = MembershipDriver("cooperative")
    member.register(0, 1)
    member.tick(3_000)
    member.answer(bad(member.asks[0].call.request, ErrorCode.REBALANCE_IN_PROGRESS))
    member.tick(60_000)
    if moved:
        member.answer(bad(member.asks[0].call.request, ErrorCode.NOT_COORDINATOR))
    else:
        member.lose()
    member.tick()
    assert member.machine.state is State.FINDING_COORDINATOR and member.suspended and len(member.has) == 2
    member.find()
    request: Any = member.asks[0].call.request
    assert len(decode_subscription(request.protocols[0].metadata).owned) == 2
    member.answer(good(request))
    member.answer(good(member.asks[0].call.request, (0, 1)))
    assert not member.suspended and len(member.has) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_session_timeout_without_responses(kind: str) -> None:
    member = MembershipDriver(kind)
    member.register(0)
    member.tick(3_000)
    member.tick(42_000)
    assert member.machine.state is State.STABLE
    due = member.machine.next_tick(member.now)
    assert due == member.now + 1
    member.tick(1)
    assert member.machine.state is State.FENCED and member.suspended


def test_unknown_topics_are_waited_for() -> None:
    member = MembershipDriver("consumer")
    names, member.protocol._cluster.names = dict(member.protocol._cluster.names), {}
    member.subscribe()
    member.find()
    member.answer(good(member.asks[0].call.request, (0, 1)))
    member.do_work()
    assert not member.has and member.protocol.unresolved
    member.protocol._cluster.names.update(names)
    member.perform(member.machine.metadata_changed(member.now))
    member.do_work()
    assert len(member.has) == 2 and not member.protocol.unresolved


def test_topics_that_become_known_wait_for_a_heartbeat_that_says_they_are_not_owned() -> None:
    member = MembershipDriver("consumer")
    names, member.protocol._cluster.names = dict(member.protocol._cluster.names), {}
    member.subscribe()
    member.find()
    member.answer(good(member.asks[0].call.request, (0, 1)))
    member.do_work()
    member.tick()
    (under_way,) = member.asks
    member.protocol._cluster.names.update(names)
    member.perform(member.machine.metadata_changed(member.now))
    assert not member.work, "the coordinator may yet take that heartbeat for an acknowledgement"
    member.answer(good(under_way.call.request, None))
    member.do_work()
    assert len(member.has) == 2


def test_acknowledgement_of_consumer_groups() -> None:
    member = MembershipDriver("consumer")
    member.register(0, 1)
    member.tick()
    member.answer(good(member.asks[0].call.request, None))
    member.tick(500)
    member.answer(good(member.asks[0].call.request, (1,)))
    member.tick()
    assert not member.asks, "the fetchers run yet"
    member.do_work()
    member.tick()
    request: Any = member.asks[0].call.request
    assert [(each.topic_id, each.partitions) for each in request.topic_partitions] == [(TOPIC, (1,))]


def test_a_topic_that_was_deleted_and_created_again_is_another() -> None:
    member = MembershipDriver("consumer")
    member.register(0)
    member.tick()
    member.answer(good(member.asks[0].call.request, None))
    again = UUID(int=8)
    member.protocol._cluster.names = {again: "t"}
    member.tick(500)
    answer = good(member.asks[0].call.request, (0,))
    answer.assignment.topic_partitions[0].topic_id = again
    member.answer(answer)
    member.tick(500)
    request: Any = member.asks[0].call.request
    assert [(each.topic_id, each.partitions) for each in request.topic_partitions] == [(again, (0,))]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_topic_that_appears_during_the_first_join(kind: str) -> None:
    member = MembershipDriver(kind)
    member.subscribe(Subscription(pattern="[tu]"))
    member.find()
    member.protocol._cluster.topics["u"] = TopicInfo("u", UUID(int=8), False, {})
    member.perform(member.machine.metadata_changed(member.now))
    member.answer(good(member.asks[0].call.request))
    member.answer(good(member.asks[0].call.request, (0,)))
    member.do_work()
    while member.work:
        member.do_work()
    request: Any = member.asks[0].call.request
    assert decode_subscription(request.protocols[0].metadata).topics == {"t", "u"}


def test_a_member_that_changed_from_a_pattern_to_names_says_so_when_it_joins_again() -> None:
    member = MembershipDriver("consumer")
    member.subscribe(Subscription(pattern="[tu]"))
    member.find()
    member.answer(good(member.asks[0].call.request))
    member.do_work()
    member.tick(500)
    member.subscribe()
    member.answer(bad(member.asks[0].call.request, ErrorCode.FENCED_MEMBER_EPOCH))
    while member.work:
        member.do_work()
    member.find()
    request: Any = member.asks[0].call.request
    assert request.member_epoch == 0
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (("t",), "")


@pytest.mark.parametrize(
    ("busy", "reason"), [(True, "busy for longer than max.poll.interval.ms (8000)"), (False, "the consumer leaves")]
)
def test_leaving_a_classic_group_says_why(busy: bool, reason: str) -> None:
    member = MembershipDriver("eager", max_poll_interval_ms=8_000)
    member.register(0)
    if busy:
        member.tick(8_001, last_poll=member.now)
    else:
        member.perform(member.machine.leave(member.now))
        member.do_work()
    request: Any = member.asks[-1].call.request
    assert isinstance(request, LeaveGroupRequest)
    assert [each.reason for each in request.members] == [reason]


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_with_what_is_lost_starts_no_fetchers(kind: str) -> None:
    member = MembershipDriver(kind)
    member.register(0, 1)
    member.tick(3_000)
    member.answer(bad(member.asks[0].call.request, ErrorCode.UNKNOWN_MEMBER_ID))
    member.perform(member.machine.leave(member.now))
    assert member.machine.state is State.PREPARE_LEAVING and member.suspended
    while member.work:
        assert member.suspended
        member.do_work()
    assert not member.suspended, "so that partitions can be assigned by hand"


def test_an_unreleased_instance_id_is_retried_for_the_session_timeout() -> None:
    member = MembershipDriver("consumer", group_instance_id="i")
    member.subscribe()
    member.find()
    for wait in (0, 44_000, 1_000):
        member.now += wait
        member.answer(bad(member.asks[0].call.request, ErrorCode.UNRELEASED_INSTANCE_ID))
        assert member.machine.state is State.JOINING and member.asks[0].after_pause
    member.now += 1
    member.answer(bad(member.asks[0].call.request, ErrorCode.UNRELEASED_INSTANCE_ID))
    assert member.machine.state is State.FATAL and "'i'" in str(member.errors[0])


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_consumer_groups(instance: str | None, epoch: int) -> None:
    member = MembershipDriver("consumer", group_instance_id=instance)
    member.register(0)
    member.perform(member.machine.leave(member.now))
    member.do_work()
    request: Any = member.asks[-1].call.request
    assert request.member_epoch == epoch and member.machine.state is State.LEAVING
    member.answer(bad(request, 0))
    assert member.machine.state is State.UNSUBSCRIBED
