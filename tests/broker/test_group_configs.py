"""Settings of consumer groups: Kafka's keys and defaults, a group's own, and the broker's bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kohort.broker.config import Settings
from kohort.broker.config.component_settings import consumer_settings
from kohort.coordinator.assignors import CONSUMER_ASSIGNORS
from kohort.coordinator.consumer.settings import ConsumerSettings

DEFAULTS = ConsumerSettings()


def test_without_a_configuration_it_is_the_defaults() -> None:
    assert consumer_settings(Settings(), {}) == DEFAULTS
    assert tuple(CONSUMER_ASSIGNORS) == DEFAULTS.assignors


def test_a_groups_own_values_count_before_the_brokers() -> None:
    settings = Settings.of({"group.consumer.moving.heartbeat.interval.ms": 300, "group.consumer.max.size": 7})
    configs = {"consumer.session.timeout.ms": "50000", "consumer.assignment.interval.ms": "0"}
    assert consumer_settings(settings, configs) == replace(
        DEFAULTS, moving_heartbeat_interval_ms=300, max_size=7, session_timeout_ms=50_000, assignment_interval_ms=0
    )


def test_values_are_clamped_to_bounds_that_were_changed_later() -> None:
    settings = Settings.of({"group.consumer.max.session.timeout.ms": 46_000})
    assert consumer_settings(settings, {"consumer.session.timeout.ms": "50000"}).session_timeout_ms == 46_000


@pytest.mark.parametrize("assignors", ["", "sticky", "uniform,uniform"])
def test_assignors_that_there_are_not(assignors: str) -> None:
    with pytest.raises(ValueError, match=r"group\.consumer\.assignors"):
        Settings.of({"group.consumer.assignors": assignors})
