"""Reads the journals of several instances together: pauses of tasks, promotions, tasks and throughput over time."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kohort.spark.monitoring.events import STREAM, EpochDone, Restoring, TasksNow
from kohort.spark.monitoring.pauses import Pause, pauses_between

_SILENT_FOR: Final = 5.0  # seconds

_T = TypeVar("_T")


class Entry(NamedTuple):
    """A line of a journal; `at` in seconds since 1970."""

    at: float
    instance: str
    event: str
    fields: dict[str, Any]


class TaskCount(NamedTuple):
    """How many tasks an instance has from a moment on; `restoring` of the `active` ones don't run yet."""

    at: float
    active: int
    standby: int
    warmup: int
    restoring: int


@dataclass(frozen=True)
class Throughput:
    """Records a second in steps of equal length.

    Attributes:
        start: when the first step begins, in seconds since 1970.
        step: how long a step is, in seconds.
        rates: records a second in each step, by instance; all lists are equally long.
    """

    start: float
    step: float
    rates: dict[str, list[float]]

    @property
    def total(self) -> list[float]:
        """The sum over all instances."""
        return [sum(rates) for rates in zip(*self.rates.values(), strict=True)]


class JournalAnalysis:
    """The entries of several instances' journals, in order of time."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = sorted(entries, key=lambda entry: entry.at)

    @property
    def instances(self) -> list[str]:
        """The instances, in the order of their first entries."""
        return list(dict.fromkeys(entry.instance for entry in self.entries))

    def epochs(self) -> Iterator[tuple[str, EpochDone]]:
        """Every epoch with its instance, in the order of commits."""
        return self._all("epoch", EpochDone)

    def tasks(self) -> Iterator[tuple[str, TasksNow]]:
        """Every change of tasks with its instance."""
        return self._all("tasks", TasksNow)

    def restores(self) -> Iterator[tuple[str, Restoring]]:
        """Every progress of a restore with its instance."""
        return self._all("restoring", Restoring)

    # Pauses ----------------------------------------------------------------------------------------------------

    def pauses(self, *, since: float = 0.0, until: float = float("inf")) -> list[Pause]:
        """The pauses between successive epochs of each task that ended from `since` to `until`.

        Time in which a task had nothing to read counts: pauses mean something only under a backlog or a steady flow.
        """
        return [pause for pause in pauses_between(self.epochs()) if since <= pause.resumed <= until]

    def longest_pauses(self, *, since: float = 0.0, until: float = float("inf")) -> dict[str, Pause]:
        """The longest pause of each task that has at least two epochs."""
        longest: dict[str, Pause] = {}
        for pause in self.pauses(since=since, until=until):
            if pause.task not in longest or pause.seconds > longest[pause.task].seconds:
                longest[pause.task] = pause
        return dict(sorted(longest.items()))

    def pauses_at(self, at: float) -> dict[str, Pause]:
        """The pause of each task around a moment: between the commits before and after it.

        After a kill at `at`, the task resumed within `pause.resumed - at`.
        """
        return {pause.task: pause for pause in self.pauses() if pause.committed <= at < pause.resumed}

    def moved_tasks(self, *, since: float = 0.0, until: float = float("inf")) -> set[str]:
        """The tasks that moved from one instance to another in that time."""
        return {pause.task for pause in self.pauses(since=since, until=until) if pause.moved}

    def promotions(self, *, since: float = 0.0, until: float = float("inf")) -> dict[str, float]:
        """How long promotions took: seconds from when an instance with a copy got the task until it ran there, by task.

        Includes tasks that began to run from `since` to `until`, not those that were revoked before they ran.
        """
        copies: dict[str, set[str]] = {}
        assigned: dict[tuple[str, str], float] = {}
        took: dict[str, float] = {}
        for entry in self.entries:
            instance = entry.instance
            if entry.event == "started":  # it lost what it had before the restart
                copies.pop(instance, None)
                assigned = {key: at for key, at in assigned.items() if key[0] != instance}
            if entry.event != "tasks":
                continue
            now = _event(entry, TasksNow)
            for task in copies.get(instance, set()).intersection(now.active):
                assigned[instance, task] = now.at
            copies[instance] = {*now.standby, *now.warmup}
            for task in [task for owner, task in assigned if owner == instance and task not in now.restoring]:
                at = assigned.pop((instance, task))
                if task in now.active and since <= now.at <= until:
                    took[task] = now.at - at
        return dict(sorted(took.items()))

    # Over time -------------------------------------------------------------------------------------------------

    def tasks_over_time(self) -> dict[str, list[TaskCount]]:
        """How many tasks each instance had, change by change.

        An instance has none after it stopped, or after its last entry if others have entries more than 5 s later.
        """
        counts: dict[str, list[TaskCount]] = {instance: [] for instance in self.instances}
        for instance, now in self.tasks():
            counts[instance].append(
                TaskCount(now.at, len(now.active), len(now.standby), len(now.warmup), len(now.restoring))
            )
        last = {entry.instance: entry for entry in self.entries}
        end = self.entries[-1].at if self.entries else 0.0
        for instance, entry in last.items():
            if counts[instance] and (entry.event == "stopped" or entry.at < end - _SILENT_FOR):
                counts[instance].append(TaskCount(entry.at, 0, 0, 0, 0))
        return counts

    def throughput(self, step: float = 1.0, subtopologies: Collection[str] | None = None) -> Throughput:
        """Records read from streams over time; those of an epoch are spread evenly over the time it took.

        Args:
            step: seconds.
            subtopologies: counts only these; what goes through a repartition topic is read twice.
        """
        epochs = [
            (instance, done.at - max(done.took_ms, 1.0) / 1000, done.at, done.records)
            for instance, done in self.epochs()
            if done.input == STREAM and (subtopologies is None or done.subtopology in subtopologies)
        ]
        if not epochs:
            return Throughput(0.0, step, {})
        start = min(began for _, began, _, _ in epochs)
        length = int((max(ended for _, _, ended, _ in epochs) - start) / step) + 1
        rates = {instance: [0.0] * length for instance in self.instances}
        for instance, began, ended, records in epochs:
            density = records / (ended - began) / step
            first, last = int((began - start) / step), int((ended - start) / step)
            for slot in range(first, last + 1):
                slot_began = start + slot * step
                overlap = min(ended, slot_began + step) - max(began, slot_began)
                rates[instance][slot] += max(overlap, 0.0) * density
        return Throughput(start, step, rates)

    def _all(self, event: str, kind: type[_T]) -> Iterator[tuple[str, _T]]:
        for entry in self.entries:
            if entry.event == event:
                yield entry.instance, _event(entry, kind)


def _event(entry: Entry, kind: type[_T]) -> _T:
    return msgspec.convert({"at": entry.at, **entry.fields}, kind)


def read_journals(*paths: str | os.PathLike[str]) -> JournalAnalysis:
    """Reads journals: files, or all files `*.jsonl` of directories.

    Skips a torn line: one that is being written, or whose process died while it wrote it.

    Raises:
        OSError: a file can't be read.
        ValueError: a line isn't one of a journal.
    """
    files = [file for path in map(Path, paths) for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    return JournalAnalysis(entry for file in files for entry in _entries(file))


def _entries(file: Path) -> Iterator[Entry]:
    instance = file.stem
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = msgspec.json.decode(line, type=dict[str, Any])
            at, event = float(fields.pop("at")), str(fields.pop("event"))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            if number == len(lines) or lines[number].startswith(b'{"event":"started"'):
                continue  # torn: the last line, or the last before a restart
            raise ValueError(f"{file}, line {number}: not a line of a journal: {error}") from error
        if event == "started":
            instance = str(fields.get("instance", instance))
        yield Entry(at, instance, event, fields)
