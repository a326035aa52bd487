"""What the journals of several instances say together: pauses of tasks, tasks and throughput over time."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kohort.spark.monitoring.events import STREAM, EpochDone, Restoring, TasksNow
from kohort.spark.monitoring.pauses import Pause, pauses_between

__all__ = ["Entry", "JournalAnalysis", "TaskCount", "Throughput", "read_journals"]

_SILENT_FOR: Final = 5.0  # seconds

_T = TypeVar("_T")


class Entry(NamedTuple):
    """A line of a journal: whose, when (seconds since 1970), which event, and its fields."""

    at: float
    instance: str
    event: str
    fields: dict[str, Any]


class TaskCount(NamedTuple):
    """How many tasks an instance has from a moment on; of `active`, `restoring` don't run yet."""

    at: float
    active: int
    standby: int
    warmup: int
    restoring: int


@dataclass(frozen=True)
class Throughput:
    """Records a second in steps of equal length.

    Attributes:
        start: of the first step, in seconds since 1970.
        step: seconds.
        rates: records a second in each step, by instance; all equally long.
    """

    start: float
    step: float
    rates: dict[str, list[float]]

    @property
    def total(self) -> list[float]:
        """Of all instances together."""
        return [sum(rates) for rates in zip(*self.rates.values(), strict=True)]


class JournalAnalysis:
    """The entries of several instances' journals, in order of time."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = sorted(entries, key=lambda entry: entry.at)

    @property
    def instances(self) -> list[str]:
        """The instances, in the order in which they began."""
        return list(dict.fromkeys(entry.instance for entry in self.entries))

    def epochs(self) -> Iterator[tuple[str, EpochDone]]:
        """All epochs with their instances, in the order of commits."""
        return self._all("epoch", EpochDone)

    def tasks(self) -> Iterator[tuple[str, TasksNow]]:
        """All changes of tasks with their instances."""
        return self._all("tasks", TasksNow)

    def restores(self) -> Iterator[tuple[str, Restoring]]:
        """All progress of restores with their instances."""
        return self._all("restoring", Restoring)

    # Pauses ----------------------------------------------------------------------------------------------------

    def pauses(self, *, since: float = 0.0, until: float = float("inf")) -> list[Pause]:
        """The times between successive epochs of each task, those that ended from `since` to `until`.

        Where a task had nothing to read that counts, too: pauses mean something while there is a backlog or a steady
        flow.
        """
        return [pause for pause in pauses_between(self.epochs()) if since <= pause.resumed <= until]

    def longest_pauses(self, *, since: float = 0.0, until: float = float("inf")) -> dict[str, Pause]:
        """The longest pause of each task; of tasks with two epochs at least."""
        longest: dict[str, Pause] = {}
        for pause in self.pauses(since=since, until=until):
            if pause.task not in longest or pause.seconds > longest[pause.task].seconds:
                longest[pause.task] = pause
        return dict(sorted(longest.items()))

    def pauses_at(self, at: float) -> dict[str, Pause]:
        """The pause that each task was in at a moment, or in the middle of an epoch: between the commits around it.

        The time from a kill at `at` until the task was seen to go on is `pause.resumed - at`.
        """
        return {pause.task: pause for pause in self.pauses() if pause.committed <= at < pause.resumed}

    def moved_tasks(self, *, since: float = 0.0, until: float = float("inf")) -> set[str]:
        """Tasks that went from one instance to another in that time."""
        return {pause.task for pause in self.pauses(since=since, until=until) if pause.moved}

    def promotions(self, *, since: float = 0.0, until: float = float("inf")) -> dict[str, float]:
        """Seconds from the moment when a task was given to an instance that had a copy until it ran there; by task.

        Those that ran in that time; of a task that was given away again before, nothing.
        """
        copies: dict[str, set[str]] = {}
        given: dict[tuple[str, str], float] = {}
        found: dict[str, float] = {}
        for entry in self.entries:
            instance = entry.instance
            if entry.event == "started":  # what it was given in the life before, it isn't any more
                copies.pop(instance, None)
                given = {each: at for each, at in given.items() if each[0] != instance}
            if entry.event != "tasks":
                continue
            now = _news(entry, TasksNow)
            for task in copies.get(instance, set()).intersection(now.active):
                given[instance, task] = now.at
            copies[instance] = {*now.standby, *now.warmup}
            for task in [task for owner, task in given if owner == instance and task not in now.restoring]:
                at = given.pop((instance, task))
                if task in now.active and since <= now.at <= until:
                    found[task] = now.at - at
        return dict(sorted(found.items()))

    # Over time -------------------------------------------------------------------------------------------------

    def tasks_over_time(self) -> dict[str, list[TaskCount]]:
        """How many tasks each instance had, from change to change.

        Where an instance ended, or was last heard of before others went on, it has none.
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

    def throughput(self, step: float = 1.0, parts: Collection[str] | None = None) -> Throughput:
        """Records read from streams over time, each epoch's spread evenly over the time that it took.

        Args:
            step: seconds.
            parts: only those of these subtopologies: what goes through a repartition topic is read twice.
        """
        epochs = [
            (instance, done.at - max(done.took_ms, 1.0) / 1000, done.at, done.records)
            for instance, done in self.epochs()
            if done.input == STREAM and (parts is None or done.part in parts)
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
                yield entry.instance, _news(entry, kind)


def _news(entry: Entry, kind: type[_T]) -> _T:
    return msgspec.convert({"at": entry.at, **entry.fields}, kind)


def read_journals(*paths: str | os.PathLike[str]) -> JournalAnalysis:
    """Read journals: files, or directories of which all files `*.jsonl` are read.

    A line that is torn, since its process died while it wrote it, or that is being written, is passed over.

    Raises:
        OSError: a file can't be read.
        ValueError: it has other lines that are no journal's.
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
                continue  # torn: nothing follows, or another life
            raise ValueError(f"{file}, line {number}: no line of a journal: {error}") from error
        if event == "started":
            instance = str(fields.get("instance", instance))
        yield Entry(at, instance, event, fields)
