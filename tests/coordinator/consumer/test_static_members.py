"""Static members of consumer groups (KIP-345): they leave for a while, and come back with what they had."""

from __future__ import annotations

import pytest

from tests.coordinator.consumer.driver import Driver, Reader, reconcile


@pytest.fixture
def driver() -> Driver:
    return Driver()


def pair(driver: Driver) -> tuple[Reader, Reader]:
    first, second = (Reader(driver, name, instance=f"i-{name}").join() for name in "ab")
    reconcile(driver, first, second)
    return first, second


@pytest.mark.parametrize("new_id", ["a", "a2"])
def test_one_that_is_back_gets_its_partitions_and_nothing_moves(driver: Driver, new_id: str) -> None:
    first, second = pair(driver)
    epoch, owned = driver.group.epoch, first.owned
    assert first.leave(-2).epoch == -2
    second.beat()
    back = Reader(driver, new_id, instance="i-a").join()
    assert (back.error, back.owned, driver.group.epoch) == ("NONE", owned, epoch)
    assert driver.state() == "Stable"
    assert set(driver.group.members) == {new_id, "b"}


def test_one_that_is_away_does_not_make_the_others_hurry(driver: Driver) -> None:
    first, second = pair(driver)
    driver.sleep(5_000)
    first.leave(-2)
    assert second.send().interval == 5_000


def test_one_that_stays_away_is_removed(driver: Driver) -> None:
    first, second = pair(driver)
    first.leave(-2)
    for _ in range(9):
        driver.sleep(5_000)
        second.beat()
    assert set(driver.group.members) == {"b"}
    assert len(second.beat().owned) == 4


def test_an_instance_that_is_there_is_not_given_away(driver: Driver) -> None:
    pair(driver)
    assert Reader(driver, "z", instance="i-a").join().error == "UNRELEASED_INSTANCE_ID"


def test_the_one_that_was_replaced_is_fenced(driver: Driver) -> None:
    first, _ = pair(driver)
    epoch = first.epoch
    first.leave(-2)
    Reader(driver, "a2", instance="i-a").join()
    assert first.send(member_epoch=epoch).error == "FENCED_INSTANCE_ID"
    assert first.leave().error == "FENCED_INSTANCE_ID"
    first.instance = "unheard"
    assert first.send(member_epoch=epoch).error == "UNKNOWN_MEMBER_ID"


def test_one_that_comes_back_with_other_topics_gets_those() -> None:
    driver = Driver({"in": 2, "other": 2})
    reader = Reader(driver, "a", instance="i").join()
    reader.leave(-2)
    back = Reader(driver, "a2", "other", instance="i").join()
    reconcile(driver, back)
    assert back.owned == ["other-0", "other-1"]


def test_one_that_comes_back_with_names_has_its_pattern_no_longer() -> None:
    driver = Driver({"in": 2, "other": 2})
    reader = Reader(driver, "a", regex="in", instance="i").join()
    driver.resolve()
    reader.beat()
    reader.leave(-2)
    back = Reader(driver, "a2", "other", instance="i").join()
    reconcile(driver, back)
    assert back.owned == ["other-0", "other-1"]


def test_one_that_leaves_for_good_is_gone(driver: Driver) -> None:
    first, second = pair(driver)
    first.leave()
    assert len(second.beat().owned) == 4


def test_a_full_group_lets_them_come_back() -> None:
    driver = Driver()
    first, _ = pair(driver)
    driver.configure(max_size=2)
    first.leave(-2)
    assert Reader(driver, "a2", instance="i-a").join().error == "NONE"
