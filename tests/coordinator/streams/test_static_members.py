from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import KeyValue
from tests.coordinator.streams.driver import App, Driver, joined, reconcile, stateless

SESSION = 45_000
ALL = ["0_0", "0_1", "0_2", "0_3"]


def two(driver: Driver) -> tuple[App, App]:
    """A static member beside a dynamic one."""
    first, second = App(driver, "m1", instance="i1"), App(driver, "m2")
    first.join()
    second.join()
    reconcile(first, second)
    return first, second


def test_a_static_member_is_back_with_its_tasks_and_nobody_notices() -> None:
    driver = Driver()
    first, second = two(driver)
    before, epoch = first.have(), driver.group.epoch
    response = first.leave(-2)
    assert (response.error_code, response.member_epoch) == (0, -2)
    second.full()
    assert second.epoch == epoch
    back = App(driver, "m3", instance="i1", process=first.process)
    back.join()
    assert (back.have(), back.epoch, driver.group.epoch) == (before, epoch, epoch)
    assert (sorted(driver.group.members), driver.group.static_ids) == (["m2", "m3"], {"i1": "m3"})
    assert driver.dump() == driver.dump(driver.replayed())


def test_a_static_member_may_be_back_with_its_old_id() -> None:
    driver = Driver()
    first, _ = two(driver)
    before, epoch = first.have(), driver.group.epoch
    first.leave(-2)
    first.join()
    assert (first.have(), first.epoch, driver.group.epoch) == (before, epoch, epoch)


def test_what_a_static_member_had_before_it_went_it_need_not_give_up() -> None:
    driver = Driver()
    first, second = two(driver)
    first.leave(-2)
    third = App(driver, "m3")
    third.join()
    first.join()
    reconcile(first, second, third)
    assert sorted(first.have() + second.have() + third.have()) == ALL


@pytest.mark.parametrize("change", ["process", "tags"])
def test_a_static_member_that_is_back_elsewhere_is_a_reason_to_place_anew(change: str) -> None:
    driver = Driver()
    first, _ = two(driver)
    first.leave(-2)
    epoch = driver.group.epoch
    back = App(driver, "m3", instance="i1", process=first.process)
    if change == "process":
        back.process = "elsewhere"
    else:
        back.tags = {"zone": "b"}
    back.join()
    assert driver.group.epoch == epoch + 1


def test_a_static_member_that_changes_what_places_nothing_changes_no_epoch() -> None:
    driver = Driver()
    first, _ = two(driver)
    epoch = driver.group.epoch
    first.beat(rebalance_timeout_ms=5_000)
    assert driver.group.epoch == epoch
    first.beat(client_tags=[KeyValue(key="zone", value="a")])
    assert driver.group.epoch == epoch + 1


@pytest.mark.parametrize("name", ["m1", "m9"])
def test_a_static_member_that_is_back_with_another_topology_begins_with_nothing(name: str) -> None:
    driver = Driver({"in": 4, "more": 1})
    first, second = two(driver)
    first.leave(-2)
    driver.elsewhere = True
    back = App(driver, name, stateless("new", "more"), instance="i1", process=first.process, epoch=1)
    back.join()
    assert (back.error, back.have()) == (ErrorCode.NONE, [])
    assert driver.dump() == driver.dump(driver.replayed())
    driver.finish()
    reconcile(back, second)
    assert (back.have(), second.have()) == (["new_0"], [])


def test_while_a_static_member_is_away_its_tasks_wait_for_it() -> None:
    driver = Driver()
    first, second = two(driver)
    first.leave(-2)
    driver.sleep(SESSION - 1)
    second.beat()
    assert "m1" in driver.group.members and len(second.have()) == 2


def test_a_static_member_that_does_not_come_back_is_removed_at_its_session_timeout() -> None:
    driver = Driver()
    first, second = two(driver)
    first.leave(-2)
    driver.sleep(SESSION - 1_000)
    second.beat()
    driver.sleep(1_100)
    reconcile(second)
    assert (list(driver.group.members), second.have()) == (["m2"], ALL)


def test_an_instance_that_is_in_use_cannot_be_taken() -> None:
    driver = Driver()
    two(driver)
    thief = App(driver, "thief", instance="i1")
    thief.join()
    assert thief.error is ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_same_member_may_join_anew() -> None:
    driver = Driver()
    first, _ = two(driver)
    first.join()
    assert (first.error, len(first.have())) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_who_was_replaced_is_fenced(epoch: int) -> None:
    driver = Driver()
    first, _ = two(driver)
    first.leave(-2)
    App(driver, "m3", instance="i1").join()
    first.beat(member_epoch=epoch)
    assert first.error is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_an_instance_that_nobody_is_is_not_known(epoch: int) -> None:
    driver = Driver()
    two(driver)
    stranger = App(driver, "m2", instance="i9")
    stranger.beat(member_epoch=epoch)
    assert stranger.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_away_cannot_go_on_where_it_was() -> None:
    driver = Driver()
    first, _ = two(driver)
    epoch = first.epoch
    first.leave(-2)
    first.beat(member_epoch=epoch)
    assert first.error is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_static_member_may_leave_for_good() -> None:
    driver = Driver()
    first, second = two(driver)
    first.leave(-1)
    reconcile(second)
    assert (list(driver.group.members), driver.group.static_ids, second.have()) == (["m2"], {}, ALL)


def test_a_full_group_has_room_for_a_static_member_that_is_back() -> None:
    driver = Driver()
    driver.configure(max_size=2)
    first, _ = two(driver)
    first.leave(-2)
    back = App(driver, "m3", instance="i1")
    back.join()
    assert back.error is ErrorCode.NONE


def test_one_that_was_giving_up_when_it_went_has_given_up() -> None:
    driver = Driver()
    first = App(driver, "m1", instance="i1")
    first.join()
    second = App(driver, "m2")
    second.join()
    first.beat()
    first.leave(-2)
    second.beat()
    assert len(second.have()) == 2


def test_a_restart_finds_a_static_member_away() -> None:
    driver = Driver()
    first, second = two(driver)
    first.leave(-2)
    driver.restart()
    back = App(driver, "m3", instance="i1", process=first.process)
    back.join()
    reconcile(back, second)
    assert sorted(back.have() + second.have()) == ALL


def test_a_static_member_that_is_back_goes_straight_to_a_target_that_is_new_to_it() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"], instance="i1")
    first.leave(-2)
    second = App(driver, "m2")
    second.join()
    first.join()
    assert (len(first.have()), first.epoch) == (2, driver.group.epoch)
