"""The least movement of active tasks, as min-cost flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kohort.coordinator.placement.choice import Choice
from kohort.coordinator.placement.network import Network
from kohort.coordinator.placement.pattern import Pattern
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread

__all__ = ["Flows"]


class Flows:
    """Placements of active tasks within fair shares, with the least to restore and among that the fewest moves.

    Args:
        problem: what is placed.
        shares: the fair shares.
    """

    def __init__(self, problem: Problem, shares: Shares) -> None:
        self._problem = problem
        self._shares = shares
        self._stateful = [s for s, stores in enumerate(problem.stores) if stores]
        self._stateless = [s for s, stores in enumerate(problem.stores) if not stores]
        self._members = range(len(problem.members))
        tasks = sum(problem.partitions[s] for s in self._stateful)
        self._some = self._share(tasks)
        self._all = self._share(problem.tasks)

    def free(self) -> Choice:
        """With no regard for state stores."""
        extras = {s: self._share(rest) for s, rest in enumerate(self._shares.rest)}
        return _least_movement(self._problem, self._shares, extras, self._some, self._members, self._all)

    def even(self, spread: Spread) -> Choice:
        """With as many stateful tasks in each process as make the spread of state stores least, if it is exact.

        Stateless tasks come second, so these are not always moved as little as can be.
        """
        extras = {s: self._share(self._shares.rest[s]) for s in self._stateful}
        floors = sum(self._shares.floor[s] for s in self._stateful)
        sizes = [len(rows) * floors for rows in self._problem.rows]
        low = [size + extra for size, extra in zip(sizes, spread.low, strict=True)]
        high = [size + extra for size, extra in zip(sizes, spread.high, strict=True)]
        process = self._problem.process
        choice = _least_movement(self._problem, self._shares, extras, self._some, process, _Bounds(low, high))
        return choice | self._others(choice)

    def fixed(self, pattern: Pattern) -> Choice:
        """With as many tasks of each stateful subtopology on each member as in a pattern; then of the others."""
        extras = {}
        for subtopology in self._stateful:
            has = [int(subtopology in extra) for extra in pattern.stateful]
            extras[subtopology] = _Bounds(has, has)
        any_ = _Bounds([0] * len(self._members), [self._problem.tasks] * len(self._members))
        choice = _least_movement(self._problem, self._shares, extras, self._some, self._members, any_)
        return choice | self._others(choice)

    def _others(self, choice: Choice) -> Choice:
        """Of stateless tasks, when it is decided how many stateful ones each member gets. It always works out."""
        count = [sum(self._shares.floor[s] for s in self._stateful)] * len(self._members)
        for holders in choice.holders.values():
            for member in holders:
                count[member] += 1
        extras = {s: self._share(self._shares.rest[s]) for s in self._stateless}
        total = _Bounds(
            [least - had for least, had in zip(self._all.low, count, strict=True)],
            [most - had for most, had in zip(self._all.high, count, strict=True)],
        )
        nothing = _Bounds([0] * len(count), [0] * len(count))
        return _least_movement(self._problem, self._shares, extras, nothing, self._members, total)

    def _share(self, tasks: int) -> _Bounds:
        """Bounds of a member's fair share."""
        count = len(self._members)
        return _Bounds([tasks // count] * count, [-(-tasks // count)] * count)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Least and most of something, both inclusive, of each that has it; of equal lengths."""

    low: Sequence[int]
    high: Sequence[int]


def _least_movement(
    problem: Problem,
    shares: Shares,
    extras: dict[int, _Bounds],
    stateful: _Bounds,
    groups: Sequence[int],
    total: _Bounds,
) -> Choice:
    """Decide which tasks stay, so that the least is restored, and among that the fewest tasks move.

    The flow goes from tasks to members, through every sum that has bounds:

        task ---- with an owner: 0 ------------------> seats --> stateful --> total --> sink
          | '---- where state is: its cost --> process --^ ^
          '------ anywhere: its whole cost --> anyone -----'

    Each task has arcs only to where it costs less than elsewhere; "anyone" is one node a subtopology. Seats are a node
    only where a member may keep something, and a process is one only where there is state, each for one subtopology;
    otherwise the arcs skip them. So there are about as many arcs as members times subtopologies, not as members times
    tasks.

    Bounds nest, of a subtopology in all stateful ones in all, so the cheapest flow is one of integers.

    Args:
        problem: what is placed.
        shares: the fair shares.
        extras: for each subtopology to be placed: bounds of every member's extras, 0 or 1.
        stateful: bounds of every member's tasks of stateful subtopologies.
        groups: for each member what its tasks are counted in, numbered from 0.
        total: bounds of each group's tasks.

    Raises:
        ValueError: the bounds can't be met.
    """
    import numpy as np

    if not extras:
        return Choice()
    columns = {subtopology: column for column, subtopology in enumerate(extras)}
    known = [
        task
        for subtopology in extras
        for task in range(problem.first[subtopology], problem.first[subtopology] + problem.partitions[subtopology])
        if problem.owner[task] >= 0 or problem.homes(task)
    ]
    keeps = [(n, owner) for n, task in enumerate(known) for owner in problem.owners(task)]
    homes = [(n, process, cost) for n, task in enumerate(known) for process, cost in _useful_homes(problem, task)]
    keep_task, keep_member = np.array(keeps, np.int64).reshape(-1, 2).T
    home_task, home_process, home_cost = np.array(homes, np.int64).reshape(-1, 3).T
    column_of = np.array([columns[problem.subtopology[task]] for task in known], np.int64)
    partitions = np.array([problem.partitions[subtopology] for subtopology in extras], np.int64)
    floor = np.array([shares.floor[subtopology] for subtopology in extras], np.int64)[:, None]
    has_state = np.array([[problem.stores[subtopology] > 0] for subtopology in extras])

    network = Network(problem.tasks)
    tasks = network.nodes(len(known))
    anyone = network.nodes(len(columns))
    some = network.nodes(len(problem.members))
    totals = network.nodes(len(total.low))
    sink = network.nodes(1)
    # By subtopology and process, and by subtopology and member: where flow comes from that goes there.
    to_process = np.repeat(anyone[:, None], len(problem.rows), axis=1)
    with_state = tuple(np.unique(np.stack([column_of[home_task], home_process]), axis=1))
    to_process[with_state] = network.nodes(len(with_state[0]))
    to_member = to_process[:, problem.process]
    with_owner = tuple(np.unique(np.stack([column_of[keep_task], keep_member]), axis=1))
    before_owner = to_member[with_owner]
    to_member[with_owner] = network.nodes(len(with_owner[0]))

    network.supply(tasks, 1)
    network.supply(anyone, partitions - np.bincount(column_of, minlength=len(columns)))
    network.supply(sink, -partitions.sum())
    kept = network.arcs(tasks[keep_task], to_member[column_of[keep_task], keep_member], 1)
    restore = home_cost
    at_home = network.arcs(
        tasks[home_task], to_process[column_of[home_task], home_process], 1, restore=restore, moves=1
    )
    network.arcs(tasks, anyone[column_of], 1, restore=[problem.whole[task] for task in known], moves=1)
    network.arcs(anyone[with_state[0]], to_process[with_state], problem.tasks)
    network.arcs(before_owner, to_member[with_owner], problem.tasks)
    low = floor + np.array([bounds.low for bounds in extras.values()])
    high = floor + np.array([bounds.high for bounds in extras.values()])
    group = totals[np.array(groups)]
    seats = network.arcs(to_member, np.where(has_state, some, group), high, low)
    network.arcs(some, group, stateful.high, stateful.low)
    network.arcs(totals, sink, total.high, total.low)

    flows = network.solve()
    holders = flows[seats].reshape(low.shape) > floor
    return Choice(
        {subtopology: np.flatnonzero(holders[column]).tolist() for subtopology, column in columns.items()},
        {known[keeps[n][0]]: keeps[n][1] for n in np.flatnonzero(flows[kept]).tolist()},
        {known[homes[n][0]]: homes[n][1] for n in np.flatnonzero(flows[at_home]).tolist()},
    )


def _useful_homes(problem: Problem, task: int) -> Iterator[tuple[int, int]]:
    """Processes with state of a task, and its cost there, but for those of which it is all the same as of the owner."""
    owners = problem.owners(task)
    for process, cost in problem.homes(task).items():
        if len(problem.rows[process]) > 1 or problem.rows[process][0] not in owners:
            yield process, cost
