"""Standard input as a sign of life: it ends with the process that keeps its other end open, even if that is killed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

__all__ = ["when_stdin_ends"]


def when_stdin_ends(then: Callable[[], object]) -> None:
    """Calls a function once standard input, a pipe or a socket, has ended, within the running event loop.

    What comes through it doesn't count.
    """
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            if os.read(0, 4096):
                return
        except BlockingIOError:  # another process has read it
            return
        except OSError:  # a socket's other end is gone
            pass
        loop.remove_reader(0)
        then()

    loop.add_reader(0, read)
