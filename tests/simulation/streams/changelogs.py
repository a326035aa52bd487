"""State and its changelogs: how much of it there is, and how far a copy has got. All of it is linear in time."""

from __future__ import annotations

__all__ = ["Changelog", "Copy"]


class Changelog:
    """The changelog of a task, which grows while somebody runs the task.

    Args:
        size: records that it begins with.
        rate: records/s that a running task adds.
        restored_a_second: records/s that a copy takes in.

    Attributes:
        restored: records that copies, now closed, lacked when they were opened, and took in.
    """

    __slots__ = ("_runners", "_since", "_size", "rate", "restored", "restored_a_second")

    def __init__(self, size: int, rate: int, restored_a_second: int) -> None:
        self.rate = rate
        self.restored = 0
        self.restored_a_second = restored_a_second
        self._size = size
        self._since = 0
        self._runners = 0

    def end(self, now: int) -> int:
        """Its end offset."""
        return self._size + self.rate * (now - self._since) // 1_000 if self._runners else self._size

    def begin(self, now: int) -> None:
        """Somebody starts to run the task; there may be another who doesn't know yet that he shouldn't."""
        if not self._runners:
            self._since = now
        self._runners += 1

    def cease(self, now: int) -> None:
        """Somebody stops running it."""
        self._size = self.end(now)
        self._since = now
        self._runners -= 1


class Copy:
    """A process's copy of a task's state: on its disk, and open if one of its members holds the task.

    Attributes:
        holder: the member that has it open, which restores it as fast as it can and then keeps it at the end.
        closed: when it was last closed.
    """

    __slots__ = ("_lacked", "_offset", "_since", "changelog", "closed", "holder")

    def __init__(self, changelog: Changelog) -> None:
        self.changelog = changelog
        self.holder: object | None = None
        self.closed = 0
        self._offset = 0
        self._since = 0
        self._lacked = 0

    def offset(self, now: int) -> int:
        """How far it has got."""
        if self.holder is None:
            return self._offset
        restored = self._offset + self.changelog.restored_a_second * (now - self._since) // 1_000
        return min(restored, self.changelog.end(now))

    def lag(self, now: int) -> int:
        """Records that it lacks."""
        return self.changelog.end(now) - self.offset(now)

    def wait_ms(self, now: int) -> int:
        """How long it takes to catch up with a changelog that doesn't grow."""
        return -(-self.lag(now) * 1_000 // self.changelog.restored_a_second)

    def open(self, holder: object, now: int) -> None:
        """Begin to restore it."""
        self.holder = holder
        self._since = now
        self._lacked = self.changelog.end(now) - self._offset

    def restored(self, now: int) -> int:
        """Records that it lacked when it was opened, and has taken in since."""
        return min(self.offset(now) - self._offset, self._lacked)

    def close(self, now: int) -> None:
        """Leave it on the disk as it is."""
        self.changelog.restored += self.restored(now)
        self._offset = self.offset(now)
        self.holder = None
        self.closed = now
