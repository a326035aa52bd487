"""Tasks, the roles in which members have them, and how messages and people list them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, Self, TypeVar

T = TypeVar("T")


class TaskId(NamedTuple):
    """A task: a partition of a subtopology; as text "0_3", as in Kafka Streams."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the task that `str` gives this for.

        Raises:
            ValueError: it isn't a task's id.
        """
        subtopology, _, partition = text.rpartition("_")
        if not subtopology or not partition.isdecimal():
            raise ValueError(f"{text!r} is no task; it should look like '0_3'")
        return cls(subtopology, int(partition))


class Role(enum.Enum):
    """How a member has a task. Two members of one process never have the same task, in whatever role."""

    ACTIVE = "active"
    """It runs the task; one member of the group does."""
    STANDBY = "standby"
    """It keeps a copy of the task's state, in case the member that runs it dies."""
    WARMUP = "warm-up"
    """It restores the task's state, and is to run the task once that is done."""


class TaskIds(Protocol):
    """Tasks of one subtopology, as every message and record lists them."""

    subtopology_id: str
    partitions: tuple[int, ...]


def tasks_of(
    active: Iterable[TaskIds], standby: Iterable[TaskIds] = (), warmup: Iterable[TaskIds] = ()
) -> dict[TaskId, Role]:
    """Returns the tasks of a message or record with their roles; active wins over standby, and that over warm-up."""
    tasks: dict[TaskId, Role] = {}
    for role, listed in ((Role.WARMUP, warmup), (Role.STANDBY, standby), (Role.ACTIVE, active)):
        for ids in listed:
            for partition in ids.partitions:
                tasks[TaskId(ids.subtopology_id, partition)] = role
    return tasks


def task_ids(kind: Callable[..., T], tasks: Mapping[TaskId, Role], role: Role) -> list[T]:
    """Returns the tasks of one role as messages list them, sorted, so that equal ones look equal.

    Args:
        kind: the message's class for `TaskIds`.
    """
    return [kind(subtopology_id=name, partitions=partitions) for name, partitions in in_role(tasks, role).items()]


def in_role(tasks: Mapping[TaskId, Role], role: Role) -> dict[str, tuple[int, ...]]:
    """Returns the partitions of each subtopology that `tasks` has in a role; both are sorted."""
    return by_subtopology(task for task, has in tasks.items() if has is role)


def by_subtopology(tasks: Iterable[TaskId]) -> dict[str, tuple[int, ...]]:
    """Returns the partitions of each subtopology; both are sorted."""
    found: dict[str, list[int]] = {}
    for name, partition in tasks:
        found.setdefault(name, []).append(partition)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


def shown(tasks: Mapping[TaskId, Role]) -> str:
    """Returns tasks as people read them: "0_1,0_2 standby:1_0"."""
    by_role = {role: ",".join(str(task) for task in sorted(tasks) if tasks[task] is role) for role in Role}
    parts = [names if role is Role.ACTIVE else f"{role.value}:{names}" for role, names in by_role.items() if names]
    return " ".join(parts) or "none"
