"""A task that an instance has, whatever it is to it at the moment."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kohort.spark.monitoring.events import TasksNow
from kohort.streams.tasks import Role, TaskId


class Phase(enum.Enum):
    """How far a task is with what it is to be."""

    OPENING = "opening"
    """It is to run, and its state is being restored."""
    RUNNING = "running"
    COPY = "copy"
    """A standby or a warm-up: it follows its changelogs."""
    CLOSING = "closing"


@dataclass
class LocalTask:
    """A task.

    Attributes:
        id: which.
        role: as the group wants it.
        phase: how far it is.
        works: what is being done with it; the last of these is what shall be done, once the others are over.
    """

    id: TaskId
    role: Role
    phase: Phase = Phase.OPENING
    works: list[asyncio.Task[Any]] = field(default_factory=list, repr=False)


def tasks_now(at: float, held: Iterable[LocalTask], stopped: Mapping[str, str]) -> TasksNow:
    """All tasks, for listeners."""
    tasks = sorted(held, key=lambda each: each.id)

    def those(role: Role, phases: Iterable[Phase]) -> tuple[str, ...]:
        return tuple(str(each.id) for each in tasks if each.role is role and each.phase in phases)

    return TasksNow(
        at=at,
        active=those(Role.ACTIVE, (Phase.OPENING, Phase.RUNNING)),
        standby=those(Role.STANDBY, (Phase.OPENING, Phase.COPY)),
        warmup=those(Role.WARMUP, (Phase.OPENING, Phase.COPY)),
        restoring=those(Role.ACTIVE, (Phase.OPENING,)),
        closing=tuple(str(each.id) for each in tasks if each.phase is Phase.CLOSING),
        stopped=dict(stopped),
    )
