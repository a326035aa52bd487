"""Administrators' requests for the offsets of share groups: altered, deleted, and deleted with the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kohort.coordinator.share import offset_requests
from kohort.coordinator.share.offset_requests import Alteration, Deletion
from kohort.coordinator.step import Reply, Step
from kohort.protocol.errors import ErrorCode
from tests.coordinator.share.driver import GROUP, Driver


def alter(driver: Driver, offsets: dict[str, dict[int, int]]) -> Alteration:
    found: Alteration = driver.run(offset_requests.alter, driver.groups, GROUP, offsets, driver.now)
    return found


def delete(driver: Driver, *names: str) -> Deletion:
    found: Deletion = driver.run(offset_requests.delete, driver.groups, GROUP, names)
    return found


def delete_all(driver: Driver) -> Deletion:
    found: Deletion = driver.run(offset_requests.delete_all, driver.groups, GROUP)
    return found


def with_empty_group() -> Driver:
    driver = Driver()
    driver.settle("m", "a", "b")
    driver.beat("m", -1)
    return driver


def codes(alteration: Alteration) -> dict[str, list[tuple[int, int]]]:
    return {
        each.topic_name: [(place.partition_index, place.error_code) for place in each.partitions]
        for each in alteration.response.responses
    }


def test_altered_offsets_are_initialized_in_the_groups_epoch() -> None:
    driver = with_empty_group()

    altered = alter(driver, {"a": {0: 7, 2: -1}})

    assert altered.response.error_code == ErrorCode.NONE
    assert codes(altered) == {"a": [(0, 0), (2, 0)]}
    assert [each.topic_id for each in altered.response.responses] == [driver.id("a")]
    assert altered.initialization is not None
    assert altered.initialization.start_offsets == {driver.id("a"): {0: 7, 2: -1}}
    assert altered.initialization.state_epoch == driver.group.epoch
    assert sorted(driver.group.states.initializing[driver.id("a")].partitions) == [0, 2]
    assert sorted(driver.group.states.initialized[driver.id("a")].partitions) == [0, 1, 2]


def test_altering_makes_a_group_that_is_not_there() -> None:
    driver = Driver()

    altered = alter(driver, {"a": {1: 5}})

    assert altered.initialization is not None and altered.initialization.state_epoch == 1
    assert driver.kinds == ["15"]
    driver.restart()
    assert not driver.group.members
    assert [each.group_id for each in driver.groups.listed(["empty"])] == [GROUP]


def test_partitions_that_can_not_be_altered_have_errors_of_their_own() -> None:
    driver = with_empty_group()

    altered = alter(driver, {"a": {0: 1, 3: 1, -1: 1, 1: -2}, "absent": {0: 1}})

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(altered) == {
        "a": [(0, 0), (3, unknown), (-1, unknown), (1, ErrorCode.INVALID_REQUEST)],
        "absent": [(0, unknown)],
    }
    assert altered.initialization is not None
    assert altered.initialization.start_offsets == {driver.id("a"): {0: 1}}


def test_nothing_to_alter() -> None:
    driver = Driver()

    altered = alter(driver, {"absent": {0: 1}})

    assert altered.initialization is None
    assert driver.groups.get(GROUP) is None


def test_offsets_of_topics_are_deleted_and_then_forgotten() -> None:
    driver = with_empty_group()

    deletion = delete(driver, "a", "absent", "a")

    assert deletion.error_code == ErrorCode.NONE
    assert deletion.names == {driver.id("a"): "a"}
    assert deletion.partitions == {driver.id("a"): [0, 1, 2]}
    assert [(each.topic_name, each.error_code) for each in deletion.refused] == [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]
    assert dict(driver.group.states.deleting) == {driver.id("a"): "a"}
    assert list(driver.group.states.initialized) == [driver.id("b")]
    again = delete(driver, "a")
    assert list(again.partitions[driver.id("a")]) == [0, 1, 2]

    assert driver.run(offset_requests.deleted, driver.groups, GROUP, [driver.id("a")]) == ErrorCode.NONE

    assert not driver.group.states.deleting
    assert [each.error_message for each in delete(driver, "a").refused] == ["There is no offset information to delete."]


def test_what_is_subscribed_to_again_is_not_deleted_any_longer() -> None:
    driver = with_empty_group()
    delete(driver, "a")

    driver.settle("m", "a")

    assert not driver.group.states.deleting
    assert driver.assigned() == {"a": [0, 1, 2]}


def test_all_states_go_before_the_group() -> None:
    driver = with_empty_group()
    delete(driver, "b")

    deletion = delete_all(driver)

    assert {name: sorted(deletion.partitions[topic_id]) for topic_id, name in deletion.names.items()} == {
        "a": [0, 1, 2],
        "b": [0, 1],
    }
    assert not driver.group.states.initialized
    assert driver.groups.check_delete(GROUP) == ErrorCode.NONE
    kinds = [key.__message__.key for key, _ in driver.groups.delete(GROUP)]
    assert kinds == [12, 15, 11]


def test_a_group_without_states_has_nothing_to_delete() -> None:
    driver = Driver()
    driver.settle("m", "absent")
    driver.beat("m", -1)

    deletion = delete_all(driver)

    assert (deletion.error_code, deletion.partitions) == (ErrorCode.NONE, {})


BEGIN: dict[str, Callable[..., Step]] = {
    "alter": lambda groups, reply: offset_requests.alter(groups, GROUP, {"a": {0: 1}}, 0, reply),
    "delete": lambda groups, reply: offset_requests.delete(groups, GROUP, ["a"], reply),
    "delete all": lambda groups, reply: offset_requests.delete_all(groups, GROUP, reply),
}
begin_each = pytest.mark.parametrize("begin", BEGIN.values(), ids=BEGIN)


def code(answer: Any) -> int:
    return answer.response.error_code if isinstance(answer, Alteration) else answer.error_code


@begin_each
def test_a_group_with_members_is_left_alone(begin: Callable[[Any, Reply], Step]) -> None:
    driver = Driver()
    driver.settle("m", "a")

    assert code(driver.run(begin, driver.groups)) == ErrorCode.NON_EMPTY_GROUP
    assert driver.kinds == []


@begin_each
def test_what_can_not_be_appended_changes_nothing(begin: Callable[[Any, Reply], Step]) -> None:
    driver = with_empty_group()
    before = driver.group.states
    driver.failing = ErrorCode.COORDINATOR_NOT_AVAILABLE

    assert code(driver.run(begin, driver.groups)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.group.states == before


@pytest.mark.parametrize("begin", [BEGIN["delete"], BEGIN["delete all"]])
def test_unknown_groups_have_nothing_to_delete(begin: Callable[[Any, Reply], Step]) -> None:
    driver = Driver()

    assert code(driver.run(begin, driver.groups)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.run(offset_requests.deleted, driver.groups, GROUP, []) == ErrorCode.NONE


def test_a_group_of_another_kind_is_not_altered() -> None:
    driver = Driver()
    driver.others.add(GROUP)

    assert code(alter(driver, {"a": {0: 1}})) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_that_joins_before_the_altered_offsets_are_there_does_not_begin_them_again() -> None:
    driver = Driver(automatic=False)
    assert alter(driver, {"a": {0: 7}}).initialization is not None
    driver.now += 1

    asked = driver.heartbeat("m", 0, "a").initialization

    assert asked is not None and asked.start_offsets == {driver.id("a"): {1: -1, 2: -1}}


def test_nothing_waits_for_altered_offsets_whose_answer_a_crash_lost() -> None:
    driver = with_empty_group()
    alter(driver, {"a": {0: 7}})
    driver.restart()
    epoch = driver.settle("m", "a", "b")
    driver.now += 120_000

    response = driver.beat("m", epoch)

    assert response.heartbeat_interval_ms == driver.settings.heartbeat_interval_ms
    assert driver.heartbeat("m", epoch).initialization is None
    assert "m" in driver.group.cached_results


def test_a_topic_that_was_deleted_before_its_states_were_initialized_does_not_come_back() -> None:
    driver = Driver(automatic=False)
    driver.heartbeat("m", 0, "a")
    driver.delete_topic("a")
    driver.initialize()
    assert not driver.group.states.known()
