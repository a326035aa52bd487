"""Reading and writing files, pipes and terminals in threads whose waiting can be interrupted."""

from __future__ import annotations

import asyncio
import os
import select
import stat
from collections.abc import Callable
from typing import Final, Self, TypeVar

T = TypeVar("T")

_ATOMIC: Final = select.PIPE_BUF
"""Bytes that a pipe takes at once, without waiting, when it says that it takes any."""


class Interrupted(Exception):  # noqa: N818 (nothing is wrong)
    """A waiting thread was stopped."""


class Interrupter:
    """Stops threads that wait in `read_some` or `write_all`, through a pipe that they poll, too.

    A context manager: when it is left, no thread may be waiting.
    """

    def __init__(self) -> None:
        self._stop_reader, self._stop_writer = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._stop_reader)
        os.close(self._stop_writer)

    def stop(self) -> None:
        """Ends all waiting, now and from now on."""
        os.write(self._stop_writer, b"!")

    async def run(self, work: Callable[[], T], grace: float = 0.0) -> T:
        """Runs `work` in a thread, which has ended when this returns: cancellation interrupts its waiting.

        Args:
            work: the function.
            grace: seconds that it may go on after a cancellation.
        """
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            if grace:
                await asyncio.wait([working], timeout=grace)
            self.stop()
            await asyncio.wait([working])
            working.exception()  # retrieved, so that asyncio doesn't log it
            raise

    def wait(self, fd: int, events: int) -> None:
        """Waits until a descriptor can be read or written (`select.POLLIN`, `POLLOUT`).

        Raises:
            Interrupted: `stop` was called.
        """
        waiting = select.poll()
        waiting.register(self._stop_reader, select.POLLIN)
        waiting.register(fd, events)
        if any(ready == self._stop_reader for ready, _ in waiting.poll()):
            raise Interrupted


def read_some(fd: int, size: int, interrupter: Interrupter) -> bytes:
    """Reads up to `size` bytes, and waits for the first of them only. Empty at the end.

    A pipe holds little at a time: bytes that follow without waiting are read as well.
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
    """Whether `fd` is a pipe whose reader has closed it."""
    looking = select.poll()
    looking.register(fd, 0)
    return any(events & select.POLLERR for _, events in looking.poll(0))


def write_all(fd: int, data: bytes | memoryview, interrupter: Interrupter) -> None:
    """Writes all of `data`, however long the reader takes.

    Raises:
        Interrupted: `stop` was called before all was written.
        OSError: it can't be written; BrokenPipeError if the reader has closed the pipe.
    """
    rest = memoryview(data)
    step = len(rest) if stat.S_ISREG(os.fstat(fd).st_mode) else _ATOMIC
    while rest:
        interrupter.wait(fd, select.POLLOUT)
        rest = rest[os.write(fd, rest[:step]) :]
