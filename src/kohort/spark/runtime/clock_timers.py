"""Which tasks are to be called since the clock has reached a timer of theirs, though there is nothing to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from kohort.spark.runtime.subtopology_plan import SubtopologyPlan
from kohort.spark.runtime.window_closing import key_bound
from kohort.streams.tasks import TaskId


class TimerStore(Protocol):
    """A store as `kohort.spark.state.Store` has it, of which the first keys are read."""

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> Any:
        """The rows from `start` (included) to `end` (not included), in key order: at most `limit`."""


class DueTimers(NamedTuple):
    """What a look at the timers found.

    Attributes:
        now: the clock then, in ms since 1970.
        tasks: those with a timer that is due.
    """

    now: int
    tasks: Collection[TaskId] = ()


NO_TIMERS: Final = DueTimers(0)
_FIRST_MS: Final = -(2**62)


def due_timers(
    subtopologies: Mapping[str, SubtopologyPlan],
    tasks: Iterable[TaskId],
    stores: Callable[[TaskId], Mapping[str, TimerStore]],
    now: int,
) -> DueTimers:
    """The tasks with timers whose time is not after `now`: a look at the first timer of each. Raises StateError."""
    bounds = key_bound(_FIRST_MS), key_bound(now + 1)
    due = []
    for task in tasks:
        opened = stores(task)
        for name in subtopologies[task.subtopology].clocks:
            store = opened.get(name)
            if store is not None and store.scan(*bounds, 1).num_rows:
                due.append(task)
                break
    return DueTimers(now, due)
