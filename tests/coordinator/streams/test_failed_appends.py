"""Records that can't be appended leave a group exactly as it was: its soft state and its timers as well.

Each heartbeat of a random application is sent twice, the first time while appends fail.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from kohort.coordinator.step import Client, Step
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tests.coordinator.streams.driver import CLIENT, GROUP, App, Driver, joined, reconcile, stateful
from tests.coordinator.streams.snapshots import snapshot
from tests.coordinator.streams.test_groups_model import Groups

ERROR = ErrorCode.NOT_ENOUGH_REPLICAS


class FailingDriver(Driver):
    """A driver that sends each heartbeat while appends fail, and then again.

    Attributes:
        failures: appends that failed.
    """

    failures = 0

    def perform(self, step: Step) -> list[str]:
        self.failures += bool(step.records) and self.append_error is not None
        return super().perform(step)

    def send(self, request: StreamsGroupHeartbeatRequest, client: Client = CLIENT) -> StreamsGroupHeartbeatResponse:
        before, failures = snapshot(self.shard), self.failures
        self.append_error = ERROR
        response = super().send(request, client)
        self.append_error = None
        if self.failures == failures:
            return response
        assert snapshot(self.shard) == before
        assert response.error_code
        return super().send(request, client)


class FailingGroups(Groups):
    @initialize(
        delay=st.sampled_from([0, 3_000]),
        interval=st.sampled_from([0, 2_000]),
        standbys=st.integers(0, 2),
        warmups=st.integers(0, 2),
        elsewhere=st.booleans(),
    )
    def begin(self, **drawn: Any) -> None:
        super().begin(**drawn)
        self.driver = FailingDriver(self.driver.topics, self.driver.settings, self.driver.elsewhere)


TestFailingGroups = FailingGroups.TestCase
TestFailingGroups.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_each_heartbeat_that_has_records_fails_first() -> None:
    driver = FailingDriver()
    (app,) = joined(driver, ["m"])
    failures = driver.failures
    app.beat()
    assert driver.failures == failures > 0
    app.leave()
    assert driver.failures == failures + 1


def failing(driver: Driver, app: App) -> None:
    """A member's timeouts pass while appends fail."""
    before = snapshot(driver.shard)
    driver.append_error = ERROR
    driver.sleep(45_000)
    driver.append_error = None
    assert snapshot(driver.shard) == before
    assert app.name in driver.group.members


def test_a_member_whose_removal_could_not_be_stored_is_fenced_a_little_later() -> None:
    driver = Driver({"in": 4, f"{GROUP}-store-0-changelog": 4})
    apps = joined(driver, ["m1", "m2"], stateful(), endpoint=("h", 1), reports=True)
    driver.sleep(100)
    failing(driver, apps[0])
    driver.sleep(10_000)
    assert not driver.group.members


def test_a_member_that_is_heard_of_again_stays_though_it_was_to_be_fenced() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m"])
    failing(driver, app)
    app.full()
    assert not app.error
    driver.sleep(44_000)
    assert app.name in driver.group.members


def test_tasks_whose_placement_could_not_be_stored_are_placed_by_the_next_heartbeat() -> None:
    driver = Driver(elsewhere=True)
    app = App(driver, "m")
    app.join()
    app.beat()
    driver.append_error = ERROR
    driver.finish()
    driver.append_error = None
    app.beat()
    driver.finish()
    app.full()
    assert len(app.have()) == 4


def test_a_change_of_topics_is_noticed_by_the_next_heartbeat_if_the_record_of_it_could_not_be_stored() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m"])
    app.beat()
    driver.append_error = ERROR
    driver.topic("in", 5)
    driver.append_error = None
    app.beat()
    app.full()
    assert len(app.have()) == 5


def test_a_placement_that_is_out_of_date_is_dropped_though_a_change_of_topics_could_not_be_stored() -> None:
    driver = Driver(elsewhere=True)
    apps = [App(driver, "m1"), App(driver, "m2")]
    for app in apps:
        app.join()
    driver.append_error = ERROR
    driver.topic("in", 5)
    driver.append_error = None
    driver.finish()
    assert not driver.jobs
    apps[0].beat()
    driver.finish()
    reconcile(*apps)
    assert sum(len(app.have()) for app in apps) == 5


def test_a_group_whose_first_join_could_not_be_stored_does_not_exist() -> None:
    driver = Driver(settings=StreamsSettings(initial_rebalance_delay_ms=3_000))
    driver.append_error = ERROR
    App(driver, "m").join()
    assert driver.shard.streams.get(GROUP) is None
    assert len(driver.wheel) == 0
