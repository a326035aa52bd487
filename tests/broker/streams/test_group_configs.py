"""Configurations of streams groups."""

from __future__ import annotations

import uuid
from dataclasses import fields, replace
from typing import Any

import pytest

from kohort.broker.config import Settings, check_group_configs, streams_settings
from kohort.broker.config.group_keys import GROUP_DEFAULT_KEYS
from kohort.broker.group_configs import GroupConfigs
from kohort.broker.topics import ConfigResource, Topics
from kohort.coordinator.placement import ASSIGNORS
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode, KafkaError

DEFAULTS = StreamsSettings()


def test_without_a_configuration_it_is_kafkas_defaults() -> None:
    assert streams_settings(Settings(), {}) == DEFAULTS


OTHERS: dict[str, tuple[str, Any]] = {
    "session_timeout_ms": ("50000", 50_000),
    "heartbeat_interval_ms": ("6000", 6000),
    "num_standby_replicas": ("1", 1),
    "num_warmup_replicas": ("3", 3),
    "acceptable_recovery_lag": ("100", 100),
    "task_offset_interval_ms": ("20000", 20_000),
    "assignment_interval_ms": ("2000", 2000),
    "initial_rebalance_delay_ms": ("0", 0),
    "assignor_name": ("sticky", "sticky"),
    "rack_aware_assignment_tags": ("zone,rack", ("zone", "rack")),
    "disconnect_timeout_ms": ("2000", 2_000),
}
"""Another text for each setting, and what it means."""


@pytest.mark.parametrize("field", OTHERS)
def test_a_groups_own_value_counts(field: str) -> None:
    text, value = OTHERS[field]

    assert streams_settings(Settings(), {f"streams.{field.replace('_', '.')}": text}) == replace(
        DEFAULTS, **{field: value}
    )


@pytest.mark.parametrize("field", OTHERS)
def test_else_the_brokers_does(field: str) -> None:
    text, value = OTHERS[field]
    key = "group.streams.assignors" if field == "assignor_name" else f"group.streams.{field.replace('_', '.')}"

    assert streams_settings(Settings.of({key: text}), {}) == replace(DEFAULTS, **{field: value})


def test_the_size_of_groups_is_the_brokers_to_say() -> None:
    assert streams_settings(Settings.of({"group.streams.max.size": 3}), {}).max_size == 3
    assert {field.name for field in fields(StreamsSettings)} == {*OTHERS, "max_size"}


@pytest.mark.parametrize(
    ("key", "text", "limit", "bound", "value"),
    [
        ("streams.session.timeout.ms", "45000", "group.streams.min.session.timeout.ms", 50_000, 50_000),
        ("streams.session.timeout.ms", "60000", "group.streams.max.session.timeout.ms", 50_000, 50_000),
        ("streams.assignment.interval.ms", "0", "group.streams.min.assignment.interval.ms", 500, 500),
        ("streams.num.standby.replicas", "2", "group.streams.max.standby.replicas", 1, 1),
        ("streams.num.warmup.replicas", "20", "group.streams.max.warmup.replicas", 5, 5),
        ("streams.task.offset.interval.ms", "15000", "group.streams.min.task.offset.interval.ms", 30_000, 30_000),
    ],
)
def test_a_value_stays_within_bounds_that_were_moved_after_it_was_set(
    key: str, text: str, limit: str, bound: int, value: int
) -> None:
    settings = streams_settings(Settings.of({limit: bound, f"group.{key}": bound}), {key: text})

    assert getattr(settings, key.removeprefix("streams.").replace(".", "_")) == value


def test_an_assignor_that_is_not_offered_any_more_gives_way_to_the_default() -> None:
    settings = Settings.of({"group.streams.assignors": "sticky"})

    assert streams_settings(settings, {"streams.assignor.name": "optimal"}).assignor_name == "sticky"


def test_the_assignors_are_those_that_there_are() -> None:
    assert set(GROUP_DEFAULT_KEYS["group.streams.assignors"].valid) == ASSIGNORS.keys()


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("streams.session.timeout.ms", "44999", "min.session.timeout.ms allows no less than 45000"),
        ("streams.session.timeout.ms", "60001", "max.session.timeout.ms allows no more than 60000"),
        ("streams.heartbeat.interval.ms", "4999", "min.heartbeat.interval.ms allows no less than 5000"),
        ("streams.heartbeat.interval.ms", "15001", "max.heartbeat.interval.ms allows no more than 15000"),
        ("streams.assignment.interval.ms", "15001", "max.assignment.interval.ms allows no more than 15000"),
        ("streams.num.standby.replicas", "3", "max.standby.replicas allows no more than 2"),
        ("streams.num.warmup.replicas", "21", "max.warmup.replicas allows no more than 20"),
        ("streams.task.offset.interval.ms", "14999", "min.task.offset.interval.ms allows no less than 15000"),
        ("streams.acceptable.recovery.lag", "-1", "at least 0 is needed"),
        ("streams.initial.rebalance.delay.ms", "-1", "at least 0 is needed"),
        ("streams.assignor.name", "best", "group.streams.assignors has optimal, sticky"),
        ("streams.rack.aware.assignment.tags", "a,a", "a name is in the list twice"),
    ],
)
def test_a_value_out_of_bounds_is_refused(key: str, text: str, problem: str) -> None:
    with pytest.raises(KafkaError) as refused:
        check_group_configs({key: text}, Settings())

    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert problem in str(refused.value.detail)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("streams.session.timeout.ms", "60000"),
        ("streams.heartbeat.interval.ms", "15000"),
        ("streams.num.standby.replicas", "2"),
        ("streams.num.warmup.replicas", "20"),
        ("streams.num.warmup.replicas", "0"),
        ("streams.task.offset.interval.ms", "2147483647"),
        ("streams.acceptable.recovery.lag", "9223372036854775807"),
    ],
)
def test_a_value_at_a_bound_is_taken(key: str, text: str) -> None:
    check_group_configs({key: text}, Settings())


class Storage:
    """Topics that are never opened."""

    def open(self, topic: Any, indexes: range, *, new: bool = False) -> list[Any]:
        return []

    def remove(self, partition: Any) -> None: ...

    def configure(self, topic: Any) -> None: ...


def resources() -> Topics:
    return Topics(1, Storage(), lambda records: None, uuid.uuid4)


def test_a_change_reaches_the_group_alone() -> None:
    topics = resources()
    configs = GroupConfigs(Settings(), topics, streams_settings)
    topics.set_configs(ConfigResource.GROUP, "group", {"streams.num.standby.replicas": "1"})
    configs.configure_group("group")

    assert configs.of("group").num_standby_replicas == 1
    assert configs.of("other") == DEFAULTS


def test_a_value_can_be_taken_back() -> None:
    topics = resources()
    configs = GroupConfigs(Settings(), topics, streams_settings)
    for value in ("1", None):
        topics.set_configs(ConfigResource.GROUP, "group", {"streams.num.standby.replicas": value})
        configs.configure_group("group")

    assert configs.of("group") == DEFAULTS


def test_what_was_configured_before_the_start_counts() -> None:
    topics = resources()
    configs = GroupConfigs(Settings(), topics, streams_settings)
    topics.set_configs(ConfigResource.GROUP, "group", {"streams.num.standby.replicas": "1"})

    configs.configure(Settings.of({"group.streams.num.warmup.replicas": 7}))

    assert (configs.of("group").num_standby_replicas, configs.of("group").num_warmup_replicas) == (1, 7)


def test_settings_that_do_not_change_are_the_same_object() -> None:
    topics = resources()
    topics.set_configs(ConfigResource.GROUP, "group", {"streams.num.standby.replicas": "1"})
    configs = GroupConfigs(Settings(), topics, streams_settings)

    assert configs.of("group") is configs.of("group")
    assert configs.of("one") is configs.of("other")
