"""IncrementalAlterConfigs: single settings of topics, brokers, groups, client metrics and loggers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.config.component_settings import consumer_settings
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.broker.handlers.configs import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    Edit,
    describe,
    edit,
)
from tests.broker.handlers.conftest import Ask, Deny


def configured(broker: Broker) -> dict[tuple[int, str], dict[str, str]]:
    """All that was set for anything."""
    names = [(kind, name) for kind in ConfigResource for name in broker.topics.config_names(kind)]
    return {(kind, name): broker.topics.configs(kind, name) for kind, name in names}


def test_a_topics_setting_takes_hold_at_once(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 2)
    assert edit(ask, TOPIC, "there", ("retention.ms", SET, "7000")).error_code == ErrorCode.NONE
    assert [partition.log.config.retention_ms for partition in topic.partitions] == [7000, 7000]


def test_a_deleted_setting_is_back_at_its_default(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1, {"retention.ms": "7000"})
    edit(ask, TOPIC, "there", ("retention.ms", DELETE, None))
    assert (topic.configs, topic.partitions[0].log.config.retention_ms) == ({}, 604_800_000)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (None, ("cleanup.policy", APPEND, "compact"), "delete,compact"),
        ("compact", ("cleanup.policy", APPEND, "compact,delete"), "compact,delete"),
        ("compact,delete", ("cleanup.policy", SUBTRACT, "compact"), "delete"),
        ("delete", ("cleanup.policy", SUBTRACT, "compact"), "delete"),
        ("compact", ("cleanup.policy", APPEND, "delete,delete"), "compact,delete"),
    ],
)
def test_lists_grow_and_shrink(before: str | None, change: Edit, after: str, ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1, {} if before is None else {"cleanup.policy": before})
    edit(ask, TOPIC, "there", change)
    assert topic.configs["cleanup.policy"] == after


@pytest.mark.parametrize("settings", [{"group.streams.rack.aware.assignment.tags": "zone"}])
def test_a_groups_list_is_edited_from_the_brokers(ask: Ask) -> None:
    edit(ask, GROUP, "group", ("streams.rack.aware.assignment.tags", APPEND, "rack"))
    (config,) = describe(ask, GROUP, "group", "streams.rack.aware.assignment.tags").configs
    assert config.value == "zone,rack"


@pytest.mark.parametrize("settings", [{"log.cleanup.policy": "compact"}])
def test_a_list_that_is_not_set_grows_from_the_brokers_default(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    edit(ask, TOPIC, "there", ("cleanup.policy", APPEND, "delete"))
    assert topic.configs["cleanup.policy"] == "compact,delete"


@pytest.mark.parametrize(
    ("kind", "name", "edits", "code", "says"),
    [
        (TOPIC, "there", [("retention.msec", SET, "1")], ErrorCode.INVALID_CONFIG, "retention.ms"),
        (TOPIC, "there", [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG, "retention.ms"),
        (TOPIC, "there", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "retention.ms"),
        (TOPIC, "there", [("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, "APPEND"),
        (TOPIC, "there", [("nonsense", SUBTRACT, "1")], ErrorCode.INVALID_CONFIG, "nonsense"),
        (TOPIC, "there", [("retention.ms", 4, "1")], ErrorCode.INVALID_REQUEST, "4"),
        (TOPIC, "there", [("retention.ms", -1, "1")], ErrorCode.INVALID_REQUEST, "-1"),
        (TOPIC, "there", [("retention.ms", SET, "1")] * 2, ErrorCode.INVALID_REQUEST, "duplicate"),
        (TOPIC, "absent", [("retention.ms", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "absent"),
        (TOPIC, "", [("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST, "not allowed"),
        (TOPIC, "a b", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION, "a b"),
        (BROKER, "2", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST, "expected 1"),
        (BROKER, "one", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST, "integer"),
        (BROKER, "+1", [("log.retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST, "+1"),
        (BROKER, "1", [("log.dirs", SET, "/tmp")], ErrorCode.INVALID_REQUEST, "log.dirs"),
        (BROKER, "1", [("log.retention.ms", SET, "soon")], ErrorCode.INVALID_REQUEST, "log.retention.ms"),
        (BROKER, "", [("nonsense", SET, "1")], ErrorCode.INVALID_REQUEST, "nonsense"),
        (BROKER, "1", [("leader.replication.throttled.rate", SET, "-1")], ErrorCode.INVALID_REQUEST, "at least 0"),
        (BROKER, "1", [("num.io.threads", SET, "17")], ErrorCode.INVALID_REQUEST, "at most double"),
        (BROKER, "", [("group.share.assignment.interval.ms", SET, "15001")], ErrorCode.INVALID_REQUEST, "no more than"),
        (BROKER, "", [("num.io.threads", SET, "0")], ErrorCode.INVALID_REQUEST, "at least 1"),
        (
            TOPIC,
            "there",
            [("leader.replication.throttled.replicas", SET, "0-1")],
            ErrorCode.INVALID_CONFIG,
            "PARTITION",
        ),
        (METRICS, "", [("metrics", SET, "a")], ErrorCode.INVALID_REQUEST, "empty"),
        (METRICS, "new", [("metric", SET, "a")], ErrorCode.INVALID_REQUEST, "metric"),
        (METRICS, "new", [("interval.ms", SET, "99")], ErrorCode.INVALID_REQUEST, "interval.ms"),
        (METRICS, "new", [("match", SET, "client_id=[")], ErrorCode.INVALID_CONFIG, "client_id=["),
        (METRICS, "new", [("match", SET, "shoe_size=4")], ErrorCode.INVALID_CONFIG, "shoe_size"),
        (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")], ErrorCode.INVALID_REQUEST, "not allowed"),
        (GROUP, "new", [("consumer.session.timeout", SET, "1")], ErrorCode.INVALID_CONFIG, "session.timeout.ms"),
        (GROUP, "new", [("consumer.session.timeout.ms", SET, "1")], ErrorCode.INVALID_CONFIG, "group.consumer.min"),
        (GROUP, "new", [("streams.num.standby.replicas", SET, "9")], ErrorCode.INVALID_CONFIG, "standby"),
        (LOGGER, "1", [("kohort.nowhere", SET, "INFO")], ErrorCode.INVALID_CONFIG, "kohort.nowhere"),
        (LOGGER, "2", [("kohort", SET, "INFO")], ErrorCode.INVALID_REQUEST, "expected 1"),
        (99, "there", [], ErrorCode.INVALID_REQUEST, "99"),
        (0, "there", [], ErrorCode.INVALID_REQUEST, "0"),
    ],
)
def test_changes_that_are_refused(
    kind: int, name: str, edits: list[Edit], code: ErrorCode, says: str, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    before = configured(broker)
    refused = edit(ask, kind, name, *edits)
    assert (refused.error_code, refused.resource_type, refused.resource_name) == (code, kind, name)
    assert says in refused.error_message
    assert configured(broker) == before


def test_one_bad_change_spoils_those_beside_it(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    edit(ask, TOPIC, "there", ("retention.ms", SET, "1000"), ("segment.ms", SET, "soon"))
    assert topic.configs == {}


def test_a_resource_named_twice_is_left_alone(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1)
    config = IncrementalAlterConfigsRequest.Resource.Config(name="retention.ms", value="1000")
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=TOPIC, resource_name="there", configs=[config])
    responses = ask(IncrementalAlterConfigsRequest(resources=[resource, resource])).responses
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert topic.configs == {}


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (TOPIC, "there", "retention.ms", "1000"),
        (BROKER, "1", "log.retention.ms", "1000"),
        (BROKER, "", "log.retention.ms", "1000"),
        (METRICS, "all", "metrics", "*"),
        (GROUP, "mine", "consumer.session.timeout.ms", "50000"),
    ],
)
def test_only_checking_changes_nothing_and_setting_does(
    kind: int, name: str, key: str, value: str, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    checked = edit(ask, kind, name, (key, SET, value), validate_only=True)
    between = broker.topics.configs(ConfigResource(kind), name)
    assert edit(ask, kind, name, (key, SET, value)).error_code == checked.error_code == ErrorCode.NONE
    assert (between, broker.topics.configs(ConfigResource(kind), name)) == ({}, {key: value})


def test_a_brokers_setting_reaches_the_topics_that_do_not_set_it(ask: Ask, broker: Broker) -> None:
    default, own = broker.topics.create("default", 1), broker.topics.create("own", 1, {"retention.ms": "5"})
    edit(ask, BROKER, "", ("log.retention.ms", SET, "1000"))
    edit(ask, BROKER, "1", ("log.retention.ms", SET, "2000"))
    assert [topic.partitions[0].log.config.retention_ms for topic in (default, own)] == [2000, 5]


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
def test_who_may_not_alter(
    kind: int, resource_type: ResourceType, code: ErrorCode, ask: Ask, broker: Broker, deny: Deny
) -> None:
    deny(Operation.ALTER_CONFIGS, resource_type)
    assert edit(ask, kind, "1", ("retention.ms", SET, "1")).error_code == code


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("kohort.tests.admin")
    yield logger
    logger.setLevel(logging.NOTSET)


def test_a_loggers_level_is_set_and_taken_back(ask: Ask, logger: logging.Logger) -> None:
    edit(ask, LOGGER, "1", (logger.name, SET, "warn"))
    (config,) = describe(ask, LOGGER, "1", logger.name).configs
    edit(ask, LOGGER, "1", (logger.name, DELETE, None))
    assert (config.value, config.config_source, logger.level) == ("WARN", 6, logging.NOTSET)


@pytest.mark.parametrize(
    ("operation", "value", "code"),
    [
        (SET, "LOUD", ErrorCode.INVALID_CONFIG),
        (SET, "WARN", ErrorCode.NONE),
        (APPEND, "WARN", ErrorCode.INVALID_REQUEST),
        (SUBTRACT, "WARN", ErrorCode.INVALID_REQUEST),
    ],
)
def test_checking_a_loggers_level(
    operation: int, value: str, code: ErrorCode, ask: Ask, logger: logging.Logger
) -> None:
    assert edit(ask, LOGGER, "1", (logger.name, operation, value), validate_only=True).error_code == code
    assert logger.level == logging.NOTSET


def test_the_topmost_logger_keeps_a_level(ask: Ask) -> None:
    logging.getLogger("kohort")
    assert edit(ask, LOGGER, "1", ("kohort", DELETE, None)).error_code == ErrorCode.INVALID_REQUEST


def test_thread_counts_grow_step_by_step_and_say_that_nothing_changes(
    ask: Ask, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kohort.broker.admin")
    for count in ("16", "32"):
        assert edit(ask, BROKER, "", ("num.io.threads", SET, count)).error_code == ErrorCode.NONE
    assert broker.config.int("num.io.threads") == 32
    assert "without effect key=num.io.threads reason=the broker is one event loop" in caplog.text
    refused = edit(ask, BROKER, "", ("num.io.threads", DELETE, None))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "num.io.threads=8: at least half of the current 32" in refused.error_message


def test_what_counts_of_threads_is_the_nodes_own_number(ask: Ask, broker: Broker) -> None:
    edit(ask, BROKER, "1", ("num.io.threads", SET, "16"))
    assert edit(ask, BROKER, "", ("num.io.threads", SET, "99")).error_code == ErrorCode.NONE
    assert broker.config.int("num.io.threads") == 16


def test_throttles_of_a_reassignment_are_taken_and_taken_away(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    rate = ("leader.replication.throttled.rate", SET, "1000")
    replicas = ("leader.replication.throttled.replicas", APPEND, "0:1,1:1")
    assert edit(ask, BROKER, "1", rate).error_code == edit(ask, TOPIC, "there", replicas).error_code == ErrorCode.NONE
    (config,) = describe(ask, BROKER, "1", rate[0], synonyms=True).configs
    assert (config.value, config.read_only, config.is_sensitive, config.config_type) == ("1000", False, False, 5)
    assert [(each.name, each.source) for each in config.synonyms] == [(rate[0], 2)]  # Kafka has no default, either
    edit(ask, BROKER, "1", (rate[0], DELETE, None))
    edit(ask, TOPIC, "there", (replicas[0], DELETE, None))
    assert describe(ask, BROKER, "1", rate[0]).configs == []
    assert all(not each for each in configured(broker).values())


def test_the_least_time_between_two_assignments_is_the_brokers_at_run_time(ask: Ask, broker: Broker) -> None:
    edit(ask, BROKER, "", ("group.consumer.assignment.interval.ms", SET, "700"))
    (config,) = describe(ask, GROUP, "any", "consumer.assignment.interval.ms", synonyms=True).configs
    assert (config.value, config.config_source) == ("700", 3)
    assert consumer_settings(broker.config, {}).assignment_interval_ms == 700
