"""The extra tasks of each member: those beyond the floor of its fair share of a subtopology (`FairShares`)."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.coordinator.placement.problem import Problem


class ExtraTasks:
    """The subtopologies of which each member gets an extra task.

    Attributes:
        stateful, stateless: by member: subtopologies, and what giving up the extra task would lose (`value`).
        counts: stateful extra tasks of each process.
        stores: state stores in the stateful extra tasks of each process.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.stateful: list[dict[int, int]] = [{} for _ in problem.members]
        self.stateless: list[dict[int, int]] = [{} for _ in problem.members]
        self.counts = [0] * len(problem.members_of)
        self.stores = [0] * len(problem.members_of)

    @staticmethod
    def value(saved: int, owned: bool) -> int:
        """The value of an extra task: what it saves to restore, then whether a task stays with its owner."""
        return 2 * saved + owned

    def add(self, subtopology: int, values: Mapping[int, int]) -> None:
        """Gives members an extra task that they don't have; `values` has its value for each of them."""
        stores = self._problem.stores[subtopology]
        extras = self.stateful if stores else self.stateless
        for member, value in values.items():
            extras[member][subtopology] = value
            if stores:
                process = self._problem.process[member]
                self.counts[process] += 1
                self.stores[process] += stores

    def move(self, source: int, target: int, subtopology: int, saved: int = 0) -> None:
        """Moves an extra task to a member that doesn't have it, which saves it `saved` of restoring.

        Within a process state stays where it is, and all is saved.
        """
        stores = self._problem.stores[subtopology]
        if not stores:
            del self.stateless[source][subtopology]
            self.add(subtopology, {target: 0})
            return
        process = self._problem.process[source]
        value = self.stateful[source].pop(subtopology)
        self.counts[process] -= 1
        self.stores[process] -= stores
        if process == self._problem.process[target]:
            saved = value // 2
        self.add(subtopology, {target: self.value(saved, False)})

    def holders(self) -> list[list[int]]:
        """By subtopology: the members with an extra task, in ascending order."""
        holders: list[list[int]] = [[] for _ in self._problem.names]
        for member, (stateful, stateless) in enumerate(zip(self.stateful, self.stateless, strict=True)):
            for subtopology in stateful:
                holders[subtopology].append(member)
            for subtopology in stateless:
                holders[subtopology].append(member)
        return holders
