"""What simulated worlds have in common: time, and a coordinator that is driven as the broker drives it."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

from kohort.coordinator.shard import GroupShard
from kohort.coordinator.step import Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key

START = 1_700_000_000_000


class CoordinatorWorld(ABC):
    """A coordinator whose log is kept in bytes, compacted, and read by a shadow shard as it grows.

    A restart makes a new shard of the log.
    """

    shard: GroupShard
    checker: Any

    def __init__(self, remembered: int) -> None:
        self.now = START
        self.log: dict[bytes, bytes] = {}
        self.trace: deque[tuple[object, ...]] = deque(maxlen=remembered)
        self.up = True
        self.wheel = TimingWheel(self.now)
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._order = 0

    @abstractmethod
    def perform(self, step: Step) -> None:
        """Do what the coordinator decided: append, replay, answer."""

    def after(self, ms: int, action: Callable[[], object]) -> None:
        """Do something later."""
        self._order += 1
        heapq.heappush(self._events, (self.now + ms, self._order, action))

    def run(self, ms: int) -> None:
        """Let time pass. At any moment the coordinator's timers run first, as late as they may."""
        end = self.now + ms
        events = self._events
        while True:
            due = self.wheel.next_deadline()
            first = events[0][0] if events else end + 1
            if due is not None and due <= first and due <= end:
                self.now = max(self.now, due)
                self._run_timers()
                self.checker.check_deadlines()
            elif first <= end:
                self.now, _, action = heapq.heappop(events)
                action()
            else:
                self.now = end
                self.checker.check_deadlines()
                return

    def note(self, *event: object) -> None:
        """Remember what happened, for whoever reads a failure."""
        self.trace.append((self.now - START, *event))

    def _run_timers(self) -> None:
        self.wheel.advance(self.now)
        self._drain()

    def _drain(self) -> None:
        while self.shard.pending_steps:
            step = self.shard.pending_steps.pop(0)
            self.perform(step() if callable(step) else step)

    def _replay(self, shard: GroupShard, raw_key: bytes) -> None:
        kind, key = decode_key(OFFSETS_TOPIC, raw_key)
        raw_value = self.log.get(raw_key)
        shard.replay(key, None if raw_value is None else kind.decode_value(raw_value)[0])
