"""What a solver decides about active tasks, and the placement that it comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.seating import seat
from kohort.coordinator.placement.shares import Shares

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Who gets the extras, and which tasks stay where something of them is; all others may go anywhere.

    Attributes:
        holders: by subtopology: the members with an extra, in ascending order.
        kept: the tasks that stay with an owner, and with which.
        at_home: the tasks that go to a process with state of theirs, and to which.
    """

    holders: dict[int, list[int]] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    at_home: dict[int, int] = field(default_factory=dict)

    def __or__(self, other: Choice) -> Choice:
        """Both, of different subtopologies."""
        return Choice(self.holders | other.holders, self.kept | other.kept, self.at_home | other.at_home)

    def placement(self, problem: Problem, shares: Shares) -> list[int]:
        """The member of each task."""
        active = [-1] * problem.tasks
        claims: dict[int, dict[int, list[int]]] = {subtopology: {} for subtopology in self.holders}
        for task, member in sorted(self.kept.items()):
            claims[problem.subtopology[task]].setdefault(member, []).append(task)

        def homes(task: int) -> dict[int, int]:
            return {self.at_home[task]: 0} if task in self.at_home else {}

        for subtopology, holders in self.holders.items():
            seat(problem, subtopology, shares.floor[subtopology], holders, claims[subtopology], homes, active)
        return active
