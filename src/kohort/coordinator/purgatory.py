"""Where operations wait that can't be answered yet: a join for the other members, a fetch for data.

An operation is watched under keys. Whoever changes something that it may wait for says so by key, and the operation
looks whether it is complete now; else its deadline completes it. Either way it is completed exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable

from kohort.coordinator.timing_wheel import Timer, TimingWheel

__all__ = ["DelayedOperation", "Purgatory"]


class DelayedOperation(ABC):
    """Something to be completed once: when its condition holds, or at its deadline, in ms since 1970."""

    __slots__ = ("_watch", "completed", "deadline")

    def __init__(self, deadline: int) -> None:
        self.deadline = deadline
        self.completed = False
        self._watch: tuple[Purgatory, tuple[Hashable, ...], Timer] | None = None

    @abstractmethod
    def try_complete(self) -> bool:
        """Call `force_complete` if the condition holds, and return what it returns; else False."""

    def on_complete(self) -> None:  # noqa: B027 (a default, not an omission)
        """What completion does, whatever brought it about. Nothing, unless overridden."""

    def on_expiration(self) -> None:  # noqa: B027 (likewise)
        """What follows after `on_complete` if the deadline brought it about. Nothing, unless overridden."""

    def force_complete(self) -> bool:
        """Complete the operation, whether its condition holds or not; True for the one call that does it."""
        if self.completed:
            return False
        self.completed = True
        if self._watch is not None:
            self._watch[0]._release(self)
        self.on_complete()
        return True

    def _expire(self) -> None:
        if self.force_complete():
            self.on_expiration()


class Purgatory:
    """Operations that wait, by key.

    Args:
        name: what waits in it, such as "heartbeat"; for metrics.
        wheel: the timers that hold the operations' deadlines.
    """

    def __init__(self, name: str, wheel: TimingWheel) -> None:
        self.name = name
        self._wheel = wheel
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._watched = 0
        self._delayed = 0

    @property
    def watched(self) -> int:
        """Number of entries under all keys; an operation counts once a key."""
        return self._watched

    @property
    def delayed(self) -> int:
        """Number of operations that wait."""
        return self._delayed

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Complete the operation if it can be, else have it wait under these keys, each named once; is it complete?"""
        if operation.try_complete() or operation.completed:
            return True
        keys = tuple(keys)
        all_watchers = self._watchers
        for key in keys:
            if (watchers := all_watchers.get(key)) is None:
                all_watchers[key] = {operation: None}
            else:
                watchers[operation] = None
        self._watched += len(keys)
        self._delayed += 1
        operation._watch = self, keys, self._wheel.add(operation.deadline, operation._expire)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Have the operations under a key look whether they are complete now; how many were."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        for operation in tuple(watchers):  # a copy, since completed ones leave
            # What completing one does may complete others: they were counted there.
            if not operation.completed and operation.try_complete():
                completed += 1
        return completed

    def cancel(self, key: Hashable) -> list[DelayedOperation]:
        """Take the operations under a key out, under their other keys too, without completing them."""
        operations = list(self._watchers.get(key, ()))
        for operation in operations:
            self._release(operation)
        return operations

    def _release(self, operation: DelayedOperation) -> None:
        """Forget an operation: its timer and all keys, so that nothing piles up."""
        assert operation._watch is not None
        _, keys, timer = operation._watch
        operation._watch = None
        timer.cancel()
        for key in keys:
            watchers = self._watchers[key]
            if len(watchers) > 1:
                del watchers[operation]
            else:
                del self._watchers[key]
        self._watched -= len(keys)
        self._delayed -= 1
