"""How much work a piece of code is, the same on a machine that is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Work:
    """What a piece of code has done."""

    def __init__(self) -> None:
        #: Calls of functions, of Python's own, too, by this thread.
        self.calls = 0


@contextmanager
def counted() -> Iterator[Work]:
    """Count the calls that this thread makes inside. A limit on seconds fails when others use the processor."""
    work = Work()

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            work.calls += 1

    sys.setprofile(count)
    try:
        yield work
    finally:
        sys.setprofile(None)
