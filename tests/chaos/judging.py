"""What journals say of tasks while instances come and go: which moved, warmed up or not, how long they paused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from kohort.spark.monitoring.journal_analysis import JournalAnalysis

from .field import SESSION_MS

__all__ = ["Gap", "Step", "all_work", "left_out", "longest_gaps", "moved_tasks", "warm_ups"]

IDLE_LIMIT = SESSION_MS / 2_000
"""Seconds that nobody may work on a task that stays: half of what it takes until an instance is taken for dead."""

GAP_LIMIT = SESSION_MS / 500
"""Seconds from commit to commit of a task that stays. Epochs take long while JVMs start on the same cores, so these are
more than a dead instance would cost; but an epoch that is held up for as long as that is a pause, too."""


class Gap(NamedTuple):
    """The longest times (s) in which nothing new of a task was to be seen, and in which nobody worked on it."""

    seconds: float = 0.0
    idle: float = 0.0

    def or_longer(self, other: Gap) -> Gap:
        """The longer ones of both."""
        return Gap(max(self.seconds, other.seconds), max(self.idle, other.idle))


@dataclass(frozen=True)
class Step:
    """Some time in which instances came or went, and all tasks had something to do.

    Attributes:
        gaps: of each task.
        moved: tasks that went from one instance to another.
        warmed: how long (s) tasks were warmed up that then ran there.
        skipped: how often tasks that stayed were left out of an epoch.
    """

    gaps: dict[str, Gap]
    moved: set[str]
    warmed: dict[str, float]
    skipped: int

    @classmethod
    def of(cls, journals: JournalAnalysis, since: float, until: float) -> Step:
        """What journals say of that time. Tasks to which no records ever come say nothing."""
        tasks = {task for _, done in journals.epochs() for task in done.tasks}
        moved = moved_tasks(journals, since, until)
        return cls(
            longest_gaps(journals, tasks, since, until),
            moved,
            warm_ups(journals, since, until),
            left_out(journals, tasks - moved, since, until),
        )

    def longest(self, *, moved: bool) -> Gap:
        """Of the tasks that moved, or of those that stayed."""
        longest = Gap()
        for task, gap in self.gaps.items():
            if (task in self.moved) is moved:
                longest = longest.or_longer(gap)
        return longest

    def faults(self) -> list[str]:
        """Where tasks paused that stayed."""
        stayed = {task: gap for task, gap in self.gaps.items() if task not in self.moved}
        found = [
            f"{task} stayed, and nobody worked on it for {gap.idle:.1f} s (more than {IDLE_LIMIT:g} s)"
            for task, gap in stayed.items()
            if gap.idle > IDLE_LIMIT
        ]
        found += [
            f"{task} stayed, and nothing new was to be seen of it for {gap.seconds:.1f} s (more than {GAP_LIMIT:g} s)"
            for task, gap in stayed.items()
            if gap.seconds > GAP_LIMIT
        ]
        if self.skipped:
            found.append(f"epochs left out tasks that stayed, {self.skipped} times")
        if not stayed:
            found.append("no task stayed")
        return found

    def cold(self) -> list[str]:
        """Tasks that moved to where their state wasn't."""
        return sorted(self.moved - self.warmed.keys())


def longest_gaps(journals: JournalAnalysis, tasks: Collection[str], since: float, until: float) -> dict[str, Gap]:
    """How long tasks paused at most in that time; what began before it counts in full, what goes on, up to its end."""
    found = dict.fromkeys(tasks, Gap())
    before = dict.fromkeys(tasks, since)
    for _, done in journals.epochs():
        began = done.at - done.took_ms / 1000
        for task in found.keys() & set(done.tasks):
            last = before[task]
            if done.at > since and last < until:
                found[task] = found[task].or_longer(Gap(min(done.at, until) - last, min(began, until) - last))
            before[task] = done.at
    return {task: gap.or_longer(Gap(until - before[task], until - before[task])) for task, gap in found.items()}


def moved_tasks(journals: JournalAnalysis, since: float, until: float) -> set[str]:
    """Tasks that were given to another instance in that time. Its first epoch may take until long after it."""
    owner: dict[str, str] = {}
    found = set()
    for instance, now in journals.tasks():
        for task in now.active:
            if since <= now.at <= until and owner.get(task, instance) != instance:
                found.add(task)
            owner[task] = instance
    return found


def all_work(journals: JournalAnalysis) -> bool:
    """Whether each task to which records come had its last epoch where it is now."""
    owner = {task: instance for instance, now in journals.tasks() for task in now.active}
    worked = {task: instance for instance, done in journals.epochs() for task in done.tasks}
    return all(owner.get(task) == instance for task, instance in worked.items())


def warm_ups(journals: JournalAnalysis, since: float, until: float) -> dict[str, float]:
    """Tasks that began to run in that time where they had been warmed up: for how long, in s."""
    begun: dict[tuple[str, str], float] = {}
    found: dict[str, float] = {}
    for instance, now in journals.tasks():
        for task in [task for owner, task in begun if owner == instance and task not in now.warmup]:
            at = begun.pop((instance, task))
            if task in now.active and since <= now.at <= until:
                found[task] = now.at - at
        for task in now.warmup:
            begun.setdefault((instance, task), now.at)
    return found


def left_out(journals: JournalAnalysis, stayed: Collection[str], since: float, until: float) -> int:
    """How often an epoch of the instance that has a task, and of its part, went without it while it had records.

    A task without new records isn't in an epoch, and that is no pause: one that is missing in two epochs running is.
    Only tasks of the first part count: to each of them flights come all the time. What comes to the second depends on
    when epochs of the first are committed.
    """
    missing = {task: 0 for task in stayed if task.startswith("0_")}
    owner: dict[str, str] = {}
    count = 0
    for instance, done in journals.epochs():
        owner.update(dict.fromkeys(done.tasks, instance))
        if not since <= done.at <= until or done.input != "stream":
            continue
        for task in missing:
            if owner.get(task) == instance and task.startswith(f"{done.subtopology}_"):
                missing[task] = 0 if task in done.tasks else missing[task] + 1
                count += missing[task] > 1
    return count
