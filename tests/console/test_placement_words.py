"""Why a task is where it is, in words, and what-if as it is filled in."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType, StreamsMemberState
from kohort.client.types import Broker
from kohort.console.placement_words import (
    Names,
    cost_text,
    member_rows,
    metric_rows,
    move_rows,
    place_rows,
    sentences,
    task_rows,
    verdict,
)
from kohort.console.record_ranges import ChoiceError
from kohort.console.what_if_form import WhatIf
from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId, optimal
from kohort.coordinator.placement.explanation import Explanation
from kohort.coordinator.placement.outcome import compare
from kohort.coordinator.placement.what_if import Add, Remove, Standbys
from kohort.streams.tasks import Role
from tests.coordinator.placement.groups import random_group

COUNT, SPLIT = SubtopologyTasks("count", 4, state_stores=2), SubtopologyTasks("split", 4)
TASKS = [TaskId("count", partition) for partition in range(4)]
OTHERS = [TaskId("split", partition) for partition in range(4)]
ONE = Member("one", "p1", {"zone": "a"}, active=frozenset(TASKS[:2] + OTHERS[:2]), standby=frozenset(TASKS[2:]))
TWO = Member("two", "p2", {"zone": "b"}, active=frozenset(TASKS[2:] + OTHERS[2:]), standby=frozenset(TASKS[:2]))
THREE = Member("three", "p3", {"zone": "a"})
PAIR = Group((COUNT, SPLIT), (ONE, TWO), ends=dict.fromkeys(TASKS, 70))
NAMES = Names({}, ("zone",))


def described(*members: GroupMember) -> GroupDescription:
    return GroupDescription(
        group_id="app",
        type=GroupType.STREAMS,
        state="Stable",
        coordinator=Broker(1, "here", 9092),
        assignor="",
        protocol_type="streams",
        epoch=1,
        assignment_epoch=1,
        members=members,
    )


def member(name: str, tasks: dict[TaskId, Role], target: dict[TaskId, Role]) -> GroupMember:
    streams = StreamsMemberState(
        process_id=name,
        endpoint=None,
        tags={},
        topology_epoch=0,
        tasks=tasks,
        target_tasks=target,
        task_offsets={TASKS[0]: 20},
        task_end_offsets={TASKS[0]: 70},
    )
    return GroupMember(
        member_id=name,
        instance_id=None,
        client_id="",
        host="",
        rack=None,
        epoch=1,
        classic=False,
        topics=(),
        pattern=None,
        partitions=(),
        target=None,
        streams=streams,
    )


def why(group: Group, task: TaskId) -> str:
    explanation = Explanation(group)
    return verdict(explanation, task, explanation.best(task), NAMES)


def test_what_decides() -> None:
    without_copies = replace(PAIR, members=tuple(replace(each, standby=frozenset()) for each in PAIR.members))
    assert why(without_copies, TASKS[0]).startswith("State: its state is here; anywhere else at least 140 records")
    assert why(PAIR, TASKS[0]) == "It is here: two would do as well, but tasks would move for nothing."
    assert why(replace(PAIR, members=(ONE, TWO, THREE)), TASKS[0]).startswith(
        "It would be better on three, for balance"
    )
    assert why(replace(PAIR, members=(ONE,)), TASKS[0]) == "Nobody else is in the group."
    assert why(replace(PAIR, members=(ONE,)), TASKS[3]) == "Nobody runs it now."
    assert why(replace(PAIR, members=()), TASKS[3]) == "Nobody is in the group."


def test_all_that_there_is_to_say_of_a_task() -> None:
    group = replace(PAIR, standbys=1, rack_tags=("zone",), lags={("p2", TASKS[0]): 20}, acceptable_lag=10)
    members = (
        member("one", {TASKS[0]: Role.ACTIVE}, {}),
        member("two", {TASKS[0]: Role.WARMUP}, {TASKS[0]: Role.ACTIVE}),
    )
    assert sentences(Explanation(group), TASKS[0], NAMES, described(*members)) == [
        "Task count_0 is active on one (zone a), in process p1.",
        "Balance: of the group's 4 tasks of subtopology count, one has 2; the fair share is 2.",
        "Balance: of the group's 4 tasks that keep state, one has 2; the fair share is 2.",
        "Balance: of the group's 8 tasks, one has 4; the fair share is 4.",
        "State: it has 2 state stores, whose changelogs have 70 records. They are here, and nothing is to restore.",
        "State stores: the active tasks of its process have 4 in all; processes have 4.",
        "State elsewhere: p2 would restore 20 records.",
        "Standbys: 1 wanted; on two (zone b), 20 records behind.",
        "Racks: each copy is in a zone of its own.",
        "On its way: the broker has given it to two.",
        "Warm-up: two restores it, 50 records behind, and is to run it then.",
        "State: its state is here; anywhere else at least 20 records would be restored.",
    ]


def test_rows_of_what_would_be() -> None:
    comparison = compare(PAIR, [Add(1, None, {})], {"optimal": optimal})
    columns, metrics = metric_rows(comparison)
    assert columns == ("Metric", "Now", "Then")
    assert [cell.text for cell in metrics["active tasks of a member"]] == ["active tasks of a member", "4", "2 to 3"]
    (outcome,) = comparison.outcomes.values()
    assert {row[2].text for row in move_rows(outcome, NAMES).values()} == {"new-1"}
    rows = member_rows(outcome, comparison.now, NAMES)
    assert [*rows] == ["new-1", "one", "two"]
    assert rows["new-1"][5].text == "–"


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_there_are_words_for_any_group(random: Random) -> None:
    group = random_group(random)
    explanation = Explanation(group)
    tasks = explanation.tasks()
    names = Names({}, group.rack_tags)
    assert [*task_rows("app", explanation, tasks, names)] == [str(task) for task in tasks]
    for task in tasks:
        assert len(sentences(explanation, task, names, described())) >= 2
        assert len(place_rows(explanation, task, names, 2)) <= 2
        assert all(cost_text(each.cost) for each in explanation.alternatives(task))


def test_what_if_as_it_is_filled_in() -> None:
    form = WhatIf.of({"add": "2", "tags": "zone=a", "remove": "m 1", "standbys": "1"})
    assert form.changes == (Remove("m 1"), Add(2, None, {"zone": "a"}), Standbys(1))
    assert form.fields == {"add": "2", "tags": "zone=a", "remove": "m 1", "standbys": "1"}
    assert WhatIf.of({"add": "0", "standbys": ""}).changes == ()


@pytest.mark.parametrize(
    "fields",
    [{"add": "-1"}, {"add": "1001"}, {"add": "2x4"}, {"add": "1", "tags": "zone"}, {"standbys": "x"}],
)
def test_what_if_that_makes_no_sense(fields: dict[str, str]) -> None:
    with pytest.raises(ChoiceError):
        WhatIf.of(fields)
