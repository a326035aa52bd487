"""Who gets the extras: what a placement comes down to where balance is concerned."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.coordinator.placement.problem import Problem

__all__ = ["Pattern"]


class Pattern:
    """The subtopologies that each member gets the ceiling of its share of, and what depends on it.

    Attributes:
        stateful, stateless: each member's extras, and what giving up each of them would lose (`value`).
        counts: stateful extras of each process.
        stores: state stores in the stateful extras of each process.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.stateful: list[dict[int, int]] = [{} for _ in problem.members]
        self.stateless: list[dict[int, int]] = [{} for _ in problem.members]
        self.counts = [0] * len(problem.rows)
        self.stores = [0] * len(problem.rows)

    @staticmethod
    def value(saved: int, owned: bool) -> int:
        """The value of an extra, by the cost that it saves and whether a task stays with its owner by it."""
        return 2 * saved + owned

    def add(self, subtopology: int, values: Mapping[int, int]) -> None:
        """Give members an extra that they don't have; its value for each of them is given."""
        stores = self._problem.stores[subtopology]
        extras = self.stateful if stores else self.stateless
        for member, value in values.items():
            extras[member][subtopology] = value
            if stores:
                process = self._problem.process[member]
                self.counts[process] += 1
                self.stores[process] += stores

    def move(self, source: int, target: int, subtopology: int, saved: int = 0) -> None:
        """Give an extra of one member to another who doesn't have it, and saves that much of restoring by it.

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
        """By subtopology: who has an extra, in ascending order."""
        holders: list[list[int]] = [[] for _ in self._problem.names]
        for member, (stateful, stateless) in enumerate(zip(self.stateful, self.stateless, strict=True)):
            for subtopology in stateful:
                holders[subtopology].append(member)
            for subtopology in stateless:
                holders[subtopology].append(member)
        return holders
