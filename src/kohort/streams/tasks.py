"""Tasks, what a member is to them, and how messages list them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from kohort.protocol.messages.streams_group_heartbeat import TaskIds

__all__ = ["Role", "TaskId", "grouped", "shown", "tasks_of"]


class TaskId(NamedTuple):
    """A task: a partition of a subtopology; as text "0_3", as in Kafka Streams."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The task that `str` gives this for.

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
    """It keeps a copy of the task's state, in case who runs it dies."""
    WARMUP = "warm-up"
    """It restores the task's state, and is to run the task once that is done."""


def grouped(tasks: Mapping[TaskId, Role], role: Role) -> list[TaskIds]:
    """The tasks in a role, as messages have them: sorted, so that equal ones look equal."""
    partitions: dict[str, list[int]] = {}
    for task, held in sorted(tasks.items(), key=_task):
        if held is role:
            partitions.setdefault(task.subtopology, []).append(task.partition)
    return [TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in partitions.items()]


def _task(item: tuple[TaskId, Role]) -> TaskId:
    return item[0]


def tasks_of(lists: Iterable[tuple[Role, Iterable[TaskIds]]]) -> dict[TaskId, Role]:
    """The tasks that a message lists by role.

    Raises:
        ValueError: a task is listed twice, or negative.
    """
    tasks: dict[TaskId, Role] = {}
    for role, listed in lists:
        for ids in listed:
            for partition in ids.partitions:
                task = TaskId(ids.subtopology_id, partition)
                if partition < 0 or task in tasks:
                    raise ValueError(f"task {task} is {'negative' if partition < 0 else 'listed twice'}")
                tasks[task] = role
    return tasks


def shown(tasks: Mapping[TaskId, Role]) -> str:
    """Tasks for people: "0_1,0_2 standby:1_0"."""
    by_role = {role: ",".join(str(task) for task in sorted(tasks) if tasks[task] is role) for role in Role}
    parts = [names if role is Role.ACTIVE else f"{role.value}:{names}" for role, names in by_role.items() if names]
    return " ".join(parts) or "none"
