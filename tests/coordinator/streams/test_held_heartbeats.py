"""Heartbeats that are held, in virtual time: answered when the member's next heartbeat brings something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.heartbeat_wishes import Wishes, grant_of
from kohort.streams.tasks import Role
from tests.coordinator.streams.driver import CLIENT, GROUP, App, Driver, joined, reconcile, stateful, stateless

NEWS, NONE = True, False


class Waiting:
    """A heartbeat of a member that is held, on a connection of its own."""

    def __init__(self, app: App, *, max_wait_ms: int = 5_000, disconnect_timeout_ms: int = -1) -> None:
        self.connection = object()
        self.answers: list[bool] = []
        driver = app.driver
        wishes = Wishes(disconnect_timeout_ms, max_wait_ms, tuple(app.status))
        driver.perform(
            driver.shard.streams.hold(app.request(), wishes, CLIENT, self.connection, driver.now, self._answered)
        )

    def _answered(self, result: HeartbeatResult) -> None:
        result.response.encode(1)
        granted = grant_of(result.response.unknown_tags)
        assert granted is not None
        self.answers.append(granted.news)


def test_without_news_it_is_answered_when_it_has_waited_long_enough() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    short, long = Waiting(first, max_wait_ms=1_000), Waiting(second, max_wait_ms=60_000)
    driver.sleep(999)
    assert not short.answers
    driver.sleep(1)
    assert short.answers == [NONE]
    driver.sleep(3_999)
    assert not long.answers
    driver.sleep(1)  # the heartbeat interval
    assert long.answers == [NONE]


def a_member_joins(first: App, second: App) -> None:
    App(first.driver, "m3").join()


def a_member_leaves(first: App, second: App) -> None:
    second.leave()
    first.driver.sleep(50)  # others may leave as well


def a_topic_grows(first: App, second: App) -> None:
    first.driver.topic("in", 8)


def a_topic_is_gone(first: App, second: App) -> None:
    first.driver.topic("in", None)


def all_shall_stop(first: App, second: App) -> None:
    second.beat(shutdown_application=True)


def it_is_removed(first: App, second: App) -> None:
    first.leave()


def tags_are_wanted(first: App, second: App) -> None:
    first.driver.configure(rack_aware_assignment_tags=("zone",))
    second.beat()


@pytest.mark.parametrize(
    "happens",
    [
        a_member_joins, a_member_leaves, a_topic_grows, a_topic_is_gone, all_shall_stop, it_is_removed, tags_are_wanted,
    ],
    ids=lambda happens: happens.__name__,
)  # fmt: skip
def test_it_is_answered_when_there_is_news(happens: Callable[[App, App], None]) -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    waiting = Waiting(first)
    happens(first, second)
    driver.sleep(1)
    assert waiting.answers == [NEWS]


@pytest.mark.parametrize(
    "happens",
    [lambda first, second: second.beat(), lambda first, second: second.full(), lambda first, second: first.full()],
    ids=["another's heartbeat", "another reports all", "its own"],
)
def test_what_changes_nothing_for_the_member_is_no_news(happens: Callable[[App, App], object]) -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    waiting = Waiting(first)
    happens(first, second)
    driver.sleep(1_000)
    assert not waiting.answers


def test_news_from_before_it_came_is_news() -> None:
    driver = Driver()
    first, _ = joined(driver, ["m1", "m2"])
    App(driver, "m3").join()
    assert Waiting(first).answers == [NEWS]


def test_who_is_no_member_has_news_at_once() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    assert Waiting(App(driver, "m2")).answers == [NEWS]


def test_a_task_that_another_has_given_up_is_news_for_its_next_owner_alone() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    third = App(driver, "m3")
    third.join()
    for app in (first, second, third):
        app.beat()
    waits = {app.name: Waiting(app) for app in (first, second, third)}
    assert not any(wait.answers for wait in waits.values())  # the owner has to give it up first
    (owner,) = (app for app in (first, second) if len(app.have()) == 1)
    owner.full()
    driver.sleep(1)
    assert {name: wait.answers for name, wait in waits.items()} == {
        "m1": [],
        "m2": [],
        "m3": [NEWS],
    }
    third.beat()
    assert len(third.have()) == 1


def test_a_warm_up_that_has_caught_up_takes_its_task_over_without_waiting_for_an_interval() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    driver.configure(acceptable_recovery_lag=10)
    (first,) = joined(driver, ["m1"], stateful(), reports=True)
    first.offsets = dict.fromkeys(first.tasks, 1_000)
    first.ends = dict.fromkeys(first.tasks, 1_000)
    first.report()
    second = App(driver, "m2", stateful(), reports=True)
    second.join()
    reconcile(first, second)
    (task,) = (task for task, role in second.tasks.items() if role is Role.WARMUP)
    waiting = Waiting(first)
    second.offsets, second.ends = {task: 995}, {task: 1_000}
    second.report()
    driver.sleep(1)
    assert waiting.answers == [NEWS]


@pytest.mark.parametrize("happens", [a_member_joins, a_member_leaves, a_topic_grows, tags_are_wanted])
def test_members_that_send_a_heartbeat_at_each_news_come_to_rest(happens: Callable[[App, App], None]) -> None:
    """What is news is none any more after a heartbeat; else they would ask for ever."""
    driver = Driver()
    apps = joined(driver, ["m1", "m2"], stateless(), endpoint=("host", 1))
    happens(*apps)
    names = driver.group.members
    apps = [app for app in apps if app.name in names]
    asked = 0
    for _ in range(100):
        waits = [Waiting(app) for app in apps]
        driver.sleep(1)
        told = [app for app, wait in zip(apps, waits, strict=True) if wait.answers == [NEWS]]
        for app in told:
            asked += 1
            app.full()
            app.full()
        if not told:
            break
    assert asked <= 12
    assert driver.group.soft.endpoints_stale is False


def test_a_second_one_takes_the_place_of_the_first() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    older, newer = Waiting(app), Waiting(app)
    assert (older.answers, newer.answers) == ([NONE], [])
    driver.sleep(5_000)
    assert (older.answers, newer.answers) == ([NONE], [NONE])


def test_who_has_gone_gets_no_answer() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    waiting = Waiting(first)
    driver.shard.streams.closed(waiting.connection)
    second.leave()
    driver.sleep(10_000)
    assert not waiting.answers
    assert len(driver.shard.streams._held) == 0


def test_its_sender_is_alive_for_another_session_but_not_for_ever() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    driver.sleep(40_000)
    waiting = Waiting(app)
    driver.sleep(44_000)
    assert app.name in driver.group.members
    driver.sleep(1_000)  # as of a process that is paused
    assert app.name not in driver.group.members
    assert waiting.answers == [NONE]


def test_its_sender_is_dead_when_neither_of_its_connections_is_open() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    streams = driver.shard.streams
    waiting = Waiting(app, disconnect_timeout_ms=1_000)
    streams.heard_over("other", GROUP, app.name, 1_000)
    streams.disconnected(waiting.connection, driver.now)
    streams.closed(waiting.connection)
    driver.sleep(1_500)
    assert app.name in driver.group.members
    waiting = Waiting(app, disconnect_timeout_ms=1_000)
    streams.disconnected("other", driver.now)
    driver.sleep(1_500)
    assert app.name in driver.group.members
    streams.disconnected(waiting.connection, driver.now)
    driver.sleep(1_000)
    assert app.name not in driver.group.members


def test_its_connection_closed_by_the_server_keeps_nobody_alive() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    streams = driver.shard.streams
    waiting = Waiting(app, disconnect_timeout_ms=1_000)
    streams.heard_over("other", GROUP, app.name, 1_000)
    streams.closed(waiting.connection)
    driver.sleep(1_500)
    assert app.name in driver.group.members
    streams.disconnected("other", driver.now)
    driver.sleep(1_000)
    assert app.name not in driver.group.members


def test_a_large_group_is_looked_at_once_for_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver({"in": 40})
    apps = joined(driver, [f"m{number}" for number in range(40)])
    waits = [Waiting(app) for app in apps]
    looked = []
    check = driver.shard.streams._held._check
    monkeypatch.setattr(
        driver.shard.streams._held, "_check", lambda group: (looked.append(driver.now), check(group))[1]
    )
    for app in apps[30:]:
        app.leave()
    driver.sleep(8)
    assert not looked
    driver.sleep(100)
    assert len(looked) <= 5
    assert all(wait.answers == [NEWS] for wait in waits)


def large(driver: Driver, members: int) -> list[App]:
    """The members of a group, to which tasks were assigned once."""
    driver.configure(initial_rebalance_delay_ms=1_000)
    apps = [App(driver, f"m{number}") for number in range(members)]
    for app in apps:
        app.join()
    driver.sleep(1_000)
    for app in apps:
        app.beat()
    return apps


def test_a_large_group_is_looked_at_in_portions_which_a_change_does_not_begin_anew() -> None:
    driver = Driver({"in": 1})
    apps = large(driver, 120)
    waits = [Waiting(app) for app in apps]
    assert not any(wait.answers for wait in waits)
    apps[-1].beat(shutdown_application=True)
    driver.sleep(29)
    counts = []
    for _ in range(3):
        driver.sleep(1)
        counts.append(sum(len(wait.answers) for wait in waits))
        driver.topic("in", 1)
    assert counts == [50, 100, 120]


def test_a_change_while_a_group_is_looked_at_is_looked_at_afterwards() -> None:
    driver = Driver({"in": 1})
    apps = large(driver, 120)
    idle = [app for app in apps if not app.have()][:100]
    waits = [Waiting(app) for app in idle]
    driver.topic("in", 1)  # nothing has changed
    driver.sleep(30)
    assert not any(wait.answers for wait in waits)  # half of them were looked at
    apps[-1].beat(shutdown_application=True)
    driver.sleep(1)
    assert sum(len(wait.answers) for wait in waits) == 50
    driver.sleep(100)
    assert all(wait.answers == [NEWS] for wait in waits)


def test_members_hear_of_news_after_a_restart_with_the_clock_set_back() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    driver.now -= 3_600_000
    driver.restart()
    reconcile(first, second)
    waiting = Waiting(first)
    assert not waiting.answers
    second.beat(shutdown_application=True)
    driver.sleep(1)
    assert waiting.answers == [NEWS]


def test_members_of_other_groups_are_not_looked_at() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    waiting = Waiting(first)
    held = driver.shard.streams._held
    held.changed("another", 1_000)
    assert not held._checks
    second.leave()
    driver.sleep(51)
    assert waiting.answers == [NEWS] and not held._of_groups and not held._of_connections


def test_thousands_are_answered_by_one_change() -> None:
    driver = Driver({"in": 1})
    apps = large(driver, 2_000)
    waits = [Waiting(app) for app in apps]
    assert not any(wait.answers for wait in waits)
    apps[-1].beat(shutdown_application=True)
    driver.sleep(2_000)
    assert all(wait.answers == [NEWS] for wait in waits)
