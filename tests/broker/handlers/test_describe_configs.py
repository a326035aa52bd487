"""DescribeConfigs: values, their sources and synonyms."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.configs import (
    BROKER,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    TOPIC,
    describe,
    edit,
)
from tests.broker.handlers.conftest import Ask, Deny


def sources(config: Any) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]


@pytest.mark.parametrize(
    ("kind", "resource_type", "code"),
    [
        (TOPIC, ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (GROUP, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (BROKER, ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (METRICS, ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (LOGGER, ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_who_may_not_describe(
    kind: int, resource_type: ResourceType, code: ErrorCode, ask: Ask, broker: Broker, deny: Deny
) -> None:
    deny(Operation.DESCRIBE_CONFIGS, resource_type)
    assert describe(ask, kind, "1").error_code == code


@pytest.mark.parametrize("settings", [{"log.retention.hours": 100}])
def test_a_topics_synonyms_begin_with_what_counts(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1, {"retention.ms": "7000"})
    edit(ask, BROKER, "1", ("log.retention.ms", SET, "9000"))
    edit(ask, BROKER, "", ("log.retention.ms", SET, "8000"))
    (config,) = describe(ask, TOPIC, "there", "retention.ms", synonyms=True).configs
    assert (config.value, config.config_source, config.read_only, config.config_type) == ("7000", 1, False, 5)
    # Word for word what Kafka 4.2 answers.
    assert sources(config) == [
        ("retention.ms", "7000", 1),
        ("log.retention.ms", "9000", 2),
        ("log.retention.ms", "8000", 3),
        ("log.retention.hours", "100", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_topic_that_sets_nothing_shows_where_the_default_comes_from(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    edit(ask, BROKER, "", ("log.retention.ms", SET, "8000"))
    (config,) = describe(ask, TOPIC, "there", "retention.ms").configs
    assert (config.value, config.config_source, config.synonyms) == ("8000", 3, [])


def test_documentation_comes_only_when_it_is_asked_for(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    without = describe(ask, TOPIC, "there").configs
    documented = describe(ask, TOPIC, "there", docs=True).configs
    assert {config.documentation for config in without} == {None}
    assert all(config.documentation for config in documented)
    assert len(without) == 34


def test_keys_that_are_not_there_are_left_out(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    configs = describe(ask, TOPIC, "there", "segment.ms", "nonsense").configs
    assert [config.name for config in configs] == ["segment.ms"]


def test_the_broker_tells_what_can_be_changed(ask: Ask) -> None:
    configs = {config.name: config for config in describe(ask, BROKER, "1").configs}
    assert (configs["node.id"].value, configs["node.id"].read_only, configs["node.id"].config_source) == ("1", True, 4)
    assert not configs["log.retention.ms"].read_only


def test_all_brokers_have_what_was_set_for_all(ask: Ask) -> None:
    assert describe(ask, BROKER, "").configs == []
    edit(ask, BROKER, "", ("log.retention.ms", SET, "8000"))
    (config,) = describe(ask, BROKER, "").configs
    assert (config.name, config.value, config.config_source) == ("log.retention.ms", "8000", 3)


def test_a_groups_settings(ask: Ask) -> None:
    edit(ask, GROUP, "mine", ("consumer.session.timeout.ms", SET, "50000"))
    configs = {config.name: config for config in describe(ask, GROUP, "mine", synonyms=True).configs}
    session, heartbeat = configs["consumer.session.timeout.ms"], configs["consumer.heartbeat.interval.ms"]
    assert sources(session) == [
        ("consumer.session.timeout.ms", "50000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    assert sources(heartbeat) == [("group.consumer.heartbeat.interval.ms", "5000", 5)]


def test_the_brokers_id_is_the_nodes(ask: Ask) -> None:
    broker, node = describe(ask, BROKER, "1", "node.id", "broker.id").configs
    assert [broker.name, node.name] == ["broker.id", "node.id"]
    assert [broker.value, node.value] == ["1", "1"]


def test_a_metrics_subscriptions_settings(ask: Ask) -> None:
    edit(ask, METRICS, "all", ("metrics", SET, "*"))
    configs = {config.name: config for config in describe(ask, METRICS, "all").configs}
    assert (configs["metrics"].value, configs["metrics"].config_source) == ("*", 7)
    assert (configs["interval.ms"].value, configs["interval.ms"].config_source) == ("300000", 5)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "what", ErrorCode.INVALID_REQUEST),
        (-1, "what", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_can_not_be_described(kind: int, name: str, code: ErrorCode, ask: Ask) -> None:
    described = describe(ask, kind, name)
    assert (described.error_code, described.resource_type, described.resource_name) == (code, kind, name)
    assert described.configs == []


def test_a_group_or_subscription_that_was_never_seen_has_its_defaults(ask: Ask) -> None:
    assert {describe(ask, kind, "never seen").error_code for kind in (GROUP, METRICS)} == {ErrorCode.NONE}
