"""The file descriptors of logs: a segment that isn't used gives its own up where they are short.

All logs of a process share its limit on open files. Segments keep their files open, up to a share of the limit; above
it, and wherever a file can't be opened for want of descriptors, those opened longest ago are closed. They are opened
again on use. A few descriptors are kept in reserve, for threads that can't close others' files.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from pathlib import Path
from typing import Final, Protocol

STARVED: Final = (errno.EMFILE, errno.ENFILE)
"""Errors for want of descriptors: of the process, or of the machine."""

_SHARE: Final = 6
"""A segment has 3 files; logs may have half of the descriptors."""

_LEAST: Final = 16
_SPARES: Final = 8
_AT_ONCE: Final = 8


class Holder(Protocol):
    """Something with open files, such as a segment."""

    def release(self) -> None:
        """Closes them; they are opened again on use."""
        ...


class Descriptors:
    """Who has files open. Files of a holder are closed in the thread that opened them alone.

    Attributes:
        lock: held while a holder's files are closed, so that no other thread uses a number that is given anew.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._holders: dict[Holder, int] = {}
        self._spares: list[int] = []

    def opened(self, holder: Holder) -> None:
        """Notes that a holder has opened files; closes others' if there are too many."""
        with self.lock:
            self._holders[holder] = threading.get_ident()
            if len(self._holders) > bound():
                self._release(1, holder)

    def closed(self, holder: Holder) -> None:
        self._holders.pop(holder, None)

    def make_room(self, keep: Holder | None = None) -> bool:
        """Closes files of the holders that opened theirs longest ago, but for `keep`; gives up a spare if none has any.

        Returns:
            Whether there may be a descriptor now.
        """
        with self.lock:
            if self._release(_AT_ONCE, keep):
                return True
            if self._spares:
                os.close(self._spares.pop())
                return True
        return False

    def fill(self) -> bool:
        """Fills the reserve; returns whether there were enough descriptors for that."""
        with self.lock:
            try:
                while len(self._spares) < _SPARES:
                    self._spares.append(os.open(os.devnull, os.O_RDONLY))
            except OSError as error:
                if error.errno not in STARVED:
                    raise
        return len(self._spares) == _SPARES

    def _release(self, count: int, keep: Holder | None) -> int:
        thread = threading.get_ident()
        mine = [holder for holder, owner in self._holders.items() if owner == thread and holder is not keep]
        for holder in mine[:count]:
            holder.release()
        return min(count, len(mine))


descriptors: Final = Descriptors()
"""Those of this process."""


def bound() -> int:
    """How many segments may have files open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_LEAST, soft // _SHARE)


def open_file(path: Path, flags: int, *, keep: Holder | None = None) -> int:
    """Opens a file; where descriptors are short, others' files are closed first, but for those of `keep`.

    Raises:
        OSError: it can't be opened.
    """
    while True:
        try:
            return os.open(path, flags, 0o644)
        except OSError as error:
            if error.errno not in STARVED or not descriptors.make_room(keep):
                raise
