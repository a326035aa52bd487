"""Configurations as clients are told them, and changes they ask for, beside what Apache Kafka 4.2 answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kohort.broker.config import (
    Settings,
)  # fmt: skip
from kohort.broker.config.describe import (
    ConfigSource,
    Described,
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)  # fmt: skip
from tests.broker.config.test_keys import FIXED, NEWER_BROKER_KEYS, NEWER_GROUP_KEYS

KAFKA: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "config.json").read_text())


DESCRIBED = KAFKA["described"]


# What the Kafka was started with, and what was changed then, when the vectors were made.
SETTINGS = Settings.of(
    {
        name: described["value"]
        for name, described in DESCRIBED["broker"].items()
        if any(source == ConfigSource.STATIC for _, _, source in described["synonyms"])
    }
).with_dynamic({"message.max.bytes": "2000000", "min.insync.replicas": "1"}, {"log.retention.ms": "5000"})


def _plain(described: list[Described]) -> dict[str, Any]:
    return {
        key.name: {
            "value": key.value,
            "source": key.source,
            "read_only": key.read_only,
            "type": key.type.name.lower(),
            "synonyms": [list(synonym) for synonym in key.synonyms],
        }
        for key in described
    }


def test_a_topic_is_described_as_by_kafka() -> None:
    described = describe_topic(SETTINGS, {"retention.ms": "1000", "cleanup.policy": "compact,delete"})

    newer = {"errors.deadletterqueue.group.enable"}  # from Kafka 4.4 on
    assert {name: key for name, key in _plain(described).items() if name not in newer} == DESCRIBED["topic"]


def test_a_broker_is_described_as_by_kafka() -> None:
    described = _plain(describe_broker(SETTINGS))

    # Kafka has no default for the first two, which it must be given; and no limit for the third.
    others = {"node.id", "controller.listener.names", "queued.max.request.bytes", *NEWER_BROKER_KEYS}
    assert {name: key for name, key in described.items() if name not in others} == {
        name: key | {"read_only": key["read_only"] or name in FIXED}
        for name, key in DESCRIBED["broker"].items()
        if name not in others
    }


def test_all_brokers_are_described_as_by_kafka() -> None:
    assert _plain(describe_all_brokers(SETTINGS)) == DESCRIBED["all_brokers"]


def test_a_group_is_described_as_by_kafka() -> None:
    described = _plain(describe_group(SETTINGS, {"consumer.session.timeout.ms": "50000"}))

    # Kafka 4.2 left out the broker's values, which are synonyms of a group's from 4.3 on.
    own = {name: key for name, key in described.items() if name not in NEWER_GROUP_KEYS}
    assert _without_synonyms(own) == _without_synonyms(DESCRIBED["group"])
    of_the_broker = {name: DESCRIBED["broker"].get(f"group.{name}", {}).get("synonyms") for name in own}
    assert own["consumer.session.timeout.ms"]["synonyms"] == [
        ["consumer.session.timeout.ms", "50000", ConfigSource.GROUP],
        ["group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT],
    ]
    assert {name: key["synonyms"] for name, key in own.items() if name != "consumer.session.timeout.ms"} == {
        name: of_the_broker[name] or key["synonyms"]
        for name, key in DESCRIBED["group"].items()
        if name != "consumer.session.timeout.ms"
    }


def _without_synonyms(described: dict[str, Any]) -> dict[str, Any]:
    return {name: {**key, "synonyms": []} for name, key in described.items()}


def test_a_groups_value_that_the_broker_sets_comes_from_there() -> None:
    settings = Settings.of({"group.share.record.lock.duration.ms": 40_000})
    (key,) = (key for key in describe_group(settings, {}) if key.name == "share.record.lock.duration.ms")

    assert (key.value, key.source) == ("40000", ConfigSource.STATIC)
    assert [tuple(synonym) for synonym in key.synonyms] == [
        ("group.share.record.lock.duration.ms", "40000", ConfigSource.STATIC),
        ("group.share.record.lock.duration.ms", "30000", ConfigSource.DEFAULT),
    ]


def test_the_default_of_a_groups_assignor_is_the_brokers_first() -> None:
    described = _plain(describe_group(Settings.of({"group.streams.assignors": "sticky,optimal"}), {}))

    assert described["streams.assignor.name"]["value"] == "sticky"


def test_a_client_metrics_subscription_is_described_as_by_kafka() -> None:
    assert _plain(describe_client_metrics({"interval.ms": "1000"})) == DESCRIBED["client_metrics"]


def test_a_secret_stays_secret() -> None:
    settings = Settings.of({"ssl.key.password": "hunter2"})

    (described,) = (key for key in describe_broker(settings) if key.name == "ssl.key.password")

    assert (described.sensitive, described.value, described.synonyms[0].value) == (True, None, None)


def test_what_is_set_for_a_listener_is_described_and_its_secrets_are_kept() -> None:
    settings = Settings.of(
        {
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.plain.sasl.jaas.config": "PlainLoginModule required user_alice=hunter2;",
        }
    )

    described = {key.name: key for key in describe_broker(settings)}

    assert described["listener.name.ssl.ssl.client.auth"].value == "required"
    secret = described["listener.name.ssl.plain.sasl.jaas.config"]
    assert (secret.sensitive, secret.value, secret.synonyms[0].value) == (True, None, None)


def test_a_key_without_effect_is_described_where_it_was_given() -> None:
    names = {key.name for key in describe_broker(Settings.of({"socket.send.buffer.bytes": 4}))}

    assert "socket.send.buffer.bytes" in names
    assert "socket.receive.buffer.bytes" not in names
