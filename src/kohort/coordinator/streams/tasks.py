"""Tasks on the wire and in records, and the rules by which members of a streams group hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from kohort.coordinator.modern.reconciliation import Conversion, Rules
from kohort.coordinator.placement.model import Task
from kohort.coordinator.streams.roles import Role

__all__ = ["RULES", "TaskIds", "grouped", "holdings", "shown"]


class TaskIds(Protocol):
    """Tasks of one subtopology, as every message and record has them."""

    subtopology_id: str
    partitions: tuple[int, ...]


def _conversion(before: Role, after: Role) -> Conversion:
    """A client turns a copy into the running task and back without restoring anything, so neither is a revocation."""
    if after is Role.ACTIVE:
        return Conversion.WHEN_FREE
    return Conversion.ON_CONFIRMATION if before is Role.ACTIVE else Conversion.AT_ONCE


RULES: Final = Rules(exclusive=frozenset({Role.ACTIVE}), conversion=_conversion)
"""Who runs a task has to confirm that it stopped before another runs it."""


def holdings(active: Iterable[TaskIds], standby: Iterable[TaskIds], warmup: Iterable[TaskIds]) -> dict[Task, Role]:
    """Tasks with their roles; of a task that is there in several, the weightiest counts."""
    tasks: dict[Task, Role] = {}
    for role, told in ((Role.WARMUP, warmup), (Role.STANDBY, standby), (Role.ACTIVE, active)):
        for ids in told:
            for partition in ids.partitions:
                tasks[Task(ids.subtopology_id, partition)] = role
    return tasks


def grouped(tasks: Mapping[Task, Role], role: Role) -> list[tuple[str, tuple[int, ...]]]:
    """The tasks held in one role: subtopologies, sorted, with their partitions, sorted."""
    partitions: dict[str, list[int]] = {}
    for task, held in tasks.items():
        if held is role:
            partitions.setdefault(task.subtopology, []).append(task.partition)
    return [(subtopology, tuple(sorted(partitions[subtopology]))) for subtopology in sorted(partitions)]


def shown(tasks: Mapping[Task, Role]) -> str:
    """Tasks for people, such as "0_1,0_2 standby:1_0"."""
    parts = []
    for role in Role:
        names = ",".join(f"{name}_{partition}" for name, partitions in grouped(tasks, role) for partition in partitions)
        if names:
            parts.append(names if role is Role.ACTIVE else f"{role.value}:{names}")
    return " ".join(parts) or "none"
