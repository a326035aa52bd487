"""Network and coordinator of a simulated world of classic groups, random only by the world's generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.classic.timeouts import InitialDelayedJoin
from kohort.coordinator.shard import GroupSettings, GroupShard, value_version
from kohort.coordinator.step import Client, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.stored import OFFSETS_TOPIC, record_type
from tests.simulation.books import Call
from tests.simulation.checker import Checker
from tests.simulation.coordinator_world import CoordinatorWorld


@dataclass
class Faults:
    """How likely a message meets each fault, and how long delayed ones take, in ms."""

    lost: float = 0.01
    duplicated: float = 0.01
    delayed: float = 0.04
    delay_ms: int = 4_000


class ClassicWorld(CoordinatorWorld):
    """Members' requests go in by `send` and come out as responses, if nothing gets lost."""

    def __init__(self, rng: Random, settings: GroupSettings) -> None:
        super().__init__(remembered=400)
        self.rng = rng
        self.settings = settings
        self.faults: Faults | None = Faults()
        self.append_error: ErrorCode | None = None
        self.heartbeats = 0
        self.requests = 0
        self.restarts = 0
        self._ids = 0
        self._touched: dict[str, None] = {}  # groups that timers have changed
        self.shard = self._new_shard(self.wheel)
        self.shadow = self._new_shard(TimingWheel(self.now))
        self.checker = Checker(self)
        self.shard.loaded(self.now)

    def _new_shard(self, wheel: TimingWheel) -> GroupShard:
        shard = GroupShard(0, self.settings, wheel, self._new_id)
        rebalancer = shard.classic.rebalancer
        for name in (
            "expire_session",
            "remove_pending_member",
            "complete_initial_join",
            "complete_join",
            "expire_pending_sync",
        ):
            setattr(rebalancer, name, partial(self._touch, getattr(rebalancer, name)))
        return shard

    def _touch(self, method: Callable[..., None], subject: ClassicGroup | InitialDelayedJoin, *others: object) -> None:
        """Note the group that a timer is about to change, and let it."""
        group = subject if isinstance(subject, ClassicGroup) else subject.group
        self._touched[group.group_id] = None
        method(subject, *others)

    def _new_id(self, name: str) -> str:
        self._ids += 1
        return f"{name}-{self._ids}"

    def _run_timers(self) -> None:
        self._touched.clear()
        super()._run_timers()
        for group_id in self._touched:
            self.note("timer", group_id)
            self.checker.check(group_id, None)

    # Network ----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, receive: Callable[[ErrorCode], object]) -> None:
        """Send a heartbeat: what `send` does, by the short way if no fault comes between."""
        if self.faults is None or self.rng.random() > self.faults.lost + self.faults.duplicated + self.faults.delayed:
            self._heartbeat(request, receive)
            return
        for ms, answered in self._ways():
            self.after(ms, partial(self._heartbeat, request, receive if answered else _nowhere))

    def _heartbeat(self, request: HeartbeatRequest, receive: Callable[[ErrorCode], object]) -> None:
        code = self._deliver_heartbeat(request)
        if code is not None:
            receive(code)

    def _deliver_heartbeat(self, request: HeartbeatRequest) -> ErrorCode | None:
        if not self.up:
            return None
        self.heartbeats += 1
        code = self.shard.classic.heartbeat(request, self.now)
        assert not self.shard.pending_steps
        self.note("heartbeat", request.group_id, request.member_id, request.generation_id, code)
        self.checker.heartbeat(request, code)
        return code

    def send(self, kind: str, request: Any, client: Client, receive: Callable[[Any], object]) -> None:
        """Send a request through the network, which may lose, double or delay it, or its response."""
        if self.faults is None or self.rng.random() > 2 * (
            self.faults.lost + self.faults.duplicated + self.faults.delayed
        ):
            self.deliver(kind, request, client, receive)
            return
        for ms, answered in self._ways():
            self.after(ms, partial(self.deliver, kind, request, client, receive if answered else _nowhere))

    def _ways(self) -> list[tuple[int, bool]]:
        """What becomes of a message that doesn't come through smoothly: delays, and whether its response comes back."""
        assert self.faults is not None
        weights = (self.faults.lost, self.faults.lost, self.faults.duplicated, self.faults.delayed)
        delay = self.rng.randrange(self.faults.delay_ms)
        (fate,) = self.rng.choices(range(4), weights)
        return ([], [(0, False)], [(0, True), (delay, False)], [(delay, True)])[fate]

    def deliver(self, kind: str, request: Any, client: Client, receive: Callable[[Any], object]) -> None:
        """Hand a request to the coordinator, if that is up."""
        if not self.up:
            return
        self.requests += 1
        call = Call(kind, request, client, receive, self)
        operation = self.shard.offsets.commit if kind == "commit" else getattr(self.shard.classic, kind)
        self.note(kind, request)
        self.checker.arrived(call)
        self.perform(operation(request, client, self.now, call))
        self.checker.check(request.group_id, call)

    def receive(self, receiver: Callable[[Any], object], response: Any) -> None:
        """Bring a response back, at once or after a while."""
        if receiver is _nowhere:
            return
        if self.faults is not None and self.rng.random() < self.faults.delayed:
            self.after(self.rng.randrange(self.faults.delay_ms), lambda: receiver(response))
        else:
            self.after(0, lambda: receiver(response))

    # Coordinator ------------------------------------------------------------------------------------------------

    def perform(self, step: Step) -> None:
        """Do what the coordinator decided: append, replay, answer."""
        if step.records:
            if self.append_error is not None:
                self.checker.append_failed(step.records)
                if step.failed is not None:
                    self.perform(step.failed(self.append_error))
                    return
            else:
                self._append(step)
        for reply, response in step.answers:
            reply(response)
        self._drain()

    def _append(self, step: Step) -> None:
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            raw_key = kind.encode_key(key)
            if value is None:
                self.log.pop(raw_key, None)
            else:
                self.log[raw_key] = kind.encode_value(value, value_version(value))
            self.note("record", key, value)
            self.checker.appended(key, value)
            self._replay(self.shadow, raw_key)
        for key, value in step.records:
            self.shard.replay(key, value, step.producer)

    def stop_coordinator(self, gracefully: bool) -> None:
        """End the coordinator; without grace, requests that wait are never answered."""
        if not self.up:
            return
        self.note("stop", gracefully)
        if gracefully:
            self.perform(self.shard.unload(self.now))
        self.up = False
        self.wheel = TimingWheel(self.now)
        self.checker.stopped(gracefully)

    def start_coordinator(self) -> None:
        """Begin anew with what the log has."""
        if self.up:
            return
        self.restarts += 1
        self.shard = self._new_shard(self.wheel)
        for raw_key in self.log:
            self._replay(self.shard, raw_key)
        self.note("start")
        self.checker.replayed()
        self.shard.loaded(self.now)
        self.up = True
        self.checker.started()

    def delete_group(self, group_id: str) -> None:
        """An administrator tries to delete a group."""
        if not self.up:
            return
        group = self.shard.classic.get(group_id)
        expected = (
            ErrorCode.GROUP_ID_NOT_FOUND
            if group is None
            else ErrorCode.NONE
            if group.state is GroupState.EMPTY
            else ErrorCode.NON_EMPTY_GROUP
        )
        answers: list[Any] = []
        self.note("delete", group_id)
        self.perform(self.shard.delete_groups([group_id], answers.append))
        if self.append_error is None:
            assert [result.error_code for result in answers[0]] == [expected]
            if not expected:
                self.checker.check_deleted(group_id)
        self.checker.check(group_id, None)


def _nowhere(response: object) -> None:
    """Where responses go that get lost."""
