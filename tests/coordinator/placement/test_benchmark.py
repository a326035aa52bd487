"""The least that the benchmark holds placements against is the least."""

from __future__ import annotations

from random import Random

from benchmarks.placement.optimum import least
from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId
from tests.coordinator.placement.oracle import everything, is_balanced, worth


def had_by_somebody(random: Random) -> Group:
    """A small group; some tasks had an owner, and some stateful ones have copies."""
    parts = tuple(
        SubtopologyTasks(f"s{n}", random.randint(1, 3), random.randint(0, 2)) for n in range(random.randint(1, 2))
    )
    count = random.randint(1, 3)
    tasks = [TaskId(part.id, n) for part in parts for n in range(part.partitions)]
    owner = {task: random.randint(-1, count - 1) for task in tasks}
    members = tuple(
        Member(
            f"m{n}",
            f"p{n // random.randint(1, 2)}",
            active=frozenset(task for task in tasks if owner[task] == n),
            standby=frozenset(task for task in tasks if owner[task] != n and random.random() < 0.3),
        )
        for n in range(count)
    )
    return Group(parts, members)


def test_nothing_balanced_restores_or_moves_less() -> None:
    for seed in range(150):
        group = had_by_somebody(Random(seed))
        new = sum(
            not any(TaskId(part.id, n) in member.active for member in group.members)
            for part in group.subtopologies
            for n in range(part.partitions)
        )
        found = min(worth(group, active)[1:] for active in everything(group) if is_balanced(group, active))
        bound = least(group)
        assert (bound.stores, bound.moves + new) == found, seed
