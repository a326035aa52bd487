"""Members whose connection is broken: fenced after their disconnect timeout, as if their session had timed out."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.errors import ErrorCode
from kohort.protocol.heartbeat_wishes import Grant, Wishes, grant_of
from tests.coordinator.streams.driver import CLIENT, GROUP, App, Driver, joined, reconcile

ALL = ["0_0", "0_1", "0_2", "0_3"]
ASKS = {"unknown_tags": Wishes(1_000).tags()}


def heard(driver: Driver, app: App, connection: str, **fields: Any) -> None:
    """A heartbeat, over a connection."""
    app.beat(**fields)
    assert not app.error
    if (timeout := driver.result.disconnect_timeout_ms) >= 0:
        driver.shard.streams.heard_over(connection, GROUP, app.name, timeout)


def broken(driver: Driver, connection: str) -> None:
    driver.shard.streams.disconnected(connection, driver.now)


def two(driver: Driver, **fields: Any) -> tuple[App, App]:
    """Two members, heard over connections of their names."""
    first, second = joined(driver, ["m1", "m2"])
    for app in (first, second):
        heard(driver, app, app.name, **fields)
    return first, second


@pytest.mark.parametrize(
    ("setting", "wish", "timeout"),
    [(-1, None, -1), (-1, -1, -1), (-1, 1_000, 1_000), (700, None, 700), (700, 1_000, 700)],
)
def test_the_groups_own_timeout_counts_else_the_one_the_member_asks_for(
    setting: int, wish: int | None, timeout: int
) -> None:
    driver = Driver()
    driver.configure(disconnect_timeout_ms=setting)
    (app,) = joined(driver, ["m1"])
    response = app.beat() if wish is None else app.beat(unknown_tags=Wishes(wish).tags())
    assert driver.result.disconnect_timeout_ms == timeout
    assert grant_of(response.unknown_tags) == (None if wish is None else Grant(timeout, 5_000))


def test_its_tasks_are_others_at_once() -> None:
    driver = Driver()
    first, second = two(driver, **ASKS)
    driver.sleep(3_000)
    broken(driver, "m1")
    driver.sleep(1_000)
    assert sorted(driver.group.members) == ["m2"]
    driver.sleep(50)  # others may have gone as well
    reconcile(second)
    assert second.have() == ALL
    first.beat()
    assert first.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.dump() == driver.dump(driver.replayed())


def test_who_comes_back_in_time_has_lost_nothing() -> None:
    driver = Driver()
    first, _ = two(driver, **ASKS)
    tasks, epoch = first.have(), driver.group.epoch
    broken(driver, "m1")
    driver.sleep(999)
    heard(driver, first, "another", **ASKS)
    driver.sleep(5_000)
    assert (first.have(), driver.group.epoch) == (tasks, epoch)


def test_who_comes_back_need_not_be_answered_in_time() -> None:
    driver = Driver()
    first, _ = two(driver, **ASKS)
    broken(driver, "m1")
    driver.sleep(900)
    first.full(**ASKS)  # whose records aren't safe yet
    driver.sleep(900)
    assert first.name in driver.group.members
    driver.shard.streams.heard_over("another", GROUP, first.name, 1_000)
    broken(driver, "another")
    driver.sleep(1_000)
    assert first.name not in driver.group.members


def test_who_did_not_ask_has_until_its_session_ends() -> None:
    driver = Driver()
    two(driver)
    broken(driver, "m1")
    driver.sleep(44_000)
    assert sorted(driver.group.members) == ["m1", "m2"]


def test_a_static_member_is_removed_as_when_its_session_ends() -> None:
    driver = Driver()
    static, second = App(driver, "m1", instance="i1"), App(driver, "m2")
    static.join()
    second.join()
    reconcile(static, second)
    heard(driver, static, "m1", **ASKS)
    broken(driver, "m1")
    driver.sleep(1_000)
    assert sorted(driver.group.members) == ["m2"] and not driver.group.static_ids
    back = App(driver, "m3", instance="i1")
    back.join()
    reconcile(second, back)
    assert sorted(second.have() + back.have()) == ALL


def test_a_static_member_that_left_for_a_while_keeps_its_tasks_until_its_session_ends() -> None:
    driver = Driver()
    static = App(driver, "m1", instance="i1")
    static.join()
    reconcile(static)
    heard(driver, static, "m1", **ASKS)
    static.leave(-2)
    broken(driver, "m1")
    driver.sleep(10_000)
    assert sorted(driver.group.members) == ["m1"]


@pytest.mark.parametrize("late", ["a held heartbeat", "the answer to a heartbeat"])
def test_a_static_member_that_left_for_a_while_needs_no_connection_whatever_comes_late(late: str) -> None:
    driver = Driver()
    static = App(driver, "m1", instance="i1")
    static.join()
    reconcile(static)
    heard(driver, static, "m1", **ASKS)
    static.leave(-2)
    streams = driver.shard.streams
    if late == "a held heartbeat":
        results: list[HeartbeatResult] = []
        wishes = Wishes(1_000, 5_000)
        driver.perform(streams.hold(static.request(), wishes, CLIENT, "m1", driver.now, results.append))
        assert [grant_of(result.response.unknown_tags) for result in results] == [Grant(1_000, 5_000, True)]
    else:
        streams.heard_over("m1", GROUP, static.name, 1_000)
    broken(driver, "m1")
    driver.sleep(44_000)
    assert sorted(driver.group.members) == ["m1"]
    driver.sleep(1_000)
    assert not driver.group.members


def test_a_group_that_is_loaded_knows_no_connections() -> None:
    driver = Driver()
    two(driver, **ASKS)
    driver.restart()
    broken(driver, "m1")
    driver.sleep(10_000)
    assert sorted(driver.group.members) == ["m1", "m2"]


def test_other_settings_leave_the_timeouts_alone_that_run() -> None:
    driver = Driver()
    two(driver, **ASKS)
    broken(driver, "m1")
    driver.sleep(500)
    driver.configure(num_standby_replicas=1)
    driver.sleep(500)
    assert sorted(driver.group.members) == ["m2"]
    driver.configure(disconnect_timeout_ms=-1)  # as it was
    broken(driver, "m2")
    driver.sleep(1_000)
    assert not driver.group.members


def test_the_timeout_of_a_group_that_is_loaded_is_known() -> None:
    driver = Driver()
    driver.configure(disconnect_timeout_ms=700)
    first, _ = two(driver)
    driver.restart()
    heard(driver, first, "m1")
    driver.configure(num_standby_replicas=1)
    broken(driver, "m1")
    driver.sleep(700)
    assert sorted(driver.group.members) == ["m2"]


def test_a_timeout_that_is_turned_off_fences_nobody() -> None:
    driver = Driver()
    driver.configure(disconnect_timeout_ms=700)
    first, _ = two(driver)
    driver.configure(disconnect_timeout_ms=-1)
    broken(driver, "m1")
    driver.sleep(10_000)
    assert first.name in driver.group.members


def test_a_removal_that_cannot_be_recorded_is_left_to_the_session_timeout() -> None:
    driver = Driver()
    first, second = two(driver, **ASKS)
    broken(driver, "m1")
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.sleep(10_000)
    driver.append_error = None
    assert first.name in driver.group.members
    for _ in range(10):
        heard(driver, second, "m2", **ASKS)
        driver.sleep(5_000)
    assert sorted(driver.group.members) == ["m2"]
