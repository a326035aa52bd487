"""Tasks and roles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.messages.streams_group_heartbeat import TaskIds
from kohort.streams.tasks import Role, TaskId, by_subtopology, shown, task_ids, tasks_of

ACTIVE, STANDBY, WARMUP = Role


def test_task_ids_as_text() -> None:
    assert str(TaskId("my_part", 3)) == "my_part_3"
    assert TaskId.parse("my_part_3") == TaskId("my_part", 3)
    for text in ("", "3", "_3", "0_", "0_x", "0_-1"):
        with pytest.raises(ValueError, match="is no task"):
            TaskId.parse(text)


def test_tasks_by_subtopology_are_sorted() -> None:
    tasks = [TaskId("b", 2), TaskId("a", 1), TaskId("b", 0)]
    assert list(by_subtopology(tasks).items()) == [("a", (1,)), ("b", (0, 2))]


def test_tasks_for_people() -> None:
    assert shown({}) == "none"
    tasks = {TaskId("0", 2): ACTIVE, TaskId("1", 0): STANDBY, TaskId("0", 1): ACTIVE, TaskId("1", 1): WARMUP}
    assert shown(tasks) == "0_1,0_2 standby:1_0 warm-up:1_1"


def test_a_task_in_several_roles_counts_as_the_first_of_active_standby_and_warm_up() -> None:
    ids = [TaskIds(subtopology_id="0", partitions=(0,))]
    assert tasks_of(ids, ids, ids) == {TaskId("0", 0): ACTIVE}
    assert tasks_of([], ids, ids) == {TaskId("0", 0): STANDBY}


@given(st.dictionaries(st.builds(TaskId, st.sampled_from("ab"), st.integers(0, 9)), st.sampled_from(Role)))
def test_messages_bring_tasks_back(tasks: dict[TaskId, Role]) -> None:
    active, standby, warmup = (task_ids(TaskIds, tasks, role) for role in Role)
    assert tasks_of(active, standby, warmup) == tasks
