"""Random groups."""

from __future__ import annotations

from random import Random

from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId


def some(random: Random, among: list[TaskId], chance: float) -> frozenset[TaskId]:
    return frozenset(task for task in among if random.random() < chance)


def random_group(
    random: Random, members: int = 4, subtopologies: int = 3, partitions: int = 4, stores: int = 3, lags: bool = True
) -> Group:
    """A group of at most that many of each; what members had before is anything: gone, doubled, or uneven."""
    topology = tuple(
        SubtopologyTasks(f"s{n}", random.randint(0, partitions), random.randint(0, stores))
        for n in range(random.randint(1, subtopologies))
    )
    count = random.randint(1, members)
    processes = random.randint(1, count)
    names = [random.choice(["", *(f"p{n}" for n in range(processes))]) for _ in range(count)]
    if random.random() < 0.3:
        names = [""] * count
    before = [TaskId(each.id, n) for each in topology for n in range(each.partitions + random.randint(0, 1))]
    zones = {name: random.choice("abc") for name in names}
    owners = {task: random.choice([None, *range(count)]) for task in before}
    if random.random() < 0.2:
        owners = dict.fromkeys(owners)
    twice = some(random, before, 0.05)
    people = tuple(
        Member(
            f"m{n}",
            names[n],
            {"zone": zones[names[n]] if names[n] else random.choice("abc")},
            frozenset(t for t in before if owners[t] == n) | (some(random, sorted(twice), 0.5)),
            some(random, before, random.choice([0, 0.3])),
        )
        for n in range(count)
    )
    known = random.random() < 0.5 and lags
    return Group(
        topology,
        people,
        random.randint(0, 3),
        ("zone",) if random.random() < 0.5 else (),
        {
            (name, task): random.choice([0, 5, 11, 40, random.randint(0, 90)])
            for name in sorted(set(names))
            for task in before
            if known and random.random() < 0.3
        },
        {
            task: random.choice([0, 60, 100, random.randint(0, 90)])
            for task in before
            if known and random.random() < 0.8
        },
        10,
    )
