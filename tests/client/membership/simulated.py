"""Members in virtual time: machines without sockets, whose messages take their time, and get lost with the channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, Protocol
from uuid import UUID

from kohort.client.errors import ConnectionLostError
from kohort.client.membership.classic_group_protocol import ClassicGroupProtocol
from kohort.client.membership.consumer_group_protocol import ConsumerGroupProtocol
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
from kohort.client.types import PartitionInfo, TopicInfo, TopicPartition
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from tests.client.membership.consumer_group_coordinator import ConsumerGroupCoordinator
from tests.coordinator.classic.driver import Driver

__all__ = ["Classic", "Modern", "SimulatedMember", "Simulation"]

TOPICS = {"a": 6, "b": 3}
STEP_MS = 10


def view(topics: dict[str, int]) -> Any:
    infos = {
        name: TopicInfo(name, UUID(int=index + 1), False, {n: PartitionInfo(n, 0, 0, (0,), (0,)) for n in range(count)})
        for index, (name, count) in enumerate(topics.items())
    }
    return SimpleNamespace(topics=infos, names={info.topic_id: name for name, info in infos.items()})


class Coordinator(Protocol):
    now: int

    def ask(self, request: Request, reply: Callable[[Response], None]) -> None: ...
    def pass_time(self, ms: int) -> None: ...


class Classic:
    """Kohort's own classic groups."""

    def __init__(self) -> None:
        self.driver = Driver(group_initial_rebalance_delay_ms=100)

    @property
    def now(self) -> int:
        return self.driver.now

    def pass_time(self, ms: int) -> None:
        self.driver.sleep(ms)

    def ask(self, request: Request, reply: Callable[[Response], None]) -> None:
        classic = self.driver.shard.classic
        if isinstance(request, HeartbeatRequest):
            reply(HeartbeatResponse(error_code=classic.heartbeat(request, self.now)))
            return
        operation, version = {
            JoinGroupRequest: (classic.join, 9),
            SyncGroupRequest: (classic.sync, 5),
            LeaveGroupRequest: (classic.leave, 5),
        }[type(request)]
        request.encode(version)
        call = self.driver.send(operation, request, version)
        call.__class__ = type("Forwarding", (type(call),), {"__call__": lambda _, response: reply(response)})
        for response in call.responses:
            reply(response)


class Modern:
    """A consumer group's coordinator."""

    def __init__(self) -> None:
        self.now = 1_000_000
        infos = view(TOPICS).topics
        self.group = ConsumerGroupCoordinator({name: (infos[name].topic_id, count) for name, count in TOPICS.items()})

    def pass_time(self, ms: int) -> None:
        self.now += ms
        self.group.expire(self.now)

    def ask(self, request: Request, reply: Callable[[Response], None]) -> None:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        request.encode(1)
        reply(self.group.heartbeat(request, self.now))


@dataclass
class _Due:
    at: int
    what: Callable[[], list[Effect]]


class SimulatedMember:
    """A machine, its channel, and a consumer that fetches what it was told to."""

    def __init__(self, simulation: Simulation, name: str, settings: MembershipSettings) -> None:
        self.simulation, self.name = simulation, name
        self.world = view(TOPICS)
        protocol = (
            ClassicGroupProtocol(settings, self.world)
            if settings.group_protocol == "classic"
            else ConsumerGroupProtocol(settings, self.world, name)
        )
        self.protocol = protocol
        self.machine = MemberStateMachine(settings, protocol)
        self.has: set[TopicPartition] = set()
        self.suspended = False
        self.channel = 0
        self.open = False
        self.searches = 0
        self.due: list[_Due] = []
        self.work: list[Revoke | Assign] = []
        self.working = False
        self.errors: list[Exception] = []
        self.slow_since: int | None = None

    @property
    def fetching(self) -> set[TopicPartition]:
        return set() if self.suspended else self.has

    def subscribe(self, *topics: str) -> None:
        self.perform(self.machine.subscribe(Subscription(frozenset(topics)), self.simulation.now))

    def lose_channel(self) -> None:
        """All that is asked stays without an answer, which the member sees."""
        self.channel += 1

    def later(self, what: Callable[[], list[Effect]]) -> None:
        delay = self.simulation.random.randrange(0, 8 * STEP_MS, STEP_MS)
        self.due.append(_Due(self.simulation.now + delay, what))

    def perform(self, effects: list[Effect]) -> None:
        simulation = self.simulation
        for effect in effects:
            match effect:
                case Suspend():
                    self.suspended = True
                case Resume():
                    self.suspended = False
                case RaiseError(error):
                    self.errors.append(error)
                case Revoke():
                    if effect.lost:
                        assert self.suspended, "what is lost isn't fetched for a moment longer"
                    self.work.append(effect)
                case Assign():
                    self.work.append(effect)
                case FindCoordinator():
                    self.later(self.found(effect))
                case FetchMetadata(turn):
                    self.later(lambda turn=turn: self.machine.metadata_ready(turn, simulation.now))
                case SendRequest():
                    self.ask(effect)
        self.let_work()

    def found(self, effect: FindCoordinator) -> Callable[[], list[Effect]]:
        self.open = self.open and not effect.lost
        self.searches += 1
        search = self.searches

        def find() -> list[Effect]:
            if search != self.searches:
                return []  # another one has begun
            self.open = True
            return self.machine.coordinator_found(effect.search, self.simulation.now)

        return find

    def ask(self, effect: SendRequest) -> None:
        channel, simulation, request = self.channel, self.simulation, effect.call.request
        fault = simulation.random.random() < simulation.faults
        reaches_coordinator = simulation.random.random() < 0.5

        def answer(response: Response) -> None:
            def arrive() -> list[Effect]:
                if channel != self.channel:
                    lost = ConnectionLostError("lost")
                    return self.machine.request_failed(effect.attempt, lost, simulation.now)
                return self.machine.response_received(effect.attempt, request, response, simulation.now)

            self.later(arrive)

        def send() -> list[Effect]:
            if channel != self.channel or not self.open:
                return self.machine.request_failed(effect.attempt, ConnectionLostError("lost"), simulation.now)
            if fault and not reaches_coordinator:
                return break_off()
            simulation.coordinator.ask(request, answer)
            return break_off() if fault else []

        def break_off() -> list[Effect]:
            """The channel breaks. An answer that is held back won't come over it, and the member sees that at once."""
            self.lose_channel()
            return self.machine.request_failed(effect.attempt, ConnectionLostError("lost"), simulation.now)

        self.later(send)

    def let_work(self) -> None:
        if self.working or not self.work:
            return
        self.working = True
        effect = self.work.pop(0)
        if isinstance(effect, Revoke):
            assert effect.partitions <= self.machine.revoking
            # Fetchers stop at once, before the user's loop is waited for.
            self.has -= effect.partitions
        else:
            assert effect.added <= self.machine.owned and not effect.added & self.has

        def done() -> list[Effect]:
            self.working = False
            if isinstance(effect, Revoke):
                return self.machine.done(effect.done, effect.partitions, self.simulation.now)
            self.has |= effect.added
            assert self.has == effect.assigned
            return self.machine.done(EventType.ASSIGNED, effect.added, self.simulation.now)

        self.later(done)

    def step(self) -> None:
        now = self.simulation.now
        for due in [due for due in self.due if due.at <= now]:
            self.due.remove(due)
            self.perform(due.what())
        self.perform(self.machine.tick(now, now if self.slow_since is None else self.slow_since))
        assert self.fetching <= self.machine.owned, "it fetches what it doesn't own"
        if self.machine.state in (State.UNSUBSCRIBED, State.FATAL, State.STALE, State.FENCED):
            assert not self.fetching


class Simulation:
    """Members of one group, and the time.

    Args:
        coordinator: of the group.
        seed: for all that is left to chance.
        settings: the members'.
    """

    def __init__(self, coordinator: Coordinator, seed: int, **settings: Any) -> None:
        self.coordinator, self.random = coordinator, Random(seed)
        self.settings = MembershipSettings(group_id="group", session_timeout_ms=6_000, **settings)
        self.members: list[SimulatedMember] = []
        self.faults = 0.0

    @property
    def now(self) -> int:
        return self.coordinator.now

    def add(self, *topics: str) -> SimulatedMember:
        member = SimulatedMember(self, f"member-{len(self.members)}", self.settings)
        self.members.append(member)
        member.subscribe(*topics)
        return member

    def run(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.coordinator.pass_time(STEP_MS)
            for member in self.members:
                member.step()
            # No two of them fetch the same.
            fetched = [partition for member in self.members for partition in member.fetching]
            assert len(fetched) == len(set(fetched)), {m.name: (m.machine.state, m.fetching) for m in self.members}

    def stable(self) -> bool:
        """Whether all members are stable, and fetch everything they subscribe to between them."""
        members = [member for member in self.members if member.machine.state is not State.UNSUBSCRIBED]
        topics = frozenset[str]().union(*(member.protocol.subscription.topics for member in members))
        wanted = {TopicPartition(topic, n) for topic in topics for n in range(TOPICS[topic])}
        fetched = {partition for member in members for partition in member.fetching}
        return fetched == wanted and all(member.machine.state is State.STABLE for member in members)

    def run_until_stable(self) -> None:
        for _ in range(60):
            self.run(500)
            if self.stable():
                return
        raise AssertionError({m.name: (m.machine.state, m.fetching, m.errors) for m in self.members})
