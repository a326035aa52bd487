"""Which brokers for tests run, in this process or as its children: pytest's plugin watches them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from weakref import WeakSet

__all__ = ["Watcher", "running", "started", "starting", "stopped", "unwatch", "watch"]

Watcher = Callable[[], None]

_RUNNING: Final[WeakSet[object]] = WeakSet()
"""Weakly: a `BrokerProcess` that nobody has any more ends."""

_WATCHERS: Final[list[Watcher]] = []


def watch(watcher: Watcher) -> None:
    """Has it called before a broker starts in this process."""
    _WATCHERS.append(watcher)


def unwatch(watcher: Watcher) -> None:
    """Has it called no more."""
    _WATCHERS.remove(watcher)


def starting() -> None:
    """Tells that a broker in this process is about to start."""
    for watcher in [*_WATCHERS]:
        watcher()


def started(broker: object) -> None:
    """Tells that a broker runs."""
    _RUNNING.add(broker)


def stopped(broker: object) -> None:
    """Tells that it doesn't, or is about to stop; nothing, if it didn't run."""
    _RUNNING.discard(broker)


def running() -> list[object]:
    """The brokers that run: each a `Broker`, or a `BrokerProcess`, which a `KohortContainer` is, too."""
    return list(_RUNNING)
