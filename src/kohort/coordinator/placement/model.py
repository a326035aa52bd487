"""The model of a group: members, subtopologies and tasks, and the placement of the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kohort.streams.tasks import Role, TaskId


@dataclass(frozen=True, slots=True)
class SubtopologyTasks:
    """The tasks of a subtopology.

    Attributes:
        id: the subtopology's.
        partitions: number of its tasks, at least 0; they are numbered from 0.
        state_stores: state stores of each of its tasks (KIP-262); without any they are stateless.
    """

    id: str
    partitions: int
    state_stores: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, which runs tasks.

    Attributes:
        id: its name, unique in the group.
        process: the process it runs in; members of a process share their state on disk. Empty: one of its own.
        tags: client tags, such as {"zone": "eu-1a"}; standbys are spread over the values of the group's rack tags.
        active: its previous active tasks.
        standby: its previous standby tasks, warm-ups included.
    """

    id: str
    process: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """The input of an assignor.

    Attributes:
        subtopologies: each id once.
        members: each id once, in any order: the order makes no difference.
        standbys: standbys wanted of each stateful task.
        rack_tags: names of the tags by whose values standbys are spread.
        lags: records that a process's copy of a task lags behind the end of the task's changelog, where that is known.
            A process with a lag for a task has state of it on disk, even if no member had the task before.
        ends: records of a task's whole changelog, where that is known: what a process without a copy has to restore.
        acceptable_lag: records that a copy may lag and still count as caught up.
    """

    subtopologies: tuple[SubtopologyTasks, ...]
    members: tuple[Member, ...]
    standbys: int = 0
    rack_tags: tuple[str, ...] = ()
    lags: Mapping[tuple[str, TaskId], int] = field(default_factory=dict)
    ends: Mapping[TaskId, int] = field(default_factory=dict)
    acceptable_lag: int = 10_000


@dataclass(frozen=True, slots=True)
class Placement:
    """The output of an assignor.

    Attributes:
        active: the member of each active task; empty for a group without members.
        standby: the members with a standby of a task, for tasks that have one.
    """

    active: Mapping[TaskId, str]
    standby: Mapping[TaskId, tuple[str, ...]] = field(default_factory=dict)

    def by_member(self) -> dict[str, dict[TaskId, Role]]:
        found: dict[str, dict[TaskId, Role]] = {}
        for task, members in self.standby.items():
            for member in members:
                found.setdefault(member, {})[task] = Role.STANDBY
        for task, member in self.active.items():
            found.setdefault(member, {})[task] = Role.ACTIVE
        return found
