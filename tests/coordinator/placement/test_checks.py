from __future__ import annotations

import pytest

from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId, check

TASK = TaskId("s", 0)


def test_a_group_that_makes_sense_passes() -> None:
    gone = frozenset({TaskId("gone", 7)})
    check(
        Group(
            (SubtopologyTasks("s", 1, 1),),
            (Member("m", "p", {"zone": "a"}, gone, gone),),
            1,
            ("zone",),
            {("gone", TASK): 1},
        )
    )


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (Group((SubtopologyTasks("s", 1), SubtopologyTasks("s", 2)), ()), "subtopologies: 's' is there twice"),
        (Group((SubtopologyTasks("s", -1),), ()), "subtopologies['s'].partitions: -1 is negative"),
        (Group((SubtopologyTasks("s", 1, -2),), ()), "subtopologies['s'].state_stores: -2 is negative"),
        (Group((SubtopologyTasks("", 1),), ()), "subtopologies: a name is empty"),
        (Group((), (Member("m"), Member("m"))), "members: 'm' is there twice"),
        (Group((), (Member(""),)), "members: a name is empty"),
        (Group((), (), -1), "standbys: -1 is negative"),
        (Group((), (), 0, ("zone", "zone")), "rack_tags: 'zone' is there twice"),
        (Group((), (), lags={("p", TASK): -1}), "lags['p', s_0]: -1 is negative"),
        (Group((), (), ends={TASK: -3}), "ends[s_0]: -3 is negative"),
        (Group((), (), acceptable_lag=-1), "acceptable_lag: -1 is negative"),
    ],
)
def test_the_field_that_makes_no_sense_is_named(group: Group, message: str) -> None:
    with pytest.raises(ValueError) as error:
        check(group)
    assert str(error.value) == message
