"""The answer of a solver for active tasks, and the placement that it gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.task_assignment import assign_tasks


@dataclass(frozen=True, slots=True)
class ActiveSolution:
    """Which members get extra tasks, and which tasks stay, or go where their state is; all others may go anywhere.

    Attributes:
        holders: by subtopology: the members with an extra task, in ascending order.
        kept: the tasks that stay with a previous owner, and with which.
        with_state: the tasks that go to a process with state of theirs, and to which.
    """

    holders: dict[int, list[int]] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    with_state: dict[int, int] = field(default_factory=dict)

    def __or__(self, other: ActiveSolution) -> ActiveSolution:
        """Both, of different subtopologies."""
        return ActiveSolution(self.holders | other.holders, self.kept | other.kept, self.with_state | other.with_state)

    def placement(self, problem: Problem, shares: FairShares) -> list[int]:
        active = [-1] * problem.tasks
        sticky: dict[int, dict[int, list[int]]] = {subtopology: {} for subtopology in self.holders}
        for task, member in sorted(self.kept.items()):
            sticky[problem.subtopology[task]].setdefault(member, []).append(task)

        def costs(task: int) -> dict[int, int]:
            return {self.with_state[task]: 0} if task in self.with_state else {}

        for subtopology, holders in self.holders.items():
            assign_tasks(problem, subtopology, shares.floor[subtopology], holders, sticky[subtopology], costs, active)
        return active
