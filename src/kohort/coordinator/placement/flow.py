"""The least movement of active tasks, as a min-cost flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kohort.coordinator.placement.choice import Choice
from kohort.coordinator.placement.network import Network
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.shares import Shares

__all__ = ["Bounds", "least_movement"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and most of something, both inclusive, of each that has it; of equal lengths."""

    low: Sequence[int]
    high: Sequence[int]


def least_movement(
    problem: Problem, shares: Shares, extras: dict[int, Bounds], stateful: Bounds, groups: Sequence[int], total: Bounds
) -> Choice:
    """Decide which tasks stay, so that the least is restored, and among that the fewest tasks move.

    The flow goes from tasks to members, through every sum that has bounds:

        task ---- with an owner: 0 ------------------> seats --> stateful --> total --> sink
          | '---- where state is: its cost --> process --^ ^
          '------ anywhere: its whole cost --> anyone -----'

    Each task has arcs only to where it costs less than elsewhere; "anyone" is one node a subtopology. Seats are a node only
    where a member may keep something, and a process is one only where there is state, each for one subtopology; otherwise
    the arcs skip them. So there are about as many arcs as members times subtopologies, not as members times tasks.

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
