"""What has happened in a group, from one look to the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.types import TopicPartition
from kohort.console import group_events
from kohort.console.group_events import GroupEvents
from kohort.streams.tasks import Role, TaskId
from tests.console.test_placement_words import described, member


def group(state: str, **held: list[int]) -> GroupDescription:
    """A classic group: members are called by client, then `_`, then a number."""
    members = [
        replace(
            member(name, {}, {}),
            client_id=name.partition("_")[0],
            streams=None,
            partitions=tuple(TopicPartition("t", at) for at in partitions),
        )
        for name, partitions in held.items()
    ]
    return replace(described(*members), type=GroupType.CLASSIC, state=state)


def texts(events: GroupEvents) -> list[str]:
    return [each.text for each in events.events]


def test_a_member_that_is_dropped() -> None:
    events = GroupEvents()
    events.looked(1.0, 1000, group("Stable", ann_1=[0, 1], dan_1=[2]))
    assert texts(events) == []
    events.looked(3.0, 3000, group("PreparingRebalance", ann_1=[], dan_1=[]))
    events.looked(3.0, 3001, group("Dead"))  # no newer
    events.looked(5.0, 5000, group("Stable", ann_1=[0, 1, 2]))
    assert [tuple(each) for each in events.events] == [
        (1, 3000, "Stable, then PreparingRebalance"),
        (2, 5000, "Members went: dan"),
        (3, 5000, "PreparingRebalance, then Stable"),
        (4, 5000, "1 partition moved to another member"),
    ]


def test_members_are_called_by_their_clients_and_counted() -> None:
    events = GroupEvents()
    events.looked(1.0, 1, group("Empty"))
    events.looked(2.0, 2, group("Stable", ann_1=[0], ann_2=[1], b=[], c=[], d=[], e=[], f=[], g=[]))
    assert texts(events) == [
        "Members came: ann (2), b, c, d, e and 2 others",
        "Empty, then Stable",
        "2 partitions given out for the first time",
    ]


def test_a_rebalance_that_gives_all_back_moves_nothing() -> None:
    events = GroupEvents()
    for at, state, having in ((1, "Stable", [0]), (2, "CompletingRebalance", []), (3, "Stable", [0])):
        events.looked(at, at, group(state, ann_1=having))
    assert texts(events) == ["Stable, then CompletingRebalance", "CompletingRebalance, then Stable"]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((12, "ab"), (17, "ab"), ["5 changes between two looks: group epoch 12, then 17"]),
        ((12, "ab"), (13, "ab"), ["1 change between two looks: group epoch 12, then 13"]),
        ((12, "ab"), (13, "a"), ["Members went: b"]),
        ((12, "ab"), (14, "ac"), ["Members went: b", "Members came: c"]),
        (
            (12, "ab"),
            (17, "ac"),
            ["Members went: b", "Members came: c", "5 changes between two looks: group epoch 12, then 17"],
        ),
        ((12, "ab"), (2, "ab"), ["Made anew: group epoch 12, then 2"]),
        ((None, "ab"), (2, "ab"), []),
    ],
)
def test_changes_that_are_over_before_the_next_look_are_told_by_the_epoch(
    before: tuple[int | None, str], now: tuple[int | None, str], said: list[str]
) -> None:
    """A member that goes and joins again has the same id, or the same name."""
    events = GroupEvents()
    for at, (epoch, names) in enumerate((before, now)):
        events.looked(at, at, replace(group("Stable", **{name: [] for name in names}), epoch=epoch))
    assert texts(events) == said


def test_a_static_member_that_comes_back_was_never_gone() -> None:
    events = GroupEvents()
    for at, name in enumerate(("old", "new")):
        one = group("Stable", **{name: [0]})
        events.looked(at, at, replace(one, members=tuple(replace(each, instance_id="s") for each in one.members)))
    assert texts(events) == ["Members came again: s"]


def test_active_tasks_of_a_streams_group_move() -> None:
    task = TaskId("0", 0)
    events = GroupEvents()
    events.looked(1, 1, described(member("one", {task: Role.ACTIVE}, {}), member("two", {task: Role.STANDBY}, {})))
    events.looked(2, 2, described(member("one", {task: Role.STANDBY}, {}), member("two", {task: Role.ACTIVE}, {})))
    assert texts(events) == ["1 task moved to another member"]


def test_of_very_many_members_the_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_events, "MOST_PLACES", 2)
    events = GroupEvents()
    for at, names in enumerate(("abc", "bcd", "bc", "b")):
        events.looked(at, at, group("Stable", **{name: [] for name in names}))
    assert texts(events) == ["3 members, then 2", "Members went: c"]


def test_memory_is_bounded() -> None:
    events = GroupEvents()
    for look in range(100):
        many = list(range(look, look + group_events.MOST_PLACES + 10))
        events.looked(look, look, group("Stable" if look % 2 else "Assigning", ann=many))
    assert len(events.events) == group_events.MOST_EVENTS
    assert events.events[-1].at_ms == 99
    assert len(events._owners) == group_events.MOST_PLACES
