"""The rule of groups: a partition has one owner at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from ..members import MemberProcess


def assert_one_owner(members: Iterable[MemberProcess]) -> None:
    """No partition was given to a member before the last one had given it up.

    Members that crashed or lost their partitions don't give them up: the group takes these, when it has waited
    long enough.
    """
    held: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for number, member in enumerate(members):
        since: dict[int, int] = {}
        for event in member.events:
            match event["event"]:
                case "assigned":
                    for partition in event["partitions"]:
                        assert partition not in since, f"member {number} was given {partition} twice"
                        since[partition] = event["at"]
                case "revoked":
                    for partition in event["partitions"]:
                        held[partition].append((since.pop(partition), event["at"], number))
                case "lost":
                    for partition in event["partitions"]:
                        since.pop(partition)
    assert held, "nobody has told of what was assigned"
    for partition, times in held.items():
        times.sort()
        for (_, until, first), (start, _, second) in pairwise(times):
            assert until <= start, f"partition {partition} had two owners: members {first} and {second}"
