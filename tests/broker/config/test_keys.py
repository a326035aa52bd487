"""The tables of keys, beside those of Apache Kafka 4.2, and of 4.3 and 4.4 for what only those have."""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.client_metrics_keys import CLIENT_METRICS_KEYS
from kohort.broker.config.group_keys import GROUP_KEYS, GROUP_LIMITS
from kohort.broker.config.ignored_keys import IGNORED_KEYS, REFUSED, REMOVED
from kohort.broker.config.inert_keys import THROTTLE_KEYS
from kohort.broker.config.keys import BOOLEAN, DOUBLE, INT, LIST, LONG, PASSWORD, Change, Key, Value, show
from kohort.broker.config.security_keys import SECURITY_KEYS
from kohort.broker.config.topic_keys import BROKER_KEY_OF, TOPIC_KEYS

KAFKA: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "config.json").read_text())

OTHERWISE = {"node.id": 1, "controller.listener.names": (), "queued.max.request.bytes": 256 * 1024 * 1024}
"""Keys that Kafka wants to be given, and what they are here if they aren't."""

FIXED = {
    name for name in SECURITY_KEYS.keys() & KAFKA["broker"].keys() if name.startswith(("ssl.", "sasl.", "principal."))
}
"""Keys that Kafka lets change at run time; here listeners are as they were started, with their newest certificates."""

OUR_BROKER_KEYS = {
    "group.consumer.moving.heartbeat.interval.ms": ("int", 500),
    "group.share.moving.heartbeat.interval.ms": ("int", 500),
    "group.streams.disconnect.timeout.ms": ("int", -1),
    "log.scrub.interval.ms": ("long", 86_400_000),
}
OUR_GROUP_KEYS = {
    "consumer.moving.heartbeat.interval.ms": ("int", 500),
    "share.moving.heartbeat.interval.ms": ("int", 500),
    "streams.disconnect.timeout.ms": ("int", -1),
}
"""Keys that Kafka doesn't have."""

NEWER_BROKER_KEYS = OUR_BROKER_KEYS | {
    "group.consumer.assignment.interval.ms": ("int", 1000),
    "group.consumer.max.assignment.interval.ms": ("int", 15_000),
    "group.consumer.min.assignment.interval.ms": ("int", 0),
    "group.share.assignment.interval.ms": ("int", 1000),
    "group.share.max.assignment.interval.ms": ("int", 15_000),
    "group.share.min.assignment.interval.ms": ("int", 0),
    "errors.deadletterqueue.auto.create.topics.enable": ("boolean", False),
    "errors.deadletterqueue.topic.name.prefix": ("string", "dlq."),
    "group.share.max.delivery.count.limit": ("int", 10),
    "group.share.max.partition.max.record.locks": ("int", 4000),
    "group.share.min.delivery.count.limit": ("int", 2),
    "group.share.min.partition.max.record.locks": ("int", 100),
    "group.streams.acceptable.recovery.lag": ("long", 10_000),
    "group.streams.assignment.interval.ms": ("int", 1000),
    "group.streams.max.assignment.interval.ms": ("int", 15_000),
    "group.streams.min.assignment.interval.ms": ("int", 0),
    "group.streams.assignors": ("list", ("optimal", "sticky")),  # in Kafka, sticky alone
    "group.streams.max.warmup.replicas": ("int", 20),
    "group.streams.min.task.offset.interval.ms": ("int", 15_000),
    "group.streams.num.warmup.replicas": ("int", 2),
    "group.streams.rack.aware.assignment.tags": ("list", ()),
    "group.streams.task.offset.interval.ms": ("int", 60_000),
}
NEWER_TOPIC_KEYS = {"errors.deadletterqueue.group.enable": ("boolean", False)}
NEWER_GROUP_KEYS = OUR_GROUP_KEYS | {
    "consumer.assignment.interval.ms": ("int", 1000),
    "share.assignment.interval.ms": ("int", 1000),
    "errors.deadletterqueue.copy.record.enable": ("boolean", False),
    "errors.deadletterqueue.topic.name": ("string", ""),
    "share.delivery.count.limit": ("int", 5),
    "share.partition.max.record.locks": ("int", 2000),
    "share.renew.acknowledge.enable": ("boolean", True),
    "streams.acceptable.recovery.lag": ("long", 10_000),
    "streams.assignment.interval.ms": ("int", 1000),
    "streams.assignor.name": ("string", None),
    "streams.num.warmup.replicas": ("int", 2),
    "streams.rack.aware.assignment.tags": ("list", ()),
    "streams.task.offset.interval.ms": ("int", 60_000),
}
"""Keys of Kafka 4.3 and 4.4, with their types and defaults there; and our own."""


# StandardAuthorizer's own: Kafka's broker hands them on without knowing them.
AUTHORIZER_KEYS: dict[str, tuple[str, object]] = {
    "super.users": ("string", ""),
    "allow.everyone.if.no.acl.found": ("boolean", False),
}

# Kafka has them at run time alone, without a default among its broker's keys.
RUN_TIME_KEYS: dict[str, tuple[str, object]] = dict.fromkeys(THROTTLE_KEYS, ("long", None))


def _value(default: object) -> object:
    return tuple(default) if isinstance(default, list) else default


@pytest.mark.parametrize(
    ("keys", "kafka", "newer"),
    [
        (BROKER_KEYS, KAFKA["broker"], NEWER_BROKER_KEYS | AUTHORIZER_KEYS | RUN_TIME_KEYS),
        (TOPIC_KEYS, KAFKA["topic"], NEWER_TOPIC_KEYS),
        (GROUP_KEYS, KAFKA["group"], NEWER_GROUP_KEYS),
        (CLIENT_METRICS_KEYS, KAFKA["client_metrics"], {}),
    ],
    ids=["broker", "topic", "group", "client metrics"],
)
def test_names_types_and_defaults_are_kafkas(
    keys: dict[str, Key], kafka: dict[str, list[Any]], newer: dict[str, tuple[str, object]]
) -> None:
    ours = {name: (key.type.name.lower(), OTHERWISE.get(name, key.default)) for name, key in keys.items()}
    older = {name: (kind, OTHERWISE.get(name, _value(default))) for name, (kind, default, *_) in kafka.items()}

    assert ours == older | newer


def test_what_can_be_changed_at_run_time_is_what_kafka_lets_change() -> None:
    changeable = {name for name, key in BROKER_KEYS.items() if key.change is not Change.NEVER}

    newer = {name for name in NEWER_BROKER_KEYS if name.startswith("errors.")}
    newer |= {f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")}
    kafkas = {name for name, (_, _, dynamic) in KAFKA["broker"].items() if dynamic} | RUN_TIME_KEYS.keys()
    assert changeable == kafkas - FIXED | newer


def test_every_key_of_kafkas_broker_is_known() -> None:
    ignored = {name: key.type.name.lower() for name, key in IGNORED_KEYS.items()}
    refused = {name: KAFKA["other_broker"].get(name) for name in REFUSED}

    assert ignored | refused == KAFKA["other_broker"]


def test_no_key_is_in_two_tables() -> None:
    assert not BROKER_KEYS.keys() & IGNORED_KEYS.keys()
    assert not (BROKER_KEYS.keys() | IGNORED_KEYS.keys()) & (REFUSED.keys() | REMOVED)


def test_defaults_of_topics_are_the_brokers_keys_that_kafka_has_for_them() -> None:
    synonyms = {
        name: [broker_key, *(other for other, _ in BROKER_KEYS[broker_key].synonyms)]
        for name, broker_key in BROKER_KEY_OF.items()
    }

    assert synonyms == KAFKA["broker_keys_of_topic_keys"]


def test_limits_are_keys_of_the_broker() -> None:
    limits = {limit for pair in GROUP_LIMITS.values() for limit in pair if limit is not None}

    assert limits <= BROKER_KEYS.keys()


KEYS = [*BROKER_KEYS.values(), *TOPIC_KEYS.values(), *GROUP_KEYS.values()]


@pytest.mark.parametrize("key", KEYS, ids=attrgetter("name"))
def test_a_default_is_a_value_of_its_key(key: Key) -> None:
    text = show(key.default)

    assert text is None or key.name == "broker.id" or key.parse(text) == key.default


@pytest.mark.parametrize("key", KEYS, ids=attrgetter("name"))
def test_every_key_is_explained_in_sentences(key: Key) -> None:
    assert key.doc[0].isupper()
    assert key.doc.endswith(".")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        (Key("k", BOOLEAN, None, ""), " TRUE ", True),
        (Key("k", INT, None, ""), "-2147483648", -(2**31)),
        (Key("k", INT, None, ""), "+7", 7),
        (Key("k", LONG, None, ""), "9223372036854775807", 2**63 - 1),
        (Key("k", DOUBLE, None, ""), "1e-3", 0.001),
        (Key("k", DOUBLE, None, ""), ".5", 0.5),
        (Key("k", LIST, None, ""), "a , b,c", ("a", "b", "c")),
        (Key("k", LIST, None, ""), " ", ()),
        (Key("k", PASSWORD, None, ""), "secret", "secret"),
        (TOPIC_KEYS["compression.gzip.level"], "-1", -1),
        (GROUP_KEYS["share.auto.offset.reset"], "by_duration:P1DT2H3M4.5S", "by_duration:P1DT2H3M4.5S"),
    ],
)
def test_text_becomes_a_value(key: Key, text: str, value: Value) -> None:
    assert key.parse(text) == value


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        (Key("k", BOOLEAN, None, ""), "yes", "true or false is needed"),
        (Key("k", INT, None, ""), "2147483648", "a 32-bit integer is needed"),
        (Key("k", INT, None, ""), "1_000", "a 32-bit integer is needed"),
        (Key("k", INT, None, ""), "9" * 5000, "a 32-bit integer is needed"),
        (Key("k", LONG, None, ""), "1.0", "a 64-bit integer is needed"),
        (Key("k", DOUBLE, None, ""), "nan", "a number is needed"),
        (Key("k", INT, None, "", low=3), "2", "at least 3 is needed"),
        (Key("k", INT, None, "", high=3), "4", "at most 3 is possible"),
        (TOPIC_KEYS["cleanup.policy"], "delete,none", "'none' is none of compact, delete"),
        (TOPIC_KEYS["compression.gzip.level"], "0", "1 to 9 is needed, or -1"),
        (TOPIC_KEYS["leader.replication.throttled.replicas"], "1-2", "a list of PARTITION:BROKER is needed, or *"),
        (BROKER_KEYS["log.retention.hours"], "0", "it can't be 0; -1 is no limit"),
        (BROKER_KEYS["group.streams.assignors"], "", "at least one is needed"),
        (BROKER_KEYS["group.streams.assignors"], "sticky,sticky", "a name is in the list twice"),
        (BROKER_KEYS["group.streams.assignors"], "best", "'best' is none of optimal, sticky"),
        (GROUP_KEYS["streams.rack.aware.assignment.tags"], "zone,rack,zone", "a name is in the list twice"),
        (BROKER_KEYS["listeners"], "PLAINTEXT:9092", "'PLAINTEXT:9092' isn't NAME://HOST:PORT"),
        (GROUP_KEYS["share.auto.offset.reset"], "by_duration:P", "latest, earliest or by_duration:PnDTnHnMn.nS"),
    ],
)
def test_text_that_is_no_value_is_refused_with_the_reason(key: Key, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace(".", r"\.").replace("*", r"\*")):
        key.parse(text)


def test_numbers_are_written_as_java_writes_them() -> None:
    assert [show(value) for value in (0.5, 1.7976931348623157e308, True, ("a", "b"), 7, None)] == [
        "0.5", "1.7976931348623157E308", "true", "a,b", "7", None,
    ]  # fmt: skip
