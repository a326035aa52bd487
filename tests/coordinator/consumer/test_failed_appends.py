"""Records that can't be appended leave a group exactly as it was: its soft state and its timers as well."""

from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from tests.coordinator.consumer.driver import Driver, Reader, joined

ERROR = ErrorCode.NOT_ENOUGH_REPLICAS


def timeouts(driver: Driver) -> object:
    timers = driver.shard.consumer._timers._timers
    return {key: (timer.last_heartbeat, timer.rebalance_deadline, timer.waiting) for key, timer in timers.items()}


@pytest.fixture
def driver() -> Driver:
    return Driver({"in": 4, "other": 1})


def test_a_join_that_fails_changes_nothing_and_can_be_repeated(driver: Driver) -> None:
    driver.append_error = ERROR
    reader = Reader(driver, "a").join()
    assert reader.error == "COORDINATOR_NOT_AVAILABLE"
    assert driver.shard.list_groups() == []
    driver.append_error = None
    assert reader.join().error == "NONE"


@pytest.mark.parametrize("move", ["join", "subscribe", "revoke", "leave", "leave for a while"])
def test_a_heartbeat_that_fails_changes_nothing(driver: Driver, move: str) -> None:
    (first,) = joined(driver, "a", instance="i")
    if move == "revoke":
        Reader(driver, "b").join()
    before = driver.dump(), driver.group.soft, timeouts(driver)
    driver.append_error = ERROR
    if move == "join":
        Reader(driver, "c").join()
    elif move == "subscribe":
        first.beat(subscribed_topic_names=("other",))
    elif move == "revoke":
        first.beat()
    else:
        first.leave(-1 if move == "leave" else -2)
    assert (driver.dump(), driver.group.soft, timeouts(driver)) == before


def test_a_member_whose_removal_fails_is_removed_a_little_later(driver: Driver) -> None:
    joined(driver, "a")
    driver.append_error = ERROR
    driver.sleep(45_000)
    driver.append_error = None
    assert "a" in driver.group.members
    driver.sleep(10_000)
    assert driver.state() == "Empty"


def test_a_change_of_topics_that_fails_is_noticed_by_the_next_heartbeat(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    driver.append_error = ERROR
    driver.topic("in", 6)
    driver.append_error = None
    assert len(reader.beat().owned) == 6
