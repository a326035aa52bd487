"""Tasks as people write and sort them: partitions `0-3, 7` of a subtopology, tasks by member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kohort.coordinator.placement.model import Placement, Task

__all__ = ["by_subtopology", "ranges", "shown", "shown_tasks", "tasks_by_member"]


def ranges(partitions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive numbers, ascending."""
    first = last = None
    for partition in sorted(partitions):
        if last is not None and first is not None:
            if partition <= last + 1:
                last = partition
                continue
            yield first, last
        first = last = partition
    if first is not None and last is not None:
        yield first, last


def shown(partitions: Iterable[int]) -> str:
    """The partitions as text, such as `0-3, 7`."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges(partitions))


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """The partitions of each subtopology among the tasks, all in order."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for task in sorted(tasks):
        found[task.subtopology].append(task.partition)
    return dict(found)


def shown_tasks(tasks: Iterable[Task]) -> str:
    """The tasks as text, a subtopology after the other: `0: 0-3, 7; 1: 2`."""
    return "; ".join(f"{name}: {shown(partitions)}" for name, partitions in by_subtopology(tasks).items())


def tasks_by_member(placement: Placement) -> tuple[dict[str, list[Task]], dict[str, list[Task]]]:
    """The active tasks and the standbys of each member that has any."""
    active: dict[str, list[Task]] = {}
    standby: dict[str, list[Task]] = {}
    for task, owner in placement.active.items():
        active.setdefault(owner, []).append(task)
    for task, owners in placement.standby.items():
        for owner in owners:
            standby.setdefault(owner, []).append(task)
    return active, standby
