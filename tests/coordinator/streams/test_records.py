"""Streams groups in the log: Kafka's records, and what becomes of them whatever the order that compaction leaves."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.step import Step
from kohort.coordinator.streams.member import Endpoint, StreamsMetadata
from kohort.coordinator.streams.records import (
    current_assignment_record,
    member_record,
    metadata_of,
    read_current_assignment,
    target_of,
    target_record,
)
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type
from kohort.protocol.stored.streams_group_current_member_assignment import (
    StreamsGroupCurrentMemberAssignmentValue,
    TaskIds,
)
from kohort.streams.tasks import Role, TaskId
from tests.coordinator.streams.driver import GROUP, App, Driver, joined, reconcile, stateful

ACTIVE, STANDBY, WARMUP = Role

TASKS = {TaskId("a", 2): ACTIVE, TaskId("a", 0): ACTIVE, TaskId("b", 1): STANDBY, TaskId("c", 0): WARMUP}
ASSIGNMENTS = [
    CurrentAssignment(),
    CurrentAssignment(5, 4, MemberState.STABLE, TASKS, {}, {TaskId("a", 0): 3, TaskId("a", 2): 5}),
    CurrentAssignment(
        5,
        4,
        MemberState.UNREVOKED,
        {TaskId("a", 0): STANDBY},
        {TaskId("a", 0): ACTIVE, TaskId("b", 0): WARMUP},
        {TaskId("a", 0): 2},
    ),
    CurrentAssignment(-2, 4, MemberState.UNRELEASED, {TaskId("a", 0): ACTIVE}, {}, {TaskId("a", 0): 0}),
]


def stored(value: Any) -> Any:
    """What a restart reads of a record's value."""
    kind = record_type(OFFSETS_TOPIC, value.__message__.key)
    return kind.decode_value(kind.encode_value(value, 0))[0]


@pytest.mark.parametrize("current", ASSIGNMENTS, ids=str)
def test_a_current_assignment_is_read_as_it_was_written(current: CurrentAssignment[TaskId, Role]) -> None:
    assert read_current_assignment(stored(current_assignment_record("g", "m", current).value)) == current


@pytest.mark.parametrize(
    ("state", "number"), [(MemberState.STABLE, 1), (MemberState.UNREVOKED, 2), (MemberState.UNRELEASED, 3)]
)
def test_states_have_the_numbers_of_kafka(state: MemberState, number: int) -> None:
    value = current_assignment_record("g", "m", CurrentAssignment(2, 1, state)).value
    assert isinstance(value, StreamsGroupCurrentMemberAssignmentValue) and value.state == number


def test_running_tasks_have_epochs_and_copies_have_none() -> None:
    value = stored(current_assignment_record("g", "m", ASSIGNMENTS[1]).value)
    assert [(ids.subtopology_id, ids.partitions, ids.assignment_epochs) for ids in value.active_tasks] == [
        ("a", (0, 2), (3, 5))
    ]
    assert [(ids.subtopology_id, ids.assignment_epochs) for ids in value.standby_tasks] == [("b", ())]


def test_a_record_without_epochs_counts_from_the_members_epoch() -> None:
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=7, state=1, active_tasks=[TaskIds(subtopology_id="a", partitions=(0, 1))]
    )
    assert read_current_assignment(value).assignment_epochs == {TaskId("a", 0): 7, TaskId("a", 1): 7}


def test_a_target_is_read_as_it_was_written() -> None:
    assert target_of(stored(target_record("g", "m", TASKS).value)) == TASKS


@pytest.mark.parametrize(
    "metadata",
    [
        StreamsMetadata(),
        StreamsMetadata("i", "r", "c", "h", 5, 6, "p", Endpoint("host", 65_535), {"zone": "a", "cluster": "b"}),
    ],
    ids=["least", "most"],
)
def test_what_a_member_says_is_read_as_it_was_written(metadata: StreamsMetadata) -> None:
    assert metadata_of(stored(member_record("g", "m", metadata).value)) == metadata


def test_a_join_is_one_batch_of_all_kinds_of_records() -> None:
    driver = Driver()
    App(driver, "m1").join()
    assert driver.kinds == ["23", "19", "17", "21", "20", "22"]


def test_a_departure_removes_what_there_is_of_a_member() -> None:
    driver = Driver()
    joined(driver, ["m1"])[0].leave()
    assert driver.kinds == ["22-", "21-", "19-", "17"]


def test_a_heartbeat_without_news_stores_nothing() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.full()
    assert driver.kinds == []


def test_only_targets_that_change_are_stored() -> None:
    driver = Driver({"in": 4, "plain": 1})
    apps = joined(driver, ["m1", "m2", "m3", "m4"])
    apps[0].beat(rack_id="elsewhere")
    assert driver.kinds == ["19", "17", "20", "22"]


def test_a_replaced_static_member_is_stored_under_its_new_id_alone() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"], instance="i")
    app.leave(-2)
    App(driver, "m2", instance="i", process=app.process).join()
    assert driver.kinds == ["22-", "21-", "19-", "21", "19", "22"]


def a_busy_group() -> Driver:
    driver = Driver({"in": 4, f"{GROUP}-store-0-changelog": 4})
    driver.configure(num_standby_replicas=1)
    first, second = joined(driver, ["m1", "m2"], stateful())
    third = App(driver, "m3", stateful(), instance="i")
    third.join()
    reconcile(first, second, third)
    second.leave()
    first.beat()
    return driver


def test_the_latest_record_of_each_key_tells_all() -> None:
    driver = a_busy_group()
    latest: dict[bytes, bytes | None] = {}
    for key, value in driver.log:
        latest.pop(key, None)
        latest[key] = value
    whole = driver.dump()
    driver.log = [(key, value) for key, value in latest.items() if value is not None]
    assert driver.dump(driver.replayed()) == whole


def test_the_order_of_the_latest_records_makes_no_difference() -> None:
    driver = a_busy_group()
    whole = driver.dump()
    latest = {key: value for key, value in dict(driver.log).items() if value is not None}
    for reverse in (False, True):
        driver.log = sorted(latest.items(), reverse=reverse)
        assert driver.dump(driver.replayed()) == whole


def test_tombstones_of_what_there_never_was_are_passed_over() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.leave()
    driver.perform(Step(driver.shard.streams.delete(GROUP)))
    driver.log = [(key, value) for key, value in driver.log if value is None]
    assert driver.replayed().streams.get(GROUP) is None


def test_a_state_that_a_newer_server_wrote_is_worked_out_anew() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    raw = driver.log[-1]
    kind, key = decode_key(OFFSETS_TOPIC, raw[0])
    assert kind.number == 22 and raw[1] is not None
    value: Any = kind.decode_value(raw[1])[0]
    value.state = 99
    driver.shard.replay(key, value)
    app.beat()
    assert driver.group.members["m1"].current.state is MemberState.STABLE
