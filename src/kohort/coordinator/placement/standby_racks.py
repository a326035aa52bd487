"""Racks: standbys go to other values of the rack tags than the active task and each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kohort.coordinator.placement.problem import Problem


class Racks:
    """Which processes are apart enough for the copies of a task.

    Two copies agree in a tag if they are in equal values of it; processes without a value count as in one value. The
    fewer agreements between any two copies of a task, summed over tags, the better. While only some of the copies are
    placed there is a bound: for each tag on its own, the others go to the values with the fewest.

    A process fits if it keeps that bound as low as any process can. With one tag, copies that fit one after the other
    agree as little as possible, as long as there are enough processes in each value.

    Processes with equal values are of one kind; nothing else of them matters here.

    Attributes:
        kind: the kind of each process.
        kinds: how many there are.
    """

    def __init__(self, problem: Problem) -> None:
        ordered = list(
            _interleaved(sorted(set(problem.racks), key=lambda values: [(v is not None, v) for v in values]))
        )
        numbers = {values: number for number, values in enumerate(ordered)}
        self.kind = [numbers[values] for values in problem.racks]
        self.kinds = len(ordered)
        self._tags = [[values[tag] for values in ordered] for tag in range(len(ordered[0]))]
        self._width = [len(set(values)) for values in self._tags]
        self._size = Counter(self.kind)
        self._copies = problem.standbys + 1
        self._bounds: dict[tuple[int, ...], int] = {}
        self._bests: dict[tuple[int, ...], int] = {}

    def fits(self, taken: Sequence[int], kind: int) -> bool:
        """Whether a process of a kind fits the processes that have a copy already. It must be none of them."""
        if self.kinds == 1:
            return True
        kinds = sorted([self.kind[process] for process in taken])
        return self._bound(kinds, kind) == self._best(kinds)

    def bound(self, processes: Sequence[int]) -> int:
        """The fewest agreements of all copies of a task, if some are in these processes."""
        kinds = [self.kind[process] for process in processes]
        return self._bound(kinds[:-1], kinds[-1])

    def room(self, active: int, standbys: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Least and most standbys of a task in each kind of process, with no more agreements than there are.

        Args:
            active: the kind of the active task's process.
            standbys: the kinds of the standbys' processes, in an optimal placement.
        """
        had = Counter(standbys)
        if len(self._tags) == 1:  # then kinds never agree, and only the evenness matters
            floor, rest = divmod(self._copies, self.kinds)
            room = {}
            for kind in range(self.kinds):
                here = kind == active
                room[kind] = max(0, floor - here), floor + (rest > 0) - here
            if all(low <= had[kind] <= high for kind, (low, high) in room.items()):
                return room
        return {kind: (count, count) for kind, count in had.items()}

    def _best(self, kinds: Sequence[int]) -> int:
        """The bound with the best next process."""
        key = tuple(kinds)
        best = self._bests.get(key)
        if best is None:
            taken = Counter(kinds)
            ideal = self._bound(kinds[:-1], kinds[-1])
            for kind in range(self.kinds):
                if taken[kind] < self._size[kind]:
                    bound = self._bound(kinds, kind)
                    best = bound if best is None else min(best, bound)
                    if best == ideal:
                        break
            assert best is not None, "there are more processes than copies"
            self._bests[key] = best
        return best

    def _bound(self, kinds: Sequence[int], another: int) -> int:
        key = tuple(sorted((*kinds, another)))
        bound = self._bounds.get(key)
        if bound is None:
            missing = self._copies - len(key)
            bound = 0
            for values, width in zip(self._tags, self._width, strict=True):
                bound += _agreements(Counter([values[kind] for kind in key]).values(), width, missing)
            self._bounds[key] = bound
        return bound


def _interleaved(kinds: Sequence[tuple[str | None, ...]]) -> Iterator[tuple[str | None, ...]]:
    """Kinds in an order in which neighbours differ, so that a good one is found soon."""
    rounds: Counter[str | None] = Counter()
    ranked = []
    for place, values in enumerate(kinds):
        ranked.append((rounds[values[0]] if values else 0, place))
        rounds[values[0] if values else None] += 1
    return (kinds[place] for _, place in sorted(ranked))


def _agreements(counts: Iterable[int], width: int, missing: int) -> int:
    """Agreements in a tag with `width` values, if the missing copies go to the values with the fewest."""
    levels = sorted(counts)
    levels = [0] * min(width - len(levels), missing) + levels
    for _ in range(missing):
        levels[0] += 1
        levels.sort()
    return sum(count * (count - 1) // 2 for count in levels)
