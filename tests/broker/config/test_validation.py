"""Changes of configurations that are refused, beside Apache Kafka 4.2's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.config import (
    Settings,
    check_broker_changes,
    check_broker_settings,
    check_client_metrics,
    check_group_configs,
    check_topic_configs,
)  # fmt: skip
from kohort.protocol.errors import KafkaError

KAFKA: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "config.json").read_text())


ELSEWHERE = {
    ("BROKER", "unknown.key"): "INVALID_REQUEST",  # Kafka keeps anything
    ("BROKER", "listener.name.foo.ssl.keystore.location"): "INVALID_REQUEST",  # listeners are as they were started
    ("BROKER", "min.insync.replicas"): None,  # there are no eligible leader replicas
    ("BROKER", "log.retention.ms"): "INVALID_REQUEST",  # Kafka takes 0, and then fails to start again
}
"""Where Kafka answers otherwise, and why we don't."""


@pytest.mark.parametrize(("kind", "name", "key", "value", "code"), KAFKA["refusals"])
def test_a_change_is_refused_where_kafka_refuses_it(
    kind: str, name: str, key: str, value: str, code: str | None
) -> None:
    try:
        match kind:
            case "TOPIC":
                check_topic_configs({key: value})
            case "BROKER":
                check_broker_changes({key: value}, all_brokers=not name)
                check_broker_settings(Settings(), Settings().with_dynamic({key: value}, {}))
            case "GROUP":
                check_group_configs({key: value}, Settings())
            case _:
                check_client_metrics({key: value})
    except KafkaError as error:
        answer: str | None = error.code.name
    else:
        answer = None

    assert answer == ELSEWHERE.get((kind, key), code)


def test_a_client_metrics_pattern_is_one_of_re2() -> None:
    check_client_metrics({"match": "client_id=(a+)+b, client_software_name=.*"})
    with pytest.raises(KafkaError, match=r"'client_id=\(\?=a\)' isn't PARAMETER=REGEX"):
        check_client_metrics({"match": "client_id=(?=a)"})


def test_lags_of_compaction_must_fit_together() -> None:
    with pytest.raises(KafkaError, match=r"min\.compaction\.lag\.ms is 5, more than max\.compaction\.lag\.ms"):
        check_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"})


def test_a_session_must_outlast_a_heartbeat() -> None:
    settings = Settings.of({"group.consumer.max.heartbeat.interval.ms": 100_000})

    with pytest.raises(KafkaError, match=r"must be more than consumer\.heartbeat\.interval\.ms"):
        check_group_configs({"consumer.heartbeat.interval.ms": "45000"}, settings)


def test_a_value_can_be_taken_away() -> None:
    check_broker_changes({"log.retention.ms": None}, all_brokers=True)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ({}, {"num.io.threads": "16"}, None),
        ({}, {"num.io.threads": "17"}, "num.io.threads=17: at most double the current 8"),
        ({}, {"num.io.threads": "3"}, "num.io.threads=3: at least half of the current 8"),
        ({}, {"num.network.threads": "1"}, None),  # 3 // 2, as Kafka reckons
        ({"background.threads": "40"}, {}, "background.threads=10: at least half of the current 40"),
        ({"num.replica.fetchers": "2"}, {"num.replica.fetchers": "4", "num.io.threads": "99"}, "num.io.threads=99"),
        ({}, {"log.cleaner.threads": "0"}, "log.cleaner.threads=0: at least half of the current 1"),
    ],
)
def test_thread_counts_are_at_most_doubled_and_at_least_halved(
    before: dict[str, str], after: dict[str, str], problem: str | None
) -> None:
    settings, changed = (Settings().with_dynamic({}, configs) for configs in (before, after))
    if problem is None:
        check_broker_settings(settings, changed)
        return
    with pytest.raises(KafkaError, match=problem.replace(".", r"\.")):
        check_broker_settings(settings, changed)


def test_a_brokers_value_for_groups_keeps_to_its_bounds_at_run_time() -> None:
    key = "group.consumer.assignment.interval.ms"
    check_broker_settings(Settings(), Settings().with_dynamic({key: "15000"}, {}))
    with pytest.raises(KafkaError, match=r"group\.consumer\.max\.assignment\.interval\.ms allows no more than 15000"):
        check_broker_settings(Settings(), Settings().with_dynamic({key: "15001"}, {}))
