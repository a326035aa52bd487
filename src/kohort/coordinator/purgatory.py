"""Where operations wait that can't be answered yet: a join for the other members, a fetch for data.

An operation is watched under keys. Whoever changes something that it may wait for says so by key, and the operation
looks whether it is complete now; else its deadline completes it. Either way it is completed exactly once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence

from kohort.coordinator.timing_wheel import Timer, TimingWheel

__all__ = ["DelayedOperation", "Purgatory"]


class DelayedOperation(Timer):
    """Something to be completed once: when its condition holds, or at its deadline, in ms since 1970."""

    __slots__ = ("_keys", "_purgatory", "completed")

    def __init__(self, deadline: int) -> None:
        super().__init__(deadline)
        self.completed = False
        self._purgatory: Purgatory | None = None
        self._keys: Sequence[Hashable] = ()

    @abstractmethod
    def try_complete(self) -> bool:
        """Call `force_complete` if the condition holds, and return what it returns; else False."""

    def on_complete(self) -> None:
        """What completion does, whatever brought it about. Nothing, unless overridden."""

    def on_expiration(self) -> None:
        """What follows after `on_complete` if the deadline brought it about. Nothing, unless overridden."""

    def force_complete(self) -> bool:
        """Complete the operation, whether its condition holds or not; True for the one call that does it."""
        if self.completed:
            return False
        self.completed = True
        if self._purgatory is not None:
            self._purgatory._release(self)
        self.on_complete()
        return True

    def run(self) -> None:
        """Complete it: its time is up."""
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
        # Most keys have one operation, which stands for itself; several are in a dict, as an ordered set.
        self._watchers: dict[Hashable, DelayedOperation | dict[DelayedOperation, None]] = {}
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

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Complete the operation if it can be, else have it wait under these keys, each named once; is it complete?"""
        if operation.try_complete() or operation.completed:
            return True
        all_watchers = self._watchers
        for key in keys:
            watchers = all_watchers.get(key)
            if watchers is None:
                all_watchers[key] = operation
            elif type(watchers) is dict:
                watchers[operation] = None
            else:
                all_watchers[key] = {watchers: None, operation: None}  # type: ignore[dict-item]
        operation._purgatory = self
        operation._keys = keys
        self._watched += len(keys)
        self._delayed += 1
        self._wheel.schedule(operation)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Have the operations under a key look whether they are complete now; how many were."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        if not isinstance(watchers, dict):
            return 1 if watchers.try_complete() else 0
        completed = 0
        for operation in tuple(watchers):  # a copy, since completed ones leave
            # What completing one does may complete others: they were counted there.
            if not operation.completed and operation.try_complete():
                completed += 1
        return completed

    def cancel(self, key: Hashable) -> list[DelayedOperation]:
        """Take the operations under a key out, under their other keys too, without completing them."""
        watchers = self._watchers.get(key, {})
        operations = list(watchers) if isinstance(watchers, dict) else [watchers]
        for operation in operations:
            self._release(operation)
        return operations

    def _release(self, operation: DelayedOperation) -> None:
        """Forget an operation: its timer and all keys, so that nothing piles up."""
        operation.cancel()
        keys = operation._keys
        for key in keys:
            watchers = self._watchers[key]
            if isinstance(watchers, dict) and len(watchers) > 1:
                del watchers[operation]
            else:
                del self._watchers[key]
        self._watched -= len(keys)
        self._delayed -= 1
        operation._keys = ()
        operation._purgatory = None
