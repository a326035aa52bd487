"""Work in slices, done in one go where nobody else is to be let in."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def in_one_go(slices: Generator[Any, None, T]) -> T:
    """Does all slices of a work now, and returns its result.

    Raises:
        RuntimeError: it yields something to wait for.
    """
    while True:
        try:
            awaited = next(slices)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if awaited is not None:
            raise RuntimeError("it must not wait")
