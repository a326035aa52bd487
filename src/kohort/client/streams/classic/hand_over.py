"""Cooperative hand-over: a task goes to its new owner in the rebalance after its old owner has closed it.

Nobody tells a leader that a task is closed but its owner, in the subscription with which it joins again. Until then
the task is withheld:

    the new owner waits while
    ------------------------------------------------------------------------------------------------
    another member has the task as active
    another member has an active task, of an older topology, that reads one of its input partitions
    another member of its process has the task in whatever role: they share a disk
    another member has tasks of which nobody knows which they are: it can't be read, or runs an unknown topology

A copy that the new owner has goes on as it was. Those it waits for have to join again when they have closed the task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kohort.protocol.topic_partition import TopicPartition
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology


@dataclass(frozen=True, slots=True)
class Held:
    """What a member has.

    Attributes:
        topology: the one that it runs; None if nobody knows it.
    """

    process: str
    topology: Topology | None
    tasks: Mapping[TaskId, Role]


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The tasks of each member as they can be now.

    Attributes:
        waiting: members that don't get all that they are to have.
        awaited: members that have what these wait for.
    """

    tasks: Mapping[str, Mapping[TaskId, Role]]
    waiting: frozenset[str]
    awaited: frozenset[str]


def hand_over(
    wanted: Mapping[str, Mapping[TaskId, Role]],
    held: Mapping[str, Held],
    topology: Topology,
    hidden: Collection[str] = (),
) -> HandedOver:
    """Withholds tasks that their new owners can't have yet.

    Args:
        wanted: the tasks that each member is to have.
        held: what each member has, those included that are to have nothing.
        topology: the group's.
        hidden: members that may have any task beside those that others run, in any process.
    """
    holders = _Holders(held, topology, hidden)
    given: dict[str, Mapping[TaskId, Role]] = {}
    waiting: set[str] = set()
    awaited: set[str] = set()
    for name, tasks in wanted.items():
        own = held[name].tasks if held[name].topology == topology else {}
        granted: dict[TaskId, Role] = {}
        for task, role in tasks.items():
            before = holders.before(name, task, role)
            awaited.update(before)
            if not before:
                granted[task] = role
                continue
            waiting.add(name)
            if task in own and own[task] is not Role.ACTIVE:
                granted[task] = own[task]
        given[name] = granted
    return HandedOver(given, frozenset(waiting), frozenset(awaited))


class _Holders:
    """Who has which task."""

    def __init__(self, held: Mapping[str, Held], topology: Topology, hidden: Collection[str]) -> None:
        self._topology, self._held, self._hidden = topology, held, hidden
        self._active: dict[TaskId, set[str]] = {}
        self._readers: dict[TopicPartition, set[str]] = {}
        self._in_process: dict[tuple[str, TaskId], set[str]] = {}
        for name, each in held.items():
            older = each.topology if each.topology != topology else None
            for task, role in each.tasks.items():
                self._in_process.setdefault((each.process, task), set()).add(name)
                if role is Role.ACTIVE:
                    self._active.setdefault(task, set()).add(name)
                    if older is not None and task.subtopology in older.subtopologies:
                        for partition in older.inputs(task):
                            self._readers.setdefault(partition, set()).add(name)

    def before(self, name: str, task: TaskId, role: Role) -> set[str]:
        """Returns the members that have to close something before one gets a task in a role."""
        own = self._held[name]
        found = set(self._in_process.get((own.process, task), ()))
        has = own.tasks.get(task) if own.topology == self._topology else None
        if has is None or (role is Role.ACTIVE and task not in self._active):
            found.update(self._hidden)
        if role is Role.ACTIVE:
            found |= self._active.get(task, set())
            if self._readers:
                for partition in self._topology.inputs(task):
                    found |= self._readers.get(partition, set())
        return found - {name}
