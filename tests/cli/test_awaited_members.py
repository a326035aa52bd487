"""Who a group waits for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kohort.cli.client.colours import lag_text, state_text
from kohort.client.administration.awaited_members import awaited, awaited_members, holding_up, why_awaited
from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType, StreamsMemberState
from kohort.client.types import Broker, TopicPartition
from kohort.streams.tasks import Role, TaskId


def group(kind: GroupType, state: str, members: Iterable[GroupMember] = ()) -> GroupDescription:
    return GroupDescription(
        group_id="g",
        type=kind,
        state=state,
        coordinator=Broker(1, "here", 9092, None),
        assignor="",
        protocol_type="consumer",
        epoch=4,
        assignment_epoch=4,
        members=tuple(members),
    )


def member(
    name: str,
    *,
    epoch: int = 4,
    has: Iterable[int] = (),
    target: Iterable[int] | None = None,
    tasks: tuple[Iterable[int], Iterable[int]] | None = None,
) -> GroupMember:
    now, then = ({TaskId("0", number): Role.ACTIVE for number in some} for some in tasks or ((), ()))
    streams = StreamsMemberState(
        process_id=name,
        endpoint=None,
        tags={},
        topology_epoch=0,
        tasks=now,
        target_tasks=then,
        task_offsets={},
        task_end_offsets={},
    )
    return GroupMember(
        member_id=name,
        instance_id=None,
        client_id="",
        host="",
        rack=None,
        epoch=epoch,
        classic=False,
        topics=(),
        pattern=None,
        partitions=tuple(TopicPartition("t", number) for number in has),
        target=None if target is None else tuple(TopicPartition("t", number) for number in target),
        streams=None if tasks is None else streams,
    )


def test_members_that_have_something_to_give_up_are_named() -> None:
    members = [
        member("one", has=[0, 1], target=[0]),
        member("two", has=[], target=[1]),
        member("three", epoch=3, has=[2], target=[2]),
        member("four", has=[3], target=[3]),
    ]
    assert awaited(group(GroupType.CONSUMER, "Reconciling", members)) == [
        "waiting for one (has 1 partition to give up), three (is in epoch 3 of 4); "
        "others wait, too: two (has partitions to come)"
    ]


def test_who_has_something_to_give_up_holds_up_the_others() -> None:
    giving, coming, late = (
        member("one", has=[0, 1], target=[0]), member("two", has=[], target=[1]), member("three", epoch=3)
    )  # fmt: skip

    def held_up(*members: GroupMember) -> list[str]:
        return [each.member_id for each in holding_up(group(GroupType.CONSUMER, "Reconciling", list(members)))]

    assert held_up(coming, late, giving) == ["one"]
    assert held_up(coming, late) == ["three", "two"]
    classic = group(GroupType.CLASSIC, "PreparingRebalance", [member("one")])
    assert holding_up(classic) == list(classic.members)


def test_members_of_a_streams_group_by_their_tasks() -> None:
    members = [
        member("one", tasks=([0, 1, 2], [0])),
        member("two", tasks=([], [1, 2])),
        member("three", tasks=([], [])),
    ]
    assert awaited(group(GroupType.STREAMS, "Reconciling", members)) == [
        "waiting for one (has 2 tasks to give up); others wait, too: two (has tasks to come)"
    ]


@pytest.mark.parametrize(
    ("kind", "state", "said"),
    [
        (GroupType.CLASSIC, "PreparingRebalance", "one has yet to join again"),
        (GroupType.CLASSIC, "CompletingRebalance", "what their leader assigns"),
        (GroupType.CONSUMER, "Assigning", "the broker to place what there is"),
    ],
)
def test_where_no_member_can_be_named_it_says_what_is_going_on(kind: GroupType, state: str, said: str) -> None:
    (sentence,) = awaited(group(kind, state, [member("one")]))
    assert said in sentence


def test_nobody_can_come_to_an_epoch_that_is_not_placed_yet() -> None:
    placing = replace(
        group(GroupType.CONSUMER, "Assigning", [member("one"), member("two", has=[1], target=[])]), epoch=5
    )
    assert awaited(placing) == ["waiting for the broker to place what there is"]


def test_of_a_classic_group_those_who_have_yet_to_join() -> None:
    """As `kohort serve` tells: those that have joined have what they joined with, topics or something else."""
    members = [replace(member("one"), has_metadata=True), member("two"), member("three")]
    (sentence,) = awaited(group(GroupType.CLASSIC, "PreparingRebalance", members))
    assert sentence.startswith("waiting for two, three to join again: ")
    assert why_awaited(group(GroupType.CLASSIC, "PreparingRebalance", members)) == dict.fromkeys(
        ("two", "three"), "has to join again"
    )
    assert why_awaited(group(GroupType.CLASSIC, "Stable", members)) == {}


def test_of_a_classic_group_that_nobody_has_joined_again_and_that_all_have() -> None:
    """As in the moment after a third one came, and in the first seconds of a group."""
    members = [member("one"), member("two")]
    (sentence,) = awaited(group(GroupType.CLASSIC, "PreparingRebalance", members))
    assert sentence.startswith("all 2 members have yet to join again")
    joined = [replace(each, has_metadata=True) for each in members]
    (sentence,) = awaited(group(GroupType.CLASSIC, "PreparingRebalance", joined))
    assert "more members may come" in sentence


def test_random_ids_come_with_the_client_s() -> None:
    """Members of the consumer protocol make their ids up; those of classic groups begin with the client's."""
    members = [
        replace(member("nzf0pM60aaaaXYZ", has=[0, 1], target=[0]), client_id="hal"),
        replace(member("ann-1", epoch=3), client_id="ann"),
    ]
    described = group(GroupType.CONSUMER, "Reconciling", members)
    assert awaited(described) == [
        "waiting for hal (nzf0pM60aaaa…, has 1 partition to give up), ann-1 (is in epoch 3 of 4)"
    ]
    assert awaited_members(described) == members


@pytest.mark.parametrize("state", ["Stable", "Empty", "Dead", "NotReady"])
def test_others_wait_for_nobody(state: str) -> None:
    assert awaited(group(GroupType.CONSUMER, state, [member("one", epoch=3)])) == []


def test_colours_go_with_what_needs_somebody() -> None:
    shown = [state_text(state) for state in ("Stable", "PreparingRebalance", "Dead", "Other")]
    assert [each.style for each in shown if each is not None] == ["green", "yellow", "red", ""]
    lags = [lag_text(0), lag_text(1_200)]
    assert [(each.plain, each.style) for each in lags if each is not None] == [("0", "green"), ("1,200", "yellow")]
    assert (state_text(""), lag_text(None)) == (None, None)
