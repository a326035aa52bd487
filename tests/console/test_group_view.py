"""What a group's page says of a rebalance: whom the group waits for, what has happened, what isn't committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupType
from kohort.client.types import TopicPartition
from kohort.console.group_events import GroupEvents
from kohort.console.group_page import FIRST_ROWS, GroupReport, group_view, headings
from kohort.console.history import History
from kohort.console.live import View
from kohort.console.partition_lags import MOST_LINES, PartitionLags
from kohort.console.trend import trend
from kohort.streams.tasks import Role
from tests.console.test_group_events import group
from tests.console.test_placement_words import TASKS, described, member

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def shown(report: GroupReport, events: GroupEvents | None = None, lags: PartitionLags | None = None) -> View:
    view = group_view(report, History(), trend([]), events=events, lags=lags)
    for each in headings(report.group.type):
        assert all(len(cells) == len(each.columns) for cells in view.tables[each.name].rows.values())
    return view


def test_whom_a_group_waits_for_stands_under_its_head_and_in_its_row() -> None:
    preparing = group("PreparingRebalance", ann=[0], dan=[1])
    ann, dan = preparing.members
    view = shown(GroupReport(replace(preparing, members=(replace(ann, has_metadata=True), dan)), {}))
    assert view.texts["awaited"].startswith("Waiting for dan to join again: ")
    assert (view.texts["state"], view.texts["state_tone"]) == ("PreparingRebalance", "warn")
    names = {key: cells[0] for key, cells in view.tables["members"].rows.items()}
    assert (names["ann"].text, names["ann"].tone) == ("ann", "")
    assert (names["dan"].text, names["dan"].tone) == ("dan – waited for: has to join again", "warn")
    stable = shown(GroupReport(group("Stable", ann=[0]), {}))
    assert (stable.texts["awaited"], stable.texts["state_tone"]) == ("", "good")


@pytest.mark.parametrize(("role", "left"), [(Role.ACTIVE, "50"), (Role.WARMUP, "50"), (Role.STANDBY, "0"), (None, "0")])
def test_what_is_to_restore_is_of_tasks_that_are_to_run(role: Role | None, left: str) -> None:
    """A standby always follows; and state on the disk may be of a task that another member has."""
    view = shown(GroupReport(described(member("one", {} if role is None else {TASKS[0]: role}, {})), {}))
    (row,) = view.tables["members"].rows.values()
    assert row[-1].text == left


def test_records_of_partitions_without_a_commit_are_told() -> None:
    lag = {P0: PartitionLag(5, 9, 4), P1: PartitionLag(None, 30, None, first=10)}
    view = shown(GroupReport(group("Stable", ann=[0, 1]), lag))
    assert [[cell.text for cell in row] for row in view.tables["partitions"].rows.values()] == [
        ["t-0", "5", "9", "4", "–", "–", "ann"],
        ["t-1", "–", "30", "–", "–", "20", "ann"],
    ]
    assert view.texts["partitions_note"] == (
        "1 partition without a commit has 20 records: members with auto.offset.reset=earliest read them, "
        "others begin at the end."
    )
    assert shown(GroupReport(group("Stable"), {P0: lag[P0]})).texts["partitions_note"] == ""
    share = replace(group("Stable"), type=GroupType.SHARE)
    assert "partitions" in shown(GroupReport(share, {P0: lag[P0]})).tables


def test_what_has_happened_stands_there_the_last_first() -> None:
    events = GroupEvents()
    for at, each in enumerate((group("Stable", ann=[0], dan=[1]), group("Stable", ann=[0, 1]))):
        events.looked(at, 1_700_000_000_000, each)
    view = shown(GroupReport(group("Stable", ann=[0, 1]), {}), events)
    assert [[cell.text for cell in row] for row in view.tables["events"].rows.values()] == [
        ["2023-11-14 22:13:20.000 UTC", "1 partition moved to another member"],
        ["2023-11-14 22:13:20.000 UTC", "Members went: dan"],
    ]


def test_of_what_has_happened_ten_rows_are_seen_at_once() -> None:
    events = GroupEvents()
    for at in range(16):
        events.looked(at, at, group("Stable" if at % 2 else "Assigning"))
    tables = shown(GroupReport(group("Stable"), {}), events).tables
    assert [*tables["events"].rows, *tables["events_before"].rows] == [str(number) for number in range(15, 0, -1)]
    assert len(tables["events"].rows) == FIRST_ROWS


def test_partitions_that_lag_most_have_a_line() -> None:
    lag = {TopicPartition("t", at): PartitionLag(0, 10 * at, 10 * at) for at in range(MOST_LINES + 1)}
    lags = PartitionLags()
    lags.looked(0.0, dict.fromkeys(lag, 5))
    lags.looked(90.0, GroupReport(group("Stable"), lag).lags)
    view = shown(GroupReport(group("Stable"), lag), lags=lags)
    cells = [row[4] for row in view.tables["partitions"].rows.values()]
    assert (cells[0].text, cells[0].line) == ("–", "")
    assert (cells[-1].text, cells[-1].line) == ("+195 in 1 min 20 s", "78,20 90,0")
    assert view.texts["partitions_note"] == "Drawn are the 20 that lag most."
    assert shown(GroupReport(group("Stable"), {P0: lag[P0]}), lags=lags).texts["partitions_note"] == ""
