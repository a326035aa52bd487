"""The events of a running instance, and its listeners: the live line, metrics, the journal, tests."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.spark.epoch import Read

log = logging.getLogger(__name__)

STREAM: Final = "stream"
"""The `input` of an epoch that reads the subtopology's stream, not one of its tables."""


@dataclass(frozen=True)
class EpochDone:
    """An epoch that is committed: one Spark job over some offset ranges, and one transaction.

    Attributes:
        at: when it was committed, in seconds since 1970.
        subtopology: its id; "globals" for a load of a global table, which has no `tasks`.
        number: counts the subtopology's epochs in this process, from 1.
        input: "stream", or the name of the table that was read.
        records, bytes: what was read (bytes of keys and values).
        out_records: written to output, repartition, changelog and dead-letter topics; `repartitioned` to repartition
            topics: to tasks of other subtopologies that didn't merge them at once.
        dropped: records that were left out; `reasons` counts them by reason: {"unreadable": 1, "no key": 2}.
        late: records for windows that were closed already.
        lag: records that the subtopology's active tasks had left to read afterwards.
        tasks: those whose records were read, and those of other subtopologies that merged rows at once: "0_1".
        took_ms: the epoch from beginning to end; of that, `job_ms` in Spark, `commit_ms` in the transaction, and
            `store_ms` to write to stores what is committed. Of `job_ms`, `merge_ms` are after Spark, where results meet
            what stores have; of `commit_ms`, `send_ms` are before the commit itself.
        positions: the offsets that the tasks read next: {"flights-0": 5000}.
        again: whether these records are rows that the application has sent itself, to a repartition topic.
        reads: how the job's tasks read their splits. Journals are without it.
    """

    at: float
    subtopology: str
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
    repartitioned: int = 0
    merge_ms: float = 0.0
    send_ms: float = 0.0
    store_ms: float = 0.0
    again: bool = False
    reads: Sequence[Read] = ()


@dataclass(frozen=True)
class TasksNow:
    """The tasks that the instance has, after a change. Task ids as text: "0_1".

    Attributes:
        at: when, in seconds since 1970.
        active: those that run, and those that will once they are restored.
        standby: copies that are kept in case the owner dies.
        warmup: copies that are made to take the task over.
        restoring: the active ones that are still being restored.
        closing: those that were active, and are being closed.
        stopped: why subtopologies are stopped: {"1": "..."}.
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
    """How far a store of an active task is restored. The last one for a store has `done`.

    Attributes:
        at: in seconds since 1970.
        task: "0_1"; "global" for a global table.
        store: its name.
        position, end: offsets of the changelog: how far the store is, and how far it has to be before the task runs.
        remaining: records left at most: the offsets between, with those that were compacted away.
        done: whether it is restored.
    """

    at: float
    task: str
    store: str
    position: int
    end: int
    remaining: int
    done: bool


class Listener:
    """Gets the events of an instance, in its event loop: the methods must be quick, and never block or raise.

    Derive from it, and override the methods for the events of interest.
    """

    def starting(self, step: str) -> None:
        """Before the instance has begun, a step of its start is begun that may take a while: "starting Spark"."""

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed, or how far they are."""

    def restoring(self, progress: Restoring) -> None:
        """A store of an active task, or of a global table, is being restored."""

    def waiting(self, reason: str | None) -> None:
        """The instance waits, and why; None when it goes on. Called only when that changes."""

    def failed(self, text: str) -> None:
        """Something failed. It is tried again where that makes sense; otherwise the application stops."""

    def left(self, group_lag: int) -> None:
        """The instance has left its group, which has so many records left to read; not called if nobody could say."""


class Listeners(Listener):
    """Calls several listeners. One that fails is logged, and harms neither the others nor the application.

    `waiting` is passed on only when the reason changes.
    """

    def __init__(self, listeners: Sequence[Listener] = ()) -> None:
        self._listeners = tuple(listeners)
        self.reason: str | None = None

    def add(self, *listeners: Listener) -> None:
        """Call these, too, from now on."""
        self._listeners += listeners

    def starting(self, step: str) -> None:
        self._call("starting", step)

    def epoch(self, done: EpochDone) -> None:
        self._call("epoch", done)

    def tasks(self, now: TasksNow) -> None:
        self._call("tasks", now)

    def restoring(self, progress: Restoring) -> None:
        self._call("restoring", progress)

    def waiting(self, reason: str | None) -> None:
        if reason != self.reason:
            self.reason = reason
            self._call("waiting", reason)

    def failed(self, text: str) -> None:
        self._call("failed", text)

    def left(self, group_lag: int) -> None:
        self._call("left", group_lag)

    def _call(self, method: str, event: object) -> None:
        for listener in self._listeners:
            try:
                getattr(listener, method)(event)
            except Exception:
                log.exception("listener %r failed on %s", listener, method)
