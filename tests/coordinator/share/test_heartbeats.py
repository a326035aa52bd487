"""Members of share groups: joining, staying, changing, leaving, and being fenced."""

from __future__ import annotations

import logging

import pytest

from kohort.coordinator.share.settings import ShareSettings
from kohort.coordinator.share.states import GroupState
from kohort.protocol.errors import ErrorCode
from tests.coordinator.share.driver import GROUP, Driver, told


def test_a_member_joins_and_gets_partitions_once_they_are_initialized() -> None:
    driver = Driver(automatic=False)

    joined = driver.beat("m", 0, "a")
    assert (joined.member_id, joined.member_epoch, told(driver, joined)) == ("m", 2, {})
    assert driver.kinds == ["10", "11", "13", "12", "14", "15"]
    waiting = driver.beat("m", 2)
    assert (waiting.member_epoch, waiting.assignment) == (2, None)
    driver.initialize()
    assigned = driver.beat("m", 2)

    assert (assigned.member_epoch, told(driver, assigned)) == (3, {"a": [0, 1, 2]})
    assert driver.group.state is GroupState.STABLE
    again = driver.beat("m", 3)
    assert (again.member_epoch, again.assignment, driver.kinds) == (3, None, [])


def test_members_share_partitions_and_none_waits_for_another() -> None:
    driver = Driver({"a": 1})
    first = driver.settle("m1", "a")
    joined = driver.beat("m2", 0, "a")

    assert told(driver, joined) == {"a": [0]}
    assert driver.assigned("m1") == {"a": [0]}
    assert driver.beat("m1", first).member_epoch == joined.member_epoch


def test_partitions_move_with_the_next_heartbeat() -> None:
    driver = Driver({"a": 4})
    epoch = driver.settle("m1", "a")
    joined = driver.beat("m2", 0, "a")
    moved = driver.beat("m1", epoch)

    mine, others = told(driver, moved), told(driver, joined)
    assert mine is not None and others is not None
    assert sorted(mine["a"] + others["a"]) == [0, 1, 2, 3]
    assert len(mine["a"]) == len(others["a"]) == 2


def test_a_member_that_changes_its_subscription_gets_other_partitions_at_once() -> None:
    driver = Driver()
    epoch = driver.settle("m1", "a", "b")
    driver.settle("m2", "b")

    changed = driver.beat("m1", driver.group.members["m1"].current.epoch, "b")

    assert changed.member_epoch > epoch
    assert set(told(driver, changed) or {}) <= {"b"}
    assert "a" not in driver.assigned("m1")


def test_what_a_heartbeat_leaves_out_stays() -> None:
    driver = Driver()
    epoch = driver.beat("m", 0, "a", rack_id="r").member_epoch
    driver.beat("m", epoch)
    metadata = driver.group.members["m"].metadata
    assert (metadata.topics, metadata.rack_id, metadata.client_id) == (("a",), "r", "client")

    driver.beat("m", driver.group.epoch, rack_id="s")

    metadata = driver.group.members["m"].metadata
    assert (metadata.topics, metadata.rack_id) == (("a",), "s")


def test_a_member_that_leaves_is_gone_and_others_get_its_partitions() -> None:
    driver = Driver({"a": 2})
    epoch = driver.settle("m1", "a")
    driver.beat("m2", 0, "a")

    left = driver.beat("m2", -1)

    assert (left.member_id, left.member_epoch, left.assignment) == ("m2", -1, None)
    assert driver.kinds == ["14-", "13-", "10-", "11"]
    assert driver.fenced == []
    assert told(driver, driver.beat("m1", epoch)) in (None, {"a": [0, 1]})
    assert driver.assigned("m1") == {"a": [0, 1]}


def test_a_group_outlives_its_last_member() -> None:
    driver = Driver()
    driver.settle("m", "a")
    driver.beat("m", -1)

    assert driver.group.state is GroupState.EMPTY
    assert set(driver.group.states.initialized) == {driver.id("a")}


def test_a_member_that_rejoins_is_told_its_assignment() -> None:
    driver = Driver({"a": 1})
    epoch = driver.settle("m", "a")

    again = driver.beat("m", 0, "a")

    assert (again.member_epoch, told(driver, again)) == (epoch, {"a": [0]})


def test_a_member_whose_answer_got_lost_is_told_again() -> None:
    driver = Driver({"a": 1}, automatic=False)
    driver.beat("m", 0, "a")
    driver.initialize()
    driver.beat("m", 2)

    again = driver.beat("m", 2)

    assert (again.member_epoch, told(driver, again)) == (3, {"a": [0]})


def test_epochs_that_are_fenced() -> None:
    driver = Driver()
    epoch = driver.settle("m", "a")
    driver.beat("m", epoch, "a", "b")
    driver.beat("m", driver.group.epoch)
    epoch = driver.group.members["m"].current.epoch

    assert driver.refused("m", epoch + 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.refused("m", epoch - 2) == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("m", epoch - 1).member_epoch == epoch


def test_unknown_groups_and_members() -> None:
    driver = Driver()
    assert driver.refused("m", 1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.refused("m", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    driver.settle("m", "a")
    assert driver.refused("n", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.refused("n", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_of_another_kind_is_not_converted() -> None:
    driver = Driver()
    driver.others.add(GROUP)

    assert driver.refused("m", 0, "a") == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_id": ""},
        {"group_id": " "},
        {"rack_id": ""},
        {"epoch": -2},
        {"epoch": 0, "topics": ()},
    ],
)
def test_requests_that_are_wrong_whatever_the_group(wrong: dict[str, object]) -> None:
    driver = Driver()
    given: dict[str, object] = {"member_id": "m", "epoch": 0, "topics": ("a",), **wrong}
    topics, epoch, member_id = given.pop("topics"), given.pop("epoch"), given.pop("member_id")
    assert isinstance(topics, tuple) and isinstance(epoch, int) and isinstance(member_id, str)

    assert driver.refused(member_id, epoch, *topics, **given) == ErrorCode.INVALID_REQUEST


def test_a_full_group_takes_nobody_else() -> None:
    driver = Driver(settings=ShareSettings(max_size=1, assignment_interval_ms=0))
    epoch = driver.settle("m", "a")

    assert driver.refused("n", 0, "a") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.refused("n", 3) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.beat("m", 0, "a").member_epoch == epoch


def test_a_member_without_heartbeats_is_removed_after_its_session_timeout() -> None:
    driver = Driver({"a": 1}, ShareSettings(session_timeout_ms=1_000, assignment_interval_ms=0))
    epoch = driver.settle("m1", "a")
    driver.beat("m2", 0, "a")
    driver.wait(600)
    driver.beat("m1", epoch)
    driver.wait(600)

    assert driver.fenced == ["m2"]
    assert list(driver.group.members) == ["m1"]
    assert driver.refused("m2", 3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_session_timeouts_start_over_after_a_restart() -> None:
    driver = Driver({"a": 1}, ShareSettings(session_timeout_ms=1_000, assignment_interval_ms=0))
    driver.settle("m", "a")
    driver.wait(900)
    driver.restart()
    driver.wait(900)
    assert list(driver.group.members) == ["m"]
    driver.wait(100)
    assert not driver.group.members


def test_the_heartbeat_interval_is_short_while_the_group_is_moving_and_for_a_while_after() -> None:
    driver = Driver({"a": 2}, automatic=False)
    assert driver.beat("m1", 0, "a").heartbeat_interval_ms == 500
    driver.initialize()
    assert driver.beat("m1", 2).heartbeat_interval_ms == 500
    driver.wait(5_000)
    assert driver.beat("m1", 3).heartbeat_interval_ms == 5_000
    joined = driver.beat("m2", 0, "a")
    assert joined.heartbeat_interval_ms == 500
    driver.wait(5_000)
    assert driver.beat("m2", joined.member_epoch).heartbeat_interval_ms == 500, "the first one doesn't know yet"
    driver.beat("m1", 3)
    assert driver.beat("m2", joined.member_epoch).heartbeat_interval_ms == 5_000


def test_a_short_interval_is_never_longer_than_the_usual_one() -> None:
    driver = Driver(settings=ShareSettings(heartbeat_interval_ms=100), automatic=False)
    assert driver.beat("m", 0, "a").heartbeat_interval_ms == 100


def test_a_heartbeat_that_says_the_same_gets_the_same_answer_until_something_changes() -> None:
    driver = Driver({"a": 1})
    epoch = driver.settle("m", "a")
    driver.wait(7_000)
    first = driver.heartbeat("m", epoch)
    assert driver.heartbeat("m", epoch) is first

    driver.configure(heartbeat_interval_ms=7_000)

    assert driver.beat("m", epoch).heartbeat_interval_ms == 7_000


def test_what_can_not_be_appended_changes_nothing() -> None:
    driver = Driver({"a": 1}, automatic=False)
    driver.failing = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.refused("m", 0, "a") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.groups.get(GROUP) is None
    driver.failing = None
    driver.beat("m", 0, "a")
    driver.initialize()
    driver.failing = ErrorCode.NOT_COORDINATOR

    assert driver.refused("m", 2) == ErrorCode.NOT_COORDINATOR
    assert driver.group.epoch == 2
    assert driver.fenced == []
    driver.failing = None
    assert driver.beat("m", 2).member_epoch == 3


def test_a_new_target_waits_for_the_assignment_interval() -> None:
    driver = Driver({"a": 2}, ShareSettings(assignment_interval_ms=1_000))
    epoch = driver.settle("m1", "a")  # the first partitions don't wait
    assert driver.assigned("m1") == {"a": [0, 1]}
    joined = driver.beat("m2", 0, "a")
    assert (joined.member_epoch, told(driver, joined), joined.heartbeat_interval_ms) == (epoch, {}, 500)
    driver.wait(999)
    assert driver.beat("m2", epoch).member_epoch == epoch
    driver.now += 1  # the time of a heartbeat is its own: a wheel in which no timer is due stands still

    assigned = driver.beat("m2", epoch)

    assert assigned.member_epoch == epoch + 1
    assert told(driver, assigned) is not None


def test_a_topic_that_appears_within_the_interval_takes_one_epoch() -> None:
    driver = Driver({}, ShareSettings(assignment_interval_ms=1_000))
    epoch = driver.settle("m", "later")
    driver.topic("later", 1)

    assert driver.beat("m", epoch).member_epoch == epoch
    assigned = driver.beat("m", epoch)

    assert (assigned.member_epoch, told(driver, assigned)) == (epoch + 1, {"later": [0]})


def test_partitions_of_topics_that_are_gone_go_without_a_new_target() -> None:
    driver = Driver({"a": 1, "b": 1}, ShareSettings(assignment_interval_ms=1_000))
    epoch = driver.settle("m", "a", "b")
    driver.delete_topic("a")

    without = driver.beat("m", epoch)

    assert (without.member_epoch, told(driver, without)) == (epoch, {"b": [0]})
    driver.wait(1_000)
    assert driver.beat("m", epoch).member_epoch == epoch + 1


def test_partitions_that_a_member_does_not_subscribe_to_any_longer_go_without_a_new_target() -> None:
    driver = Driver({"a": 1, "b": 1}, ShareSettings(assignment_interval_ms=1_000))
    epoch = driver.settle("m", "a", "b")

    without = driver.beat("m", epoch, "b")

    assert (without.member_epoch, told(driver, without)) == (epoch, {"b": [0]})


def test_log_lines_say_who_comes_and_goes_and_from_where(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    driver = Driver()
    epoch = driver.settle("m", "a")
    assert "member joins group=g member=m instance=None client=client host=10.0.0.1" in caplog.messages
    assert any(line.startswith("epoch bumped") and "because=member m joined" in line for line in caplog.messages)
    driver.beat("m", epoch, "b")
    assert any("because=member m subscribes to other topics" in line for line in caplog.messages)
    driver.beat("m", -1)
    assert "member removed group=g member=m client=client host=10.0.0.1 because=it left" in caplog.messages
