from __future__ import annotations

import pytest

from kohort.streams.task_offsets import TaskOffsets, records_left
from kohort.streams.tasks import TaskId

T = TaskId("0", 0)
T1 = TaskId("0", 1)


def nobody(member: str, task: TaskId) -> bool:
    del member, task
    return False


def everybody(member: str, task: TaskId) -> bool:
    del member, task
    return True


def test_the_lag_is_what_is_missing_to_the_largest_end_that_anybody_reports() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70}, {T: 80})
    offsets = offsets.report("b", "q", {}, {T: 100})
    assert offsets.lag(T, "p", nobody) == 30
    assert offsets.ends[T] == 100


def test_who_tails_a_changelog_knows_its_end() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70}, {T: 80})
    offsets = offsets.report("b", "q", {}, {T: 100})
    assert offsets.lag(T, "p", everybody) == 10


def test_what_nobody_reports_isnt_known() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70}, {})
    assert offsets.lag(T, "p", everybody) is None
    assert offsets.lag(T1, "p", everybody) is None
    assert offsets.lag(T, "q", everybody) is None
    assert T not in offsets.ends


def test_a_process_lags_as_little_as_the_furthest_of_its_members() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70}, {T: 100})
    offsets = offsets.report("b", "p", {T: 90}, {})
    assert offsets.lag(T, "p", nobody) == 10


@pytest.mark.parametrize(("offset", "lag"), [(-2, 0), (-1, None), (-4, None), (2**63 - 1, None), (0, 100), (120, 0)])
def test_offsets_that_are_none(offset: int, lag: int | None) -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: offset}, {T: 100})
    assert offsets.lag(T, "p", nobody) == lag


@pytest.mark.parametrize("end", [-1, -2, 2**63 - 1])
def test_ends_that_are_none(end: int) -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 5}, {T: end})
    assert T not in offsets.ends


def test_a_report_replaces_the_one_before() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70, T1: 5}, {T: 100, T1: 9})
    offsets = offsets.report("a", "p", {T: 80}, {T: 100})
    assert offsets.lags(nobody) == {("p", T): 20}
    assert offsets.ends == {T: 100}


def test_what_a_report_leaves_out_is_as_before() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70}, {T: 100})
    offsets = offsets.report("a", "p", {T: 90}, None)
    assert offsets.lags(nobody) == {("p", T): 10}
    offsets = offsets.report("a", "p", None, {T: 120})
    assert offsets.lags(nobody) == {("p", T): 30}


def test_a_member_that_says_nothing_doesnt_report() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", None, None)
    offsets = offsets.report("b", "p", {}, {})
    assert not offsets.reports("a")
    assert offsets.reports("b")


def test_a_member_that_leaves_is_forgotten() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70}, {T: 100})
    offsets = offsets.report("b", "q", {T: 50}, None)
    offsets = offsets.forget("a")
    assert not offsets.reports("a")
    assert offsets.lags(nobody) == {}
    assert offsets.ends == {}
    offsets = offsets.forget("b")
    offsets = offsets.forget("b")


def test_all_lags_and_ends_are_by_process_and_task() -> None:
    offsets = TaskOffsets()
    offsets = offsets.report("a", "p", {T: 70, T1: -2}, {T: 100})
    offsets = offsets.report("b", "q", {T: 50}, {})
    assert offsets.lags(nobody) == {("p", T): 30, ("p", T1): 0, ("q", T): 50}
    assert offsets.ends == {T: 100}


@pytest.mark.parametrize(
    ("offset", "end", "left"),
    [(20, 70, 50), (70, 70, 0), (80, 70, 0), (-2, 70, 0), (-2, None, 0), (-1, 70, None), (20, None, None)],
)
def test_what_a_copy_has_yet_to_restore(offset: int, end: int | None, left: int | None) -> None:
    assert records_left(offset, end) == left
