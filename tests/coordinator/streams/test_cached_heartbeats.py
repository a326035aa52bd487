"""A member with nothing to say that has nothing to hear gets the same answer, without anything being worked out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskOffset
from tests.coordinator.streams.driver import CLIENT, GROUP, App, Driver, joined, stateful

SESSION = 45_000


def cached(driver: Driver, app: App) -> HeartbeatResult:
    app.beat()
    app.beat()
    return driver.result


def test_the_answer_is_the_very_same_object() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    first = cached(driver, app)
    app.beat()
    assert driver.result is first


def test_a_quiet_heartbeat_keeps_the_member_alive() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    first = cached(driver, app)
    for _ in range(3):
        driver.sleep(SESSION - 1)
        app.beat()
        assert driver.result is first


@pytest.mark.parametrize(
    "fields",
    [
        {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []},
        {"task_offsets": [TaskOffset(subtopology_id="0", partition=0, offset=1)]},
        {"task_end_offsets": []},
        {"shutdown_application": True},
        {"rebalance_timeout_ms": 7},
        {"process_id": "other"},
        {"user_endpoint": Endpoint(host="h", port=1)},
        {"client_tags": [KeyValue(key="zone", value="b")]},
        {"rack_id": "r"},
        {"instance_id": "i"},
        {"endpoint_information_epoch": -1},
        {"member_epoch": 1},
        {"member_epoch": 99},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_whatever_a_member_says_is_heard(fields: dict[str, Any]) -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    first = cached(driver, app)
    app.beat(**fields)
    assert driver.result is not first


@pytest.mark.parametrize(
    "client",
    [CLIENT._replace(host="10.0.0.2"), CLIENT._replace(client_id="other"), CLIENT._replace(version=1)],
)
def test_another_client_is_noticed(client: Any) -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    first = cached(driver, app)
    driver.send(app.request(), client)
    assert driver.result is not first
    assert driver.group.members["m1"].metadata.client_host == client.host


def test_a_topology_out_of_place_is_noticed() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    cached(driver, app)
    response = app.beat(topology=app.topology)
    assert response.error_code


@pytest.mark.parametrize(
    "happens",
    [
        lambda driver: App(driver, "m2").join(),
        lambda driver: driver.topic("in", 5),
        lambda driver: driver.configure(heartbeat_interval_ms=6_000),
        lambda driver: driver.restart(),
    ],
    ids=["a member joins", "a topic grows", "a setting changes", "a restart"],
)
def test_whatever_happens_is_told(happens: Callable[[Driver], object]) -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    first = cached(driver, app)
    happens(driver)
    app.beat()
    assert driver.result is not first


def test_a_member_that_waits_for_others_is_quiet_until_they_move() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    first.beat()
    waits = cached(driver, second)
    second.beat()
    assert driver.result is waits
    first.full()
    second.beat()
    assert len(second.have()) == 2


def test_task_offsets_that_move_nothing_are_no_news_for_others() -> None:
    driver = Driver({"in": 4, f"{GROUP}-store-0-changelog": 4})
    first, second = joined(driver, ["m1", "m2"], stateful(), reports=True)
    result = cached(driver, first)
    second.offsets = dict.fromkeys(second.tasks, 5)
    second.report()
    assert driver.group.soft.offsets.offsets_of("m2")
    first.beat()
    assert driver.result is result


def test_the_end_of_the_initial_rebalance_delay_is_noticed() -> None:
    driver = Driver()
    driver.configure(initial_rebalance_delay_ms=3_000)
    app = App(driver, "m1")
    app.join()
    result = cached(driver, app)
    driver.sleep(3_000)
    app.beat()
    assert driver.result is not result
    assert len(app.have()) == 4


def test_while_internal_topics_are_missing_no_heartbeat_is_quiet() -> None:
    driver = Driver()
    app = App(driver, "m1", stateful())
    app.join()
    first = cached(driver, app)
    app.beat()
    assert driver.result is not first and driver.result.missing_topics
