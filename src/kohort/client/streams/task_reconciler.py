"""Brings the tasks that the application has to those that the group assigned.

Nothing is queued: the next event follows from what the application has been told and what holds now. So an
application that was busy never hears of what is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.streams.tasks import Role, TaskId


class TaskReconciler:
    """The tasks that an application has, those that it is assigned, and those that it still has to close.

    Attributes:
        target: the tasks that the group assigned.
        current: the tasks that the application knows of: from `Assigned` until it has closed them.
    """

    def __init__(self) -> None:
        self.target: dict[TaskId, Role] = {}
        self.current: dict[TaskId, Role] = {}
        self._closing: dict[TaskId, Role | None] = {}  # with the role that a task has once it is closed
        self._lost = False  # and the application doesn't know yet

    @property
    def reconciled(self) -> bool:
        """Whether the application has exactly its target."""
        return not self._closing and not self._lost and self.current == self.target

    @property
    def owned(self) -> dict[TaskId, Role]:
        """The tasks to report to the group: those that the application has, or may have before the next heartbeat.

        The application may ask for its tasks at any moment, so a task of the target counts as owned: if the group
        revokes it meanwhile, it must not believe that the task is free.
        """
        owned = dict(self.target)
        for task, role in self.current.items():
            if role is Role.ACTIVE or task not in owned:
                owned[task] = role
        return owned

    def lose(self) -> None:
        """All tasks are lost. They have to be closed before new ones are assigned."""
        self.target = {}
        self._closing = dict.fromkeys(self.current)
        self._lost = bool(self.current)

    def forget(self) -> None:
        """Forgets all tasks: the application takes no more events."""
        self.target, self.current, self._closing, self._lost = {}, {}, {}, False

    def next_event(self) -> Lost | Revoked | RolesChanged | Assigned | None:
        """Returns the next event for the application, which counts as known then. Tasks are revoked first."""
        if self._lost:
            self._lost = False
            return Lost(dict(self.current))
        open_ones = {task: role for task, role in self.current.items() if task not in self._closing}
        if revoked := {task: role for task, role in open_ones.items() if task not in self.target}:
            self._closing.update(dict.fromkeys(revoked))
            return Revoked(revoked)
        if changed := {
            task: (role, self.target[task]) for task, role in open_ones.items() if self.target[task] is not role
        }:
            for task, (before, after) in changed.items():
                if before is Role.ACTIVE:
                    self._closing[task] = after
                else:
                    self.current[task] = after
            return RolesChanged(changed)
        if assigned := {task: role for task, role in self.target.items() if task not in self.current}:
            self.current.update(assigned)
            return Assigned(assigned)
        return None

    def closed(self, tasks: Iterable[TaskId]) -> None:
        """The application has closed these, or stopped running them and has them in their new role.

        Raises:
            ValueError: a task is neither revoked nor lost. (One that the application doesn't have is closed.)
        """
        for task in tasks:
            if task in self._closing:
                after = self._closing.pop(task)
                if after is None:
                    del self.current[task]
                else:
                    self.current[task] = after
            elif task in self.current:
                raise ValueError(f"task {task} isn't to be closed: it was neither revoked nor lost")

    def in_role(self, role: Role) -> Mapping[TaskId, Role]:
        """The tasks that the application has in a role and isn't closing."""
        return {task: has for task, has in self.current.items() if has is role and task not in self._closing}
