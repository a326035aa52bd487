"""Subscriptions by regular expression: resolved apart from heartbeats, as far as the client may describe topics."""

from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from tests.coordinator.consumer.driver import CLIENT, Driver, Reader, reconcile


@pytest.fixture
def driver() -> Driver:
    return Driver({"orders": 2, "people": 1, "secret-orders": 1})


def test_topics_come_when_they_are_resolved(driver: Driver) -> None:
    reader = Reader(driver, "a", regex=".*orders").join()
    assert (reader.error, reader.owned, reader.interval) == ("NONE", [], 500)
    assert [(job.regexes, job.client) for job in driver.jobs] == [((".*orders",), CLIENT)]
    reader.beat()
    assert len(driver.jobs) == 1, "there is one job at a time"
    driver.resolve()
    assert driver.kinds == ["16", "3", "7", "6"]
    assert reader.beat().owned == ["orders-0", "orders-1"]
    driver.sleep(5_000)
    assert reader.send().interval == 5_000


@pytest.mark.parametrize("regex", ["(", "a(?=b)", r"(a)\1"])
def test_what_re2_does_not_take(driver: Driver, regex: str) -> None:
    reader = Reader(driver, "a", regex=regex).join()
    assert reader.error == "INVALID_REGULAR_EXPRESSION"
    assert driver.log == []


def test_an_empty_one_is_none(driver: Driver) -> None:
    assert Reader(driver, "a", regex="").join().error == "NONE"
    assert driver.jobs == []


def test_names_and_a_regular_expression_together(driver: Driver) -> None:
    reader = Reader(driver, "a", "people", regex="orders").join()
    assert reader.owned == ["people-0"]
    driver.resolve()
    assert sorted(reader.beat().owned) == ["orders-0", "orders-1", "people-0"]


def test_one_that_is_resolved_is_not_resolved_for_the_next_member(driver: Driver) -> None:
    first = Reader(driver, "a", regex="orders").join()
    driver.resolve()
    second = Reader(driver, "b", regex="orders").join()
    assert driver.jobs == []
    reconcile(driver, first, second)
    assert sorted(first.owned + second.owned) == ["orders-0", "orders-1"]


def test_the_next_new_one_waits_ten_seconds(driver: Driver) -> None:
    first = Reader(driver, "a", regex="orders").join()
    driver.resolve()
    second = Reader(driver, "b", regex="people").join()
    driver.sleep(9_000)
    assert driver.jobs == []
    driver.sleep(1_100)
    assert driver.jobs[0].regexes == ("orders", "people")
    driver.resolve()
    reconcile(driver, first, second)
    assert second.owned == ["people-0"]


def test_new_topics_are_found_without_a_heartbeat(driver: Driver) -> None:
    reader = Reader(driver, "a", regex=".*orders").join()
    driver.resolve()
    driver.sleep(11_000)
    reader.beat()
    driver.topic("new-orders", 1)
    driver.resolve()
    assert "new-orders-0" in reader.beat().owned


def test_new_topics_within_ten_seconds_are_found_after_that(driver: Driver) -> None:
    reader = Reader(driver, "a", regex=".*orders").join()
    driver.resolve()
    driver.topic("new-orders", 1)
    assert driver.jobs == []
    driver.sleep(10_100)
    driver.resolve()
    assert "new-orders-0" in reader.beat().owned


def test_all_are_resolved_again_after_the_refresh_interval(driver: Driver) -> None:
    driver.configure(regex_refresh_interval_ms=20_000)
    Reader(driver, "a", regex="orders").join()
    driver.resolve()
    driver.sleep(19_000)
    assert driver.jobs == []
    driver.sleep(1_100)
    epoch = driver.group.epoch
    driver.resolve()
    assert (driver.kinds, driver.group.epoch) == (["16"], epoch)


def test_one_that_nobody_has_any_longer_is_removed(driver: Driver) -> None:
    first, second = Reader(driver, "a", regex="orders").join(), Reader(driver, "b", "people").join()
    driver.resolve()
    first.beat(subscribed_topic_regex="")
    assert "16-" in driver.kinds
    assert driver.group.regexes == {}
    reconcile(driver, first, second)
    assert first.owned == []


def test_one_whose_last_member_left_is_removed(driver: Driver) -> None:
    reader = Reader(driver, "a", regex="orders").join()
    driver.resolve()
    reader.leave()
    assert driver.group.regexes == {}


def test_what_is_resolved_when_nobody_wants_it_is_dropped(driver: Driver) -> None:
    first = Reader(driver, "a", regex="orders").join()
    Reader(driver, "b", "people").join()
    first.leave()
    driver.resolve()
    assert driver.group.regexes == {}


def test_after_a_failure_it_is_tried_again(driver: Driver) -> None:
    Reader(driver, "a", regex="orders").join()
    driver.resolve(fails=True)
    driver.sleep(10_100)
    driver.resolve()
    assert driver.group.regexes["orders"].topics == ("orders",)


def test_what_could_not_be_stored_is_resolved_again(driver: Driver) -> None:
    reader = Reader(driver, "a", regex="orders").join()
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.resolve()
    driver.append_error = None
    reader.beat()
    driver.resolve()
    assert reader.beat().owned == ["orders-0", "orders-1"]


def test_after_a_restart_the_first_heartbeat_has_them_resolved_again(driver: Driver) -> None:
    reader = Reader(driver, "a", regex=".*orders").join()
    driver.resolve()
    reader.beat()
    driver.sleep(11_000)
    driver.cluster.topics["more-orders"] = 1
    driver.restart()
    reader.beat()
    driver.resolve()
    assert "more-orders-0" in reader.beat().owned


def test_a_job_of_a_group_that_is_gone_is_dropped(driver: Driver) -> None:
    reader = Reader(driver, "a", regex="orders").join()
    reader.leave()
    driver.perform(driver.shard.delete_groups(["readers"], lambda results: None))
    driver.resolve()
    assert driver.shard.list_groups() == []


def test_a_topic_that_comes_while_they_are_resolved_is_found_after_that(driver: Driver) -> None:
    reader = Reader(driver, "a", regex=".*orders").join()
    job = driver.jobs.pop()
    driver.topic("new-orders", 1)
    driver.perform(driver.shard.consumer.resolved(job, {".*orders": ("orders",)}))
    reader.beat()
    driver.sleep(11_000)
    driver.resolve()
    assert "new-orders-0" in reader.beat().owned


def test_what_a_member_gives_up_for_one_that_matches_nothing_goes_to_others(driver: Driver) -> None:
    members = [Reader(driver, name, regex="orders").join() for name in ("a", "b")]
    driver.resolve()
    reconcile(driver, *members)
    members[0].beat(subscribed_topic_regex="nothing")
    driver.sleep(11_000)
    driver.resolve()
    reconcile(driver, *members)
    assert [member.owned for member in members] == [[], ["orders-0", "orders-1"]]


def test_one_that_matches_nothing_moves_nobody_who_had_nothing(driver: Driver) -> None:
    reader = Reader(driver, "a", regex="nothing").join()
    driver.resolve()
    assert driver.kinds == ["16"]
    driver.sleep(1_000)
    assert (reader.send().epoch, reader.owned) == (1, [])
