"""Which member had which task when, and the time line that shows it."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.administration.group_types import GroupDescription
from kohort.console import task_times
from kohort.console.task_times import TaskTimes
from kohort.console.timeline import COLOURS, LEFT, RIGHT, ROWS, WIDTH, timeline_texts
from kohort.streams.tasks import Role, TaskId
from tests.console.test_placement_words import described, member

TASKS = [TaskId("0", partition) for partition in range(3)]
A, B = TASKS[:2]
HELD = st.dictionaries(
    st.sampled_from(["one", "two", "three"]), st.dictionaries(st.sampled_from(TASKS), st.sampled_from(list(Role)))
)


def group(held: dict[str, dict[TaskId, Role]]) -> GroupDescription:
    return described(*(member(name, tasks, {}) for name, tasks in held.items()))


def test_a_task_that_moves() -> None:
    times = TaskTimes()
    times.looked(1.0, 1000, group({"one": {A: Role.ACTIVE, B: Role.ACTIVE}}))
    times.looked(3.0, 3000, group({"one": {A: Role.ACTIVE}, "two": {B: Role.WARMUP}}))
    times.looked(5.0, 5000, group({"one": {A: Role.ACTIVE}, "two": {B: Role.ACTIVE}}))
    times.looked(5.0, 5001, group({}))  # no newer
    assert [(span.task, span.member, span.role, span.begin, span.end) for span in times.spans(0.0)] == [
        (A, "one", Role.ACTIVE, 1.0, 5.0),
        (B, "one", Role.ACTIVE, 1.0, 3.0),
        (B, "two", Role.WARMUP, 3.0, 5.0),
        (B, "two", Role.ACTIVE, 5.0, 5.0),
    ]
    assert [tuple(move) for move in times.moves] == [(1, 3000, B, "one", None), (2, 5000, B, None, "two")]
    texts = timeline_texts(times, {"one": "instance-1"})
    assert (texts["timeline task 0"], texts["timeline owner 0"]) == ("0_0", "instance-1")
    assert (texts["timeline task 1"], texts["timeline owner 1"]) == ("0_1", "two")
    assert (texts["timeline name 0"], texts["timeline name 1"]) == ("instance-1", "two")
    assert texts["timeline active 0"].count("M") == 2
    assert texts["timeline warm-up 1"].count("M") == 1
    assert texts["timeline_text"].startswith("2 tasks in the last 4 s:")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 10), HELD), max_size=12))
def test_whatever_is_seen_spans_follow_each_other(looks: list[tuple[float, dict[str, dict[TaskId, Role]]]]) -> None:
    times = TaskTimes()
    at = 0.0
    keys = timeline_texts(times, {}).keys()
    for after, held in looks:
        at += after
        taken = times.last is None or at > times.last
        times.looked(at, int(at * 1000), group(held))
        spans = times.spans(0.0)
        by_owner = defaultdict(list)
        for span in spans:
            assert span.begin <= span.end <= at
            by_owner[span.task, span.member].append(span)
        assert all(one.end <= other.begin for some in by_owner.values() for one, other in pairwise(some))
        texts = timeline_texts(times, {})
        assert texts.keys() == keys
        for name, path in texts.items():
            if name.startswith("timeline active"):
                for x, width in re.findall(r"M([0-9.]+),[0-9]+h([0-9.]+)", path):
                    assert float(x) >= LEFT
                    assert float(x) + float(width) <= WIDTH - RIGHT + 1.2
        if taken:
            assert {task for tasks in held.values() for task, role in tasks.items() if role is Role.ACTIVE} == {
                *times.owners
            }


def test_memory_is_bounded() -> None:
    times = TaskTimes()
    many = {TaskId("0", partition): Role.ACTIVE for partition in range(2 * task_times.MOST_OPEN)}
    for look in range(4):
        times.looked(float(look), look, group({f"m{look}": many}))
    assert len(times.spans(-1.0)) <= task_times.MOST_OPEN + task_times.MOST_SPANS
    assert len(times.moves) == task_times.MOST_MOVES
    texts = timeline_texts(times, {})
    assert f"{ROWS} of " in texts["timeline_text"]
    assert sum(bool(texts[f"timeline name {colour}"]) for colour in range(COLOURS)) == 2
