"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], *, within: float = 20.0, what: str = "") -> T:
    """The first true value of `condition`; an AssertionError with the last value after `within` seconds."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within} s: {what or condition}, last {value!r}"
        time.sleep(0.01)
    return value
