"""The timeline in the instances' journals: which instance had which task when, throughput, and pauses of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kohort.spark.monitoring.events import TasksNow
from kohort.spark.monitoring.journal_analysis import JournalAnalysis, Throughput
from kohort.streams.tasks import TaskId

ACTIVE: Final = "active"
RESTORING: Final = "restoring"
STANDBY: Final = "standby"
WARMUP: Final = "warm-up"

_FLIGHTS: Final = "0"
"""The subtopology that reads the flights; the others read its output."""
_STEP: Final = 1.0
"""Seconds over which rates are averaged."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time in which an instance had a task in a role (seconds since 1970)."""

    instance: str
    task: str
    role: str
    begin: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """The timeline of all instances, from the first flight to the last epoch.

    Attributes:
        journals: of all instances.
        kills: when instances were killed, in seconds since 1970.
    """

    journals: JournalAnalysis
    kills: Mapping[str, float]

    @property
    def instances(self) -> Sequence[str]:
        return sorted(self.journals.instances)

    @cached_property
    def throughput(self) -> Throughput:
        """Flights a second by instance."""
        return self.journals.throughput(_STEP, subtopologies=[_FLIGHTS])

    @cached_property
    def flights(self) -> int:
        """Number of records of flights that were read in committed epochs."""
        return sum(
            done.records
            for _, done in self.journals.epochs()
            if done.subtopology == _FLIGHTS and done.input == "stream"
        )

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """Number of records that the branches of the program left out, by reason, such as "late"."""
        counts: Counter[str] = Counter()
        for _, done in self.journals.epochs():
            counts.update(done.reasons)
            counts["late"] += done.late
        return +counts

    @property
    def began(self) -> float:
        """When the first flight was read, in seconds since 1970."""
        return self.throughput.start

    @cached_property
    def ended(self) -> float:
        """When the last epoch that read something was committed."""
        return max((done.at for _, done in self.journals.epochs() if done.records), default=self.began)

    @cached_property
    def spans(self) -> Sequence[Span]:
        """Which instance had which task when."""
        found: list[Span] = []
        for instance in self.instances:
            changes = [now for name, now in self.journals.tasks() if name == instance]
            found += _spans(instance, changes, self.kills.get(instance, max(self.ended, self._last)))
        return found

    @property
    def tasks(self) -> list[str]:
        return sorted({span.task for span in self.spans}, key=lambda task: [*map(int, task.split("_"))])

    def takeovers(self) -> dict[str, float]:
        """For each task of a killed instance, the seconds until its first epoch elsewhere was committed.

        Tasks without input after the kill are left out.
        """
        found: dict[str, float] = {}
        for dead, killed in self.kills.items():
            for instance, done in self.journals.epochs():
                if instance != dead and done.at > killed:
                    for task in self._held(dead, killed).intersection(done.tasks):
                        found.setdefault(task, done.at - killed)
        return found

    def longest_wait(self) -> float | None:
        """The longest time in seconds between two epochs of a task that stayed while others moved.

        Only of tasks that read flights, which come all the time. None if there are none.
        """
        moved = self.takeovers()
        if not moved:
            return None
        ((dead, killed),) = self.kills.items()
        stayed = {task for each in self.instances if each != dead for task in self._held(each, killed)}
        pauses = self.journals.pauses(since=killed, until=killed + max(moved.values()))
        return max(
            (
                each.seconds
                for each in pauses
                if each.task in stayed and TaskId.parse(each.task).subtopology == _FLIGHTS
            ),
            default=None,
        )

    def _held(self, instance: str, moment: float) -> set[str]:
        """The active tasks of an instance at a time."""
        return {
            span.task
            for span in self.spans
            if span.instance == instance and span.role in (ACTIVE, RESTORING) and span.begin <= moment <= span.end
        }

    @property
    def _last(self) -> float:
        return self.journals.entries[-1].at if self.journals.entries else 0.0


def _roles(now: TasksNow) -> dict[str, str]:
    roles = {**dict.fromkeys(now.standby, STANDBY), **dict.fromkeys(now.warmup, WARMUP)}
    return roles | dict.fromkeys(now.active, ACTIVE) | dict.fromkeys(now.restoring, RESTORING)


def _spans(instance: str, changes: Sequence[TasksNow], end: float) -> list[Span]:
    found = []
    running: dict[str, tuple[str, float]] = {}
    for now in changes:
        roles = _roles(now)
        for task in [task for task, (role, _) in running.items() if roles.get(task) != role]:
            role, begin = running.pop(task)
            found.append(Span(instance, task, role, begin, now.at))
        for task, role in roles.items():
            running.setdefault(task, (role, now.at))
    return found + [Span(instance, task, role, begin, max(begin, end)) for task, (role, begin) in running.items()]
