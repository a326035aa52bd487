from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from random import Random

import pytest

from kohort.coordinator.placement import ASSIGNORS, Assignor, Group
from tests.coordinator.placement.groups import random_group

PROGRAM = """
from random import Random
from kohort.coordinator.placement import ASSIGNORS
from tests.coordinator.placement.groups import random_group
for seed in range(8):
    group = random_group(Random(seed), members=8, subtopologies=5, partitions=20)
    print([ASSIGNORS[name](group) for name in sorted(ASSIGNORS)])
"""


def shuffled(group: Group, random: Random) -> Group:
    """The same group, in another order."""
    members = [
        replace(
            member,
            tags=dict(reversed(member.tags.items())),
            active=frozenset(random.sample(list(member.active), len(member.active))),
        )
        for member in random.sample(group.members, len(group.members))
    ]
    return replace(
        group,
        subtopologies=tuple(random.sample(group.subtopologies, len(group.subtopologies))),
        members=tuple(members),
        lags=dict(random.sample(list(group.lags.items()), len(group.lags))),
        ends=dict(random.sample(list(group.ends.items()), len(group.ends))),
    )


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_order_makes_no_difference(name: str) -> None:
    assign: Assignor = ASSIGNORS[name]
    for seed in range(40):
        random = Random(seed)
        group = random_group(random, members=8, subtopologies=5, partitions=12)
        other = shuffled(group, random)
        one, two = assign(group), assign(other)
        assert (list(one.active.items()), list(one.standby.items())) == (
            list(two.active.items()),
            list(two.standby.items()),
        ), seed


def test_equal_groups_have_equal_placements_in_other_processes() -> None:
    """Where hashes of strings differ."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
