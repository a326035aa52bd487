"""A purgatory holds operations that can't be answered yet: a join waits for the other members, a fetch for data.

An operation is watched under keys. When something changes that it may wait for, `check_and_complete` is called with the
key, and the operation checks its condition; else its deadline completes it. It is completed exactly once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Hashable, Iterable, Sequence
from typing import Final

from kohort.coordinator.timing_wheel import Timer, TimingWheel

__all__ = ["DelayedOperation", "Purgatory"]

MANY_KEYS: Final = 500
"""Keys that are watched or released in a slice."""


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
        """Calls `force_complete` if the condition holds, and returns its result; else False."""

    def check(self, key: Hashable) -> bool:
        """As `try_complete`, where something has changed under this key alone."""
        del key
        return self.try_complete()

    def on_complete(self) -> None:
        """Called on completion, by the condition or the deadline. Does nothing, unless overridden."""

    def on_expiration(self) -> None:
        """Called after `on_complete` if the deadline completed it. Does nothing, unless overridden."""

    def force_complete(self) -> bool:
        """Completes the operation, whether its condition holds or not; True for the first call only."""
        if self.completed:
            return False
        self.completed = True
        if self._purgatory is not None:
            self._purgatory._release(self)
        self.on_complete()
        return True

    def run(self) -> None:
        """Completes the operation at its deadline."""
        if self.force_complete():
            self.on_expiration()


class Purgatory:
    """Operations that wait, by key.

    Args:
        name: for metrics, such as "heartbeat".
        wheel: the timers that hold the operations' deadlines.

    Attributes:
        watched: number of entries under all keys; an operation counts once a key.
    """

    def __init__(self, name: str, wheel: TimingWheel) -> None:
        self.name = name
        self._wheel = wheel
        # Most keys have one operation, which is the value itself; several are in a dict, as an ordered set.
        self._watchers: dict[Hashable, DelayedOperation | dict[DelayedOperation, None]] = {}
        self._many: dict[DelayedOperation, list[Hashable]] = {}  # keys of those that are watched in slices
        self.watched = 0
        self.delayed = 0

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Completes the operation if its condition holds, else watches it under these keys, each given once.

        Returns:
            whether it is complete.
        """
        if operation.try_complete() or operation.completed:
            return True
        for key in keys:
            self._watch(operation, key)
        self._hold(operation, keys)
        return False

    def watch_in_slices(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> Generator[None, None, None]:
        """Watches an operation under very many keys, each given once; it may be completed meanwhile.

        It isn't checked: what has changed under a key before it was watched is for the caller to see. Once it is
        completed, `release_in_slices` is to be called.
        """
        watched = self._many[operation] = []
        self._hold(operation, ())
        for key in keys:
            self._watch(operation, key)
            watched.append(key)
            if len(watched) % MANY_KEYS == 0:
                yield
                if operation.completed:
                    return

    def release_in_slices(self, operation: DelayedOperation) -> Generator[None, None, None]:
        """Removes a completed operation from the keys that `watch_in_slices` put it under."""
        watched = self._many.pop(operation, [])
        while watched:
            self._forget(operation, watched[-MANY_KEYS:])
            del watched[-MANY_KEYS:]
            yield

    def _watch(self, operation: DelayedOperation, key: Hashable) -> None:
        all_watchers = self._watchers
        watchers = all_watchers.get(key)
        if watchers is None:
            all_watchers[key] = operation
        elif type(watchers) is dict:
            watchers[operation] = None
        else:
            all_watchers[key] = {watchers: None, operation: None}  # type: ignore[dict-item]
        self.watched += 1

    def _hold(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> None:
        operation._purgatory = self
        operation._keys = keys
        self.delayed += 1
        self._wheel.schedule(operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Checks the operations under a key, and returns how many were completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        if not isinstance(watchers, dict):
            return 1 if not watchers.completed and watchers.check(key) else 0
        completed = 0
        for operation in tuple(watchers):  # a copy, since completed ones are removed
            # Completing one may complete others: they were counted there.
            if not operation.completed and operation.check(key):
                completed += 1
        return completed

    def cancel(self, key: Hashable) -> list[DelayedOperation]:
        """Removes the operations under a key, under their other keys too, without completing them."""
        watchers = self._watchers.get(key, {})
        operations = list(watchers) if isinstance(watchers, dict) else [watchers]
        for operation in operations:
            self._release(operation)
            self._forget(operation, self._many.pop(operation, ()))
        return operations

    def _release(self, operation: DelayedOperation) -> None:
        """Removes an operation: its timer and all its keys, but for very many, which are removed in slices."""
        operation.cancel()
        self._forget(operation, operation._keys)
        if len(self._many.get(operation, ())) <= MANY_KEYS:
            self._forget(operation, self._many.pop(operation, ()))
        self.delayed -= 1
        operation._keys = ()
        operation._purgatory = None

    def _forget(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> None:
        for key in keys:
            watchers = self._watchers[key]
            if isinstance(watchers, dict) and len(watchers) > 1:
                del watchers[operation]
            else:
                del self._watchers[key]
        self.watched -= len(keys)
