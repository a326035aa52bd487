from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.assignors import ASSIGNORS, Member
from kohort.client.assignors.user_data import decode_previous, encode_previous
from kohort.client.membership.consumer_protocol import decode_subscription, encode_subscription
from kohort.client.types import TopicPartition

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "vectors" / "kafka.jsonl").read_text().splitlines()]
"""What Kafka's own assignors gave (Kafka 4.2, `Vectors.java`)."""

TOPICS = {"a": 5, "b": 3, "c": 1, "d": 8}


def members_of(vector: dict[str, Any]) -> dict[str, Member]:
    return {
        name: decode_subscription(bytes.fromhex(data), vector["instances"].get(name))
        for name, data in vector["members"].items()
    }


def given_by(vector: dict[str, Any]) -> dict[str, list[TopicPartition]]:
    return {name: [TopicPartition(*each) for each in theirs] for name, theirs in vector["assignment"].items()}


def had(assignor: str, member: Member) -> frozenset[TopicPartition]:
    return decode_previous(member.user_data)[0] if assignor == "sticky" else member.owned


def check(
    assignor: str,
    members: Mapping[str, Member],
    topics: Mapping[str, int],
    assignment: Mapping[str, list[TopicPartition]],
) -> None:
    """Everything is given once, to subscribers, but for what a cooperative member must give up first."""
    assert assignment.keys() == members.keys()
    each = [partition for theirs in assignment.values() for partition in theirs]
    assert len(each) == len(set(each))
    wanted = {topic for member in members.values() for topic in member.topics}
    every = {TopicPartition(topic, number) for topic in wanted for number in range(topics.get(topic, 0))}
    owned = {partition for member in members.values() for partition in member.owned}
    assert every >= set(each)
    assert every - set(each) <= (owned if assignor == "cooperative-sticky" else set())
    for name, theirs in assignment.items():
        assert all(partition.topic in members[name].topics for partition in theirs)
        if assignor == "cooperative-sticky":
            others = [member for other, member in members.items() if other != name]
            claimed = {at for member in others for at in member.owned}
            newest = {
                at
                for at in members[name].owned
                if all(
                    generation_of(members[name]) > generation_of(other)
                    for other in others
                    if at in other.owned and at.topic in other.topics
                )
            }
            assert not set(theirs) & (claimed - newest), "two members would have it at once"


def generation_of(member: Member) -> int:
    if member.generation < 0 and member.user_data is not None:
        return int.from_bytes(member.user_data[:4], "big", signed=True)
    return member.generation


def unfair(members: Mapping[str, Member], assignment: Mapping[str, list[TopicPartition]]) -> bool:
    """Whether somebody has two more than somebody who could take one of them."""
    return any(
        len(assignment[other]) + 1 < len(theirs) and partition.topic in members[other].topics
        for theirs in assignment.values()
        for partition in theirs
        for other in members
    )


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_as_kafka_assigns(assignor: str) -> None:
    for vector in (vector for vector in VECTORS if vector["assignor"] == assignor):
        members, topics = members_of(vector), vector["topics"]
        ours, theirs = ASSIGNORS[assignor].assign(members, topics), given_by(vector)
        check(assignor, members, topics, ours)
        if assignor in ("range", "roundrobin"):
            assert ours == theirs
            continue
        # The sticky ones may differ in who gets which, but not in how even it is, nor in how much stays.
        retained = sum(len(had(assignor, member).intersection(ours[name])) for name, member in members.items())
        kafka_kept = sum(len(had(assignor, member).intersection(theirs[name])) for name, member in members.items())
        assert retained >= kafka_kept
        if len({member.topics for member in members.values()}) == 1:
            assert sorted(map(len, ours.values())) == sorted(map(len, theirs.values()))


def test_subscriptions_are_kafkas_bytes() -> None:
    for vector in VECTORS:
        assignor = ASSIGNORS[vector["assignor"]]
        for data in map(bytes.fromhex, vector["members"].values()):
            member = decode_subscription(data)
            if vector["assignor"] == "sticky" and member.user_data is not None:
                previous, generation = decode_previous(member.user_data)
                assert decode_previous(assignor.user_data(previous, generation)) == (previous, generation)
            ours = encode_subscription(member.topics, member.user_data, member.owned, member.generation, member.rack)
            # Topics may come in another order.
            assert decode_subscription(ours) == member and sorted(ours) == sorted(data)


# What groups are drawn from: to make a strategy takes longer than to draw from it.
SOME_TOPICS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), min_size=1)
SUBSCRIPTIONS = st.frozensets(st.sampled_from("abcd"), min_size=1)
NAMES = st.sets(st.integers(0, 9), min_size=1, max_size=6)
OWNED = st.frozensets(st.builds(TopicPartition, st.sampled_from("abcd"), st.integers(0, 9)), max_size=8)
GENERATIONS = st.integers(-1, 3)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool) -> tuple[dict[str, Member], dict[str, int]]:
    topics = draw(SOME_TOPICS)
    common = draw(SUBSCRIPTIONS)
    members = {}
    for name in sorted(draw(NAMES)):
        owned = draw(OWNED)
        generation = draw(GENERATIONS)
        members[f"m{name}"] = Member(
            common if alike else draw(SUBSCRIPTIONS),
            f"i{9 - name}" if draw(st.booleans()) else None,
            owned,
            generation,
            encode_previous(owned, generation),
        )
    return members, topics


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(ASSIGNORS)), st.booleans().flatmap(lambda alike: groups(alike=alike)))
def test_everything_is_given_once(assignor: str, group: tuple[dict[str, Member], dict[str, int]]) -> None:
    members, topics = group
    check(assignor, members, topics, ASSIGNORS[assignor].assign(members, topics))


@settings(max_examples=100, deadline=None)
@given(groups(alike=False))
def test_sticky_is_fair(group: tuple[dict[str, Member], dict[str, int]]) -> None:
    members, topics = group
    assert not unfair(members, ASSIGNORS["sticky"].assign(members, topics))


@settings(max_examples=100, deadline=None)
@given(groups(alike=True))
def test_sticky_keeps_as_many_as_even_shares_allow(group: tuple[dict[str, Member], dict[str, int]]) -> None:
    members, topics = group
    assignment = ASSIGNORS["sticky"].assign(members, topics)
    sizes = sorted(map(len, assignment.values()))
    assert sizes[-1] - sizes[0] <= 1
    # What may stay: claims of the newest generation, where one member alone has it.
    claims: dict[TopicPartition, dict[int, list[str]]] = {}
    for name, member in members.items():
        for at in member.owned:
            if at.topic in member.topics and at.partition < topics.get(at.topic, 0):
                claims.setdefault(at, {}).setdefault(member.generation, []).append(name)
    holders = {at: by[max(by)] for at, by in claims.items()}
    had = {name: {at for at, names in holders.items() if names == [name]} for name in members}
    share, more = divmod(sum(sizes), len(members))
    # The best there is: everybody keeps a floor, and as many as there are ceilings one more.
    best = sum(min(len(theirs), share) for theirs in had.values())
    best += min(more, sum(len(theirs) > share for theirs in had.values()))
    assert sum(len(had[name].intersection(theirs)) for name, theirs in assignment.items()) == best


@settings(max_examples=80, deadline=None)
@given(groups(alike=False))
def test_sticky_again_moves_nothing(group: tuple[dict[str, Member], dict[str, int]]) -> None:
    members, topics = group
    for name in ("sticky", "cooperative-sticky"):
        for generation in range(4, 8):
            assignment = ASSIGNORS[name].assign(members, topics)
            before = {key: frozenset(theirs) for key, theirs in assignment.items()}
            members = {
                key: Member(member.topics, None, before[key], generation, encode_previous(before[key], generation))
                for key, member in members.items()
            }
        again = ASSIGNORS[name].assign(members, topics)
        assert {key: frozenset(theirs) for key, theirs in again.items()} == before
        check("sticky", members, topics, again)


def test_user_data_that_cannot_be_read() -> None:
    previous = frozenset({TopicPartition("t", 1), TopicPartition("t", 2)})
    data = encode_previous(previous, 5)
    assert decode_previous(data) == (previous, 5)
    assert decode_previous(data[:-4]) == (previous, -1)  # version 0
    for bad in (None, b"", b"\xff", data[:5], b"\x7f\xff\xff\xff"):
        assert decode_previous(bad) == (frozenset(), -1)


@given(st.binary(max_size=60))
def test_subscriptions_of_any_bytes(data: bytes) -> None:
    assert isinstance(decode_subscription(data), Member)
