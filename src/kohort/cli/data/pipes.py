"""Files, pipes and terminals that a thread waits for, and that can be told to stop waiting."""

from __future__ import annotations

import asyncio
import os
import select
import stat
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar

__all__ = ["Interrupted", "Interrupter", "abandoned", "read_some", "write_all"]

T = TypeVar("T")

_ATOMIC: Final = select.PIPE_BUF
"""Bytes that a pipe takes at once, without waiting, when it says that it takes any."""


class Interrupted(Exception):  # noqa: N818 (nothing is wrong)
    """Whoever waited was told to stop."""


class Interrupter:
    """Stops threads that wait in `read_some` or `write_all`: a system call that waits hears of nothing else.

    A context manager: when it is left, nobody may be waiting any more.
    """

    def __init__(self) -> None:
        self._ear, self._mouth = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._ear)
        os.close(self._mouth)

    def stop(self) -> None:
        """End all waiting, now and from now on."""
        os.write(self._mouth, b"!")

    async def run(self, work: Callable[[], T], patience: float = 0.0) -> T:
        """Do `work` in a thread, which has ended when this returns: being cancelled stops what it waits for.

        Args:
            patience: seconds that it may go on after being cancelled.
        """
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            if patience:
                await asyncio.wait([working], timeout=patience)
            self.stop()
            await asyncio.wait([working])
            working.exception()  # nobody else will ask
            raise

    def wait(self, fd: int, events: int) -> None:
        """Wait until something can be read or written (`select.POLLIN`, `POLLOUT`).

        Raises:
            Interrupted: `stop` was called.
        """
        waiting = select.poll()
        waiting.register(self._ear, select.POLLIN)
        waiting.register(fd, events)
        if any(ready == self._ear for ready, _ in waiting.poll()):
            raise Interrupted


def read_some(fd: int, size: int, interrupter: Interrupter) -> bytes:
    """What there is to read, up to `size` bytes; waits for the first of them. Empty at the end.

    A pipe holds little at a time: what follows without waiting is read as well.
    """
    interrupter.wait(fd, select.POLLIN)
    found = os.read(fd, size)
    if not found or len(found) == size or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return found
    pieces, total = [found], len(found)
    while total < size and select.select([fd], [], [], 0)[0] and (found := os.read(fd, size - total)):
        pieces.append(found)
        total += len(found)
    return b"".join(pieces)


def abandoned(fd: int) -> bool:
    """Whether `fd` is a pipe that nobody will read from any more."""
    looking = select.poll()
    looking.register(fd, 0)
    return any(events & select.POLLERR for _, events in looking.poll(0))


def write_all(fd: int, data: bytes | memoryview, interrupter: Interrupter) -> None:
    """Write all of `data`, however long the reader takes.

    Raises:
        Interrupted: `stop` was called before all was written.
        OSError: it can't be written; BrokenPipeError if nobody will read it.
    """
    rest = memoryview(data)
    step = len(rest) if stat.S_ISREG(os.fstat(fd).st_mode) else _ATOMIC
    while rest:
        interrupter.wait(fd, select.POLLOUT)
        rest = rest[os.write(fd, rest[:step]) :]
