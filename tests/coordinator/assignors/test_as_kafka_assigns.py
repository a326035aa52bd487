"""Beside what the assignors of Kafka's own group coordinator gave (4.3.1; `vectors/Vectors.java`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

from kohort.coordinator.assignors import ASSIGNORS, Assignment, GroupSpec, MemberSpec, TopicIdPartition
from tests.coordinator.assignors.groups import kept

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "vectors" / "kafka.jsonl").read_text().splitlines()]


def partitions(theirs: dict[str, list[int]]) -> frozenset[TopicIdPartition]:
    return frozenset(TopicIdPartition(UUID(topic), each) for topic, numbers in theirs.items() for each in numbers)


def group_of(vector: dict[str, Any]) -> GroupSpec:
    members = {
        member_id: MemberSpec(
            frozenset(map(UUID, topics)),
            partitions(vector["had"].get(member_id, {})),
            vector["instances"].get(member_id),
        )
        for member_id, topics in vector["members"].items()
    }
    return GroupSpec(members, {UUID(topic): count for topic, count in vector["topics"].items()})


def target_of(vector: dict[str, Any]) -> Assignment:
    return {member_id: partitions(theirs) for member_id, theirs in vector["target"].items()}


def spread(targets: Assignment) -> int:
    sizes = [len(theirs) for theirs in targets.values()]
    return max(sizes) - min(sizes)


def vectors(assignor: str) -> list[tuple[GroupSpec, Assignment]]:
    found = [(group_of(vector), target_of(vector)) for vector in VECTORS if vector["assignor"] == assignor]
    assert len(found) > 90
    return found


def test_range_gives_what_kafkas_gives() -> None:
    for group, target in vectors("range"):
        assert ASSIGNORS["range"](group) == target


def test_uniform_is_as_even_as_kafkas_and_moves_as_little() -> None:
    exact = 0
    for group, target in vectors("uniform"):
        ours = ASSIGNORS["uniform"](group)
        exact += ours == target
        assert kept(group, ours) == kept(group, target)
        # Equally many each, even if they may be others.
        assert {member_id: len(theirs) for member_id, theirs in ours.items()} == {
            member_id: len(theirs) for member_id, theirs in target.items()
        }
    assert exact > 80


def test_simple_is_as_even_as_kafkas_and_moves_no_more_on_the_whole() -> None:
    fewer_moves = 0
    for group, target in vectors("simple"):
        ours = ASSIGNORS["simple"](group)
        fewer_moves += kept(group, ours) - kept(group, target)
        sharers, kafkas = (Counter(each for theirs in by.values() for each in theirs) for by in (ours, target))
        assert sharers.keys() >= kafkas.keys()
        assert max(sharers.values(), default=0) <= max(kafkas.values(), default=0)
        if group.homogeneous:
            assert spread(ours) <= spread(target)
    assert fewer_moves > 0
