"""The tasks that an application has, and how it gets from these to those that it shall have.

Nothing is queued. What to tell the application next follows from what it was told before and what holds now, so it
never hears of anything that is over when it comes to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.streams.tasks import Role, TaskId

__all__ = ["HeldTasks"]


class HeldTasks:
    """What an application was told to have, what it shall have, and what it still has to close.

    Attributes:
        target: the tasks that it shall have.
        told: those that it knows of: from when it is told to take them, until it has closed them.
    """

    def __init__(self) -> None:
        self.target: dict[TaskId, Role] = {}
        self.told: dict[TaskId, Role] = {}
        self._closing: dict[TaskId, Role | None] = {}  # and what the application has them as when they are closed
        self._lost = False  # and the application doesn't know yet

    @property
    def settled(self) -> bool:
        """Whether it has what it shall have, and nothing else."""
        return not self._closing and not self._lost and self.told == self.target

    @property
    def owned(self) -> dict[TaskId, Role]:
        """What the group has to reckon with: all that the application has, or may have before the group hears again.

        It may ask for its tasks at any moment. So a task that is promised counts as taken: if the group takes it back
        meanwhile, it must not believe that nobody has it.
        """
        owned = dict(self.target)
        for task, role in self.told.items():
            if role is Role.ACTIVE or task not in owned:
                owned[task] = role
        return owned

    def lose(self) -> None:
        """All tasks are gone. They have to be closed before others can be taken."""
        self.target = {}
        self._closing = dict.fromkeys(self.told)
        self._lost = bool(self.told)

    def forget(self) -> None:
        """The application will ask no more."""
        self.target, self.told, self._closing, self._lost = {}, {}, {}, False

    def next_event(self) -> Lost | Revoked | RolesChanged | Assigned | None:
        """What to tell the application now; it counts as told then. What is to be given up comes first."""
        if self._lost:
            self._lost = False
            return Lost(dict(self.told))
        open_ones = {task: role for task, role in self.told.items() if task not in self._closing}
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
                    self.told[task] = after
            return RolesChanged(changed)
        if assigned := {task: role for task, role in self.target.items() if task not in self.told}:
            self.told.update(assigned)
            return Assigned(assigned)
        return None

    def closed(self, tasks: Iterable[TaskId]) -> None:
        """The application has closed these, or runs them no longer and has them in their new role.

        Raises:
            ValueError: one that it shall go on with. (One that it doesn't have is closed already.)
        """
        for task in tasks:
            if task in self._closing:
                after = self._closing.pop(task)
                if after is None:
                    del self.told[task]
                else:
                    self.told[task] = after
            elif task in self.told:
                raise ValueError(f"task {task} isn't to be closed: it was neither revoked nor lost")

    def in_role(self, role: Role) -> Mapping[TaskId, Role]:
        """The tasks that the application has and is to keep in a role."""
        return {task: held for task, held in self.told.items() if held is role and task not in self._closing}
