"""`group.streams.assignment.interval.ms` (KIP-1263): targets of a group are made at most once in that time."""

from __future__ import annotations

from kohort.coordinator.streams.settings import StreamsSettings
from kohort.streams.statuses import StatusCode
from tests.coordinator.streams.driver import App, Driver, joined, reconcile, stateless

INTERVAL_MS = 1_000
WAITING = StreamsSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=INTERVAL_MS)


def test_a_target_is_made_once_in_an_interval() -> None:
    driver = Driver(settings=WAITING)
    first = App(driver, "m1")
    first.join()
    assert len(first.have()) == 4
    driver.sleep(1)
    others = [App(driver, "m2"), App(driver, "m3")]
    for app in others:
        app.join()
    assert [app.status for app in others] == [[StatusCode.ASSIGNMENT_DELAYED]] * 2
    assert (driver.group.epoch, driver.group.assignment_epoch, driver.state()) == (4, 2, "Assigning")
    driver.sleep(INTERVAL_MS - 2)
    assert driver.group.assignment_epoch == 2
    driver.sleep(1)
    assert driver.group.assignment_epoch == 4  # nobody's heartbeat is needed
    reconcile(first, *others)
    assert sorted(len(app.have()) for app in (first, *others)) == [1, 1, 2]


def test_tasks_of_a_member_that_left_wait_as_well() -> None:
    driver = Driver(settings=WAITING)
    first, second = joined(driver, ["m1", "m2"])
    driver.sleep(INTERVAL_MS)
    reconcile(first, second)
    App(driver, "m3").join()
    second.leave()
    driver.sleep(INTERVAL_MS - 1)
    assert driver.group.assignment_epoch < driver.group.epoch
    driver.sleep(1)
    assert driver.group.assignment_epoch == driver.group.epoch


def test_meanwhile_members_take_what_the_latest_target_gives_them() -> None:
    driver = Driver(settings=WAITING)
    first, second = App(driver, "m1"), App(driver, "m2")
    first.join()
    driver.sleep(INTERVAL_MS)
    second.join()
    App(driver, "m3").join()
    assert driver.group.assignment_epoch < driver.group.epoch
    reconcile(first, second)
    assert (len(first.have()), len(second.have())) == (2, 2)


def test_a_target_for_other_topics_gives_nobody_anything_new() -> None:
    driver = Driver(settings=WAITING)
    first, second = App(driver, "m1"), App(driver, "m2")
    first.join()
    driver.sleep(INTERVAL_MS)
    second.join()
    driver.topic("in", 6)
    reconcile(first, second)
    assert (len(first.have()), len(second.have())) == (2, 0)
    driver.sleep(INTERVAL_MS)
    reconcile(first, second)
    assert (len(first.have()), len(second.have())) == (3, 3)


def test_a_group_whose_topics_come_later_does_not_wait_for_its_first_tasks() -> None:
    driver = Driver({}, WAITING)
    app = App(driver, "m1")
    app.join()
    driver.topic("in", 4)
    app.beat()
    assert len(app.have()) == 4


def test_a_group_whose_topics_go_gives_its_tasks_up_at_once() -> None:
    driver = Driver({"in": 4, "other": 4}, WAITING)
    app = App(driver, "m1", stateless("0"), stateless("1", "other"))
    app.join()
    driver.topic("other", None)
    reconcile(app)
    assert app.have() == []


def test_a_restart_knows_when_the_target_was_made() -> None:
    driver = Driver(settings=WAITING)
    (app,) = joined(driver, ["m1"])
    driver.sleep(1)
    driver.restart()
    App(driver, "m2").join()
    assert driver.group.assignment_epoch < driver.group.epoch
    driver.sleep(INTERVAL_MS)
    assert driver.group.assignment_epoch == driver.group.epoch
    assert app.beat().error_code == 0


def test_a_shorter_interval_holds_at_once() -> None:
    driver = Driver(settings=WAITING)
    first, second = App(driver, "m1"), App(driver, "m2")
    first.join()
    second.join()
    driver.configure(assignment_interval_ms=0)
    first.beat()
    assert driver.group.assignment_epoch == driver.group.epoch


def test_a_clock_that_was_set_back_does_not_keep_a_group_waiting() -> None:
    driver = Driver(settings=WAITING)
    first, second = App(driver, "m1"), App(driver, "m2")
    first.join()
    second.join()
    first.beat()
    driver.now -= 3_600_000
    first.beat()
    assert driver.group.assignment_epoch == driver.group.epoch


def test_a_placement_that_takes_its_time_counts_from_its_end() -> None:
    driver = Driver(settings=WAITING, elsewhere=True)
    App(driver, "m1").join()
    driver.sleep(400)
    driver.finish()
    App(driver, "m2").join()
    driver.sleep(INTERVAL_MS - 1)
    assert driver.jobs == []
    driver.sleep(1)
    assert len(driver.jobs) == 1
