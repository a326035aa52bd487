"""What a running instance tells whoever wants to know: the live line, metrics, journals, tests."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

log = logging.getLogger(__name__)

STREAM: Final = "stream"  # the `input` of an epoch that reads what the part reads, not one of its tables


@dataclass(frozen=True)
class EpochDone:
    """An epoch that is committed: one Spark job over some offset ranges, and one transaction.

    Attributes:
        at: when the commit was done, in seconds since 1970.
        part: the id of the subtopology; "globals" for a load of a global table, which has no `tasks`.
        number: counts the part's epochs in this process, from 1.
        input: "stream", or the name of the table that was read.
        records, bytes: what was read (bytes of keys and values).
        out_records: written to output, repartition, changelog and dead-letter topics.
        dropped: records that were left out; `reasons` has how many of them why: {"unreadable": 1, "no key": 2}.
        late: records for windows that were closed already.
        lag: records that the part's active tasks had left to read afterwards.
        tasks: whose records were read: "0_1".
        took_ms: the epoch from beginning to end; of that `job_ms` in Spark and `commit_ms` in the transaction.
        positions: where the tasks read on: {"flights-0": 5000}.
    """

    at: float
    part: str
    number: int
    input: str
    records: int
    bytes: int
    out_records: int
    dropped: int
    late: int
    lag: int
    tasks: Sequence[str]
    took_ms: float
    job_ms: float
    commit_ms: float
    positions: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TasksNow:
    """The tasks that the instance has, after a change. Task ids as text: "0_1".

    Attributes:
        at: when, in seconds since 1970.
        active: those that run, and those that will when they are restored.
        standby: copies kept, should the one who runs the task die.
        warmup: copies made to take the task over.
        restoring: which of the active ones are still being restored.
        closing: which were active, and are being closed.
        stopped: where a part stands still, why: {"1": "..."}.
    """

    at: float
    active: Sequence[str]
    standby: Sequence[str]
    warmup: Sequence[str]
    restoring: Sequence[str] = ()
    closing: Sequence[str] = ()
    stopped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Restoring:
    """How far one store of an active task is restored. The last one of a store has `done`.

    Attributes:
        at: in seconds since 1970.
        task: "0_1"; "global" for a global table.
        store: its name.
        position, end: offsets of the changelog: what the store has, and what it needs before the task runs.
        remaining: records left at most (offsets; compacted ones count).
        done: it has all.
    """

    at: float
    task: str
    store: str
    position: int
    end: int
    remaining: int
    done: bool


class Listener(Protocol):
    """Hears what happens. Called in the instance's event loop: be quick, never block, raise nothing.

    A class need not have all of the methods: derive from `BaseListener`.
    """

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed, or how far they are."""

    def restoring(self, progress: Restoring) -> None:
        """A store of a task that shall run is being restored."""

    def waiting(self, reason: str | None) -> None:
        """Nothing goes on, and why; None when it goes on. Told only when that changes."""

    def failed(self, text: str) -> None:
        """Something went wrong. It is tried again where that makes sense; else the application stops."""


class BaseListener:
    """A listener that hears nothing: derive from it and write what is of interest."""

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""

    def failed(self, text: str) -> None:
        """Something went wrong."""


class Listeners:
    """Tells several listeners. One that fails is logged and doesn't harm the others, nor the application.

    `waiting` is told on only when the reason changes.
    """

    def __init__(self, listeners: Sequence[Listener] = ()) -> None:
        self._listeners = tuple(listeners)
        self.reason: str | None = None

    def add(self, *listeners: Listener) -> None:
        """Tell these, too, from now on."""
        self._listeners += listeners

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        self._tell("epoch", done)

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""
        self._tell("tasks", now)

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""
        self._tell("restoring", progress)

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""
        if reason != self.reason:
            self.reason = reason
            self._tell("waiting", reason)

    def failed(self, text: str) -> None:
        """Something went wrong."""
        self._tell("failed", text)

    def _tell(self, what: str, news: object) -> None:
        for listener in self._listeners:
            try:
                getattr(listener, what)(news)
            except Exception:
                log.exception("%r could not be told of %s", listener, what)
