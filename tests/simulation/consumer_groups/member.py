"""A simulated member: the state machine of our client, with a consumer that processes records and commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kohort.client.errors import ConnectionLostError, FencedError, RequestTimeoutError
from kohort.client.membership.consumer_group_protocol import ConsumerGroupProtocol
from kohort.client.membership.effects import Assign, Effect, FindCoordinator, Resume, Revoke, SendRequest, Suspend
from kohort.client.membership.member_states import EventType, State
from kohort.client.membership.settings import MembershipSettings, Subscription
from kohort.client.membership.state_machine import MemberStateMachine
from kohort.client.server_cluster_info import ServerClusterInfo
from kohort.client.types import TopicPartition
from kohort.coordinator.step import Client
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from tests.simulation.books import InvariantError

if TYPE_CHECKING:
    from tests.simulation.consumer_groups.world import ConsumerWorld

REQUEST_TIMEOUT_MS = 5_000
CONSUME_MS = 400
RETRY_MS = 300
REFUSED = frozenset({ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNRELEASED_INSTANCE_ID})
"""Errors after which a client may give up."""


@dataclass(frozen=True)
class Habits:
    """What kind of client it is.

    Attributes:
        revoke_ms: how long it may take to give up partitions.
    """

    group_id: str
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 20_000
    revoke_ms: int = 500


class Member:
    """Joins, heartbeats, gives up and takes partitions as it is told; processes their records, and commits.

    Attributes:
        name: of the client; unlike its member id, never another client's.
        gone: it crashed, or has left.
    """

    def __init__(self, world: ConsumerWorld, habits: Habits) -> None:
        self.world, self.habits, self.group_id = world, habits, habits.group_id
        self.name = world.new_id("client")
        self.client = Client(self.name, "/10.0.0.1", 1)
        settings = MembershipSettings(
            group_id=habits.group_id,
            group_instance_id=habits.instance_id,
            group_protocol="consumer",
            group_remote_assignor=habits.assignor,
            session_timeout_ms=45_000,
            max_poll_interval_ms=habits.rebalance_ms,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        self._cluster = ServerClusterInfo()
        self._cluster.names = dict(world.topics.names)
        self.protocol = ConsumerGroupProtocol(settings, self._cluster, self.name)
        self.machine = MemberStateMachine(settings, self.protocol)
        self.gone = self.frozen = self._suspended = False
        self._waiting: list[Callable[[], object]] = []
        self._requests = 0
        self._timer = 0
        self._busy_until = 0
        self._positions: dict[TopicPartition, int] = {}
        world.members[self.name] = self
        self._do(self.machine.subscribe(Subscription(habits.topics, habits.pattern), world.now))
        self._later(CONSUME_MS, self._consume)

    def __repr__(self) -> str:
        return f"<{self.name} {self.machine.state.name} epoch={self.protocol.generation}>"

    @property
    def member_id(self) -> str:
        return self.protocol.member_id

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.machine.owned

    @property
    def is_stable(self) -> bool:
        return self.machine.state is State.STABLE

    def topics(self) -> set[str]:
        """The topics that it subscribes to, as far as they exist."""
        subscription = self.protocol.subscription
        found = set(subscription.topics)
        if subscription.pattern is not None:
            found.update(self.world.topics.matching(subscription.pattern))
        return {topic for topic in found if topic in self.world.topics.counts}

    # What happens to it ---------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """Be gone without a word."""
        self.gone = True
        self.world.members.pop(self.name, None)

    def leave(self) -> None:
        """Unsubscribe, and be gone once that is done."""
        self._do(self.machine.leave(self.world.now))

    def subscribe(self, topics: frozenset[str]) -> None:
        """Read other topics."""
        self._do(self.machine.subscribe(Subscription(topics), self.world.now))

    def thaw(self) -> None:
        """Go on after a pause, with all that came meanwhile."""
        self.frozen = False
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            if not self.gone:
                action()

    def metadata_changed(self) -> None:
        self._later(self.world.rng.randrange(500), self._learn_topics)

    def _learn_topics(self) -> None:
        self._cluster.names.update(self.world.topics.names)
        self._do(self.machine.metadata_changed(self.world.now))

    def _later(self, ms: int, action: Callable[[], object]) -> None:
        self.world.after(ms, partial(self._run, action))

    def _run(self, action: Callable[[], object]) -> None:
        if self.gone:
            return
        if self.frozen:
            self._waiting.append(action)
        else:
            action()

    # Effects --------------------------------------------------------------------------------------------------------

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._carry_out(effect)
        error = self.machine.error
        legitimate = isinstance(error, FencedError) or getattr(error, "code", None) in REFUSED
        if self.machine.state is State.FATAL and not legitimate:
            raise InvariantError(f"{self} is out because of {error}")
        if self.machine.state in (State.FATAL, State.UNSUBSCRIBED) and not self.machine.revoking:
            self.crash()
            return
        self.world.checker.check_clients(self.group_id)
        due = self.machine.next_tick(self.world.now)
        self._timer += 1
        if due is not None:
            self._later(max(1, due - self.world.now), partial(self._tick, self._timer))

    def _tick(self, timer: int) -> None:
        if timer == self._timer:
            self._do(self.machine.tick(self.world.now, self.world.now))

    def _carry_out(self, effect: Effect) -> None:
        rng = self.world.rng
        match effect:
            case FindCoordinator():
                self._later(RETRY_MS, partial(self._find, effect.search))
            case SendRequest():
                pause = RETRY_MS if effect.after_pause else 0
                if pause:
                    self._later(pause, partial(self._send, effect))
                else:
                    self._send(effect)
            case Revoke():
                if not effect.lost:
                    self._commit(effect.partitions)
                for partition in effect.partitions:
                    self._positions.pop(partition, None)
                took = rng.randrange(1, self.habits.revoke_ms)
                self._work(took, partial(self._done, effect.done, effect.partitions))
            case Assign():
                self._work(rng.randrange(1, 200), partial(self._done, EventType.ASSIGNED, effect.added))
            case Suspend():
                self._suspended = True
            case Resume():
                self._suspended = False

    def _work(self, ms: int, done: Callable[[], object]) -> None:
        """The consumer does one thing after the other."""
        self._busy_until = max(self._busy_until, self.world.now) + ms
        self._later(self._busy_until - self.world.now, done)

    def _done(self, what: EventType, partitions: frozenset[TopicPartition]) -> None:
        if what is EventType.ASSIGNED:
            for partition in partitions & self.machine.owned - self.machine.revoking:  # it may lose them again
                self._positions[partition] = self.world.checker.committed_at.get((self.group_id, partition), 0)
        self._do(self.machine.done(what, partitions, self.world.now))

    def _find(self, search: int) -> None:
        if self.world.up:
            self._do(self.machine.coordinator_found(search, self.world.now))
        else:
            self._later(RETRY_MS, partial(self._find, search))

    def _send(self, effect: SendRequest) -> None:
        self._requests += 1
        request: Any = effect.call.request
        answered: list[bool] = []

        def receive(response: Any) -> None:
            if not answered:
                answered.append(True)
                now = self.world.now
                self._do(self.machine.response_received(effect.attempt, request, response, now))

        def fail(error: Exception) -> None:
            if not answered:
                answered.append(True)
                self._do(self.machine.request_failed(effect.attempt, error, self.world.now))

        self.world.heartbeat(
            self._requests,
            request,
            self,
            lambda response: self._run(partial(receive, response)),
            lambda: self._run(partial(fail, ConnectionLostError("refused"))),
        )
        self._later(REQUEST_TIMEOUT_MS, partial(fail, RequestTimeoutError("no response")))

    # Records --------------------------------------------------------------------------------------------------------

    def _consume(self) -> None:
        self._later(CONSUME_MS, self._consume)
        if self._suspended:
            return
        for partition in sorted(self.machine.owned - self.machine.revoking):
            at = self._positions.get(partition)
            if at is not None:
                end = min(self.world.end_of(partition), at + self.world.rng.randrange(20))
                self.world.checker.consumed(self.group_id, partition, at, end)
                self._positions[partition] = end
        if self.world.rng.random() < 0.5:
            self._commit(self.machine.owned - self.machine.revoking)

    def _commit(self, partitions: frozenset[TopicPartition]) -> None:
        topics: dict[str, list[OffsetCommitRequest.Topic.Partition]] = defaultdict(list)
        for partition in sorted(partitions):
            if partition in self._positions:
                topics[partition.topic].append(
                    OffsetCommitRequest.Topic.Partition(
                        partition_index=partition.partition, committed_offset=self._positions[partition]
                    )
                )
        if topics and self.protocol.generation > 0:
            request = OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=self.protocol.generation,
                member_id=self.member_id,
                group_instance_id=self.habits.instance_id,
                topics=[OffsetCommitRequest.Topic(name=name, partitions=parts) for name, parts in topics.items()],
            )
            self.world.commit(request, self)
