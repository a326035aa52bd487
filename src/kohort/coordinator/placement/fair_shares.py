"""Fair shares: how many tasks each member gets."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.coordinator.placement.problem import Problem


class FairShares:
    """The floors of fair shares, and the remainders.

    All members have equal shares: of each subtopology, of all stateful tasks, and of all tasks each gets the floor or
    the ceiling. As each gets at least the floor of every subtopology, a placement comes down to the *extra tasks*:
    which members get one task more of which subtopology. Subtopology s has `rest[s]` extra tasks for as many members; a
    member gets `stateful` or, if that isn't an integer, one more of those of stateful subtopologies, and `total` or one
    more of all.

    The floors of sums are at least the sums of floors, so none of these numbers is negative.

    Attributes:
        floor: of each subtopology, what every member gets.
        rest: of each subtopology, its extra tasks.
        stateful, stateful_high: least and most stateful extra tasks of a member.
        total, total_high: least and most extra tasks of a member.
    """

    def __init__(self, problem: Problem) -> None:
        count = len(problem.members)
        self.floor = [partitions // count for partitions in problem.partitions]
        self.rest = [partitions % count for partitions in problem.partitions]
        extras = sum(self.rest)
        stateful_extras = sum(rest for rest, stores in zip(self.rest, problem.stores, strict=True) if stores)
        self.stateful, self.stateful_high = stateful_extras // count, -(-stateful_extras // count)
        self.total, self.total_high = extras // count, -(-extras // count)


def apportion(units: int, sizes: Sequence[int]) -> tuple[int, list[int], list[int]]:
    """Shares indivisible units among processes in proportion to their sizes, with the least spread.

    The spread is the largest minus the smallest deviation of a process from its exact share. The largest remainders
    rounded up make it least, and only that does, but for ties: where equal remainders are rounded both ways, it
    doesn't matter which. So all best results are within a floor and a ceiling for each process.

    Returns:
        the spread, times the sum of sizes; the least and the most units of each process.
    """
    total = sum(sizes)
    floors = [units * size // total for size in sizes]
    remainders = [units * size % total for size in sizes]
    left = units - sum(floors)
    if not left:
        return 0, floors, floors
    ranked = sorted(remainders, reverse=True)
    up, down = ranked[left - 1], ranked[left]  # the smallest one rounded up, the largest one rounded down
    low = [floor + (remainder > down) for floor, remainder in zip(floors, remainders, strict=True)]
    high = [floor + (remainder >= up) for floor, remainder in zip(floors, remainders, strict=True)]
    return total - up + down, low, high
