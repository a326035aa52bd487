"""The precedence of values, and errors in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.broker.config import ConfigError, Settings


def test_keys_without_effect_are_noted(tmp_path: Path) -> None:
    settings = Settings.load(overrides=["num.io.threads=8", "zookeeper.connect=here", "num.partitions=2"])

    assert settings.notes == (
        "num.io.threads (--set num.io.threads): without effect, for the broker is one event loop and sizes its own "
        "buffers",
        "zookeeper.connect (--set zookeeper.connect): without effect; Kafka doesn't know it any more either",
    )


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("num.partition=3", "there is no such key; did you mean num.partitions?"),
        ("log_segment_bytes=3", "there is no such key; did you mean log.segment.bytes?"),
        (
            "retention.ms=3",
            "there is no such key; that is a topic's key, the default of all topics is log.retention.ms",
        ),
        ("zzz=3", "there is no such key"),
        ("num.partitions=0", "'0' can't be: at least 1 is needed"),
        ("num.partitions=many", "'many' can't be: a 32-bit integer is needed"),
        ("num.io.threads=many", "'many' can't be: a 32-bit integer is needed"),
        (
            "alter.config.policy.class.name=org.Policy",
            "it isn't supported: it names a class of Java",
        ),
        ("super.users=User:a; bob", "'User:a; bob' can't be: 'bob' isn't TYPE:NAME, such as User:alice"),
        (
            "authorizer.class.name=org.Acl",
            "'org.Acl' can't be: it names a class of Java; the authorizer here is "
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ),
    ],
)
def test_what_can_not_be_taken_is_named_with_its_place_and_what_was_meant(override: str, problem: str) -> None:
    key = override.split("=")[0]

    with pytest.raises(ConfigError) as caught:
        Settings.load(overrides=[override])

    assert str(caught.value) == f"{key} (--set {key}): {problem}"


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\n\nlog.retention.mss=5\n")

    with pytest.raises(ConfigError) as caught:
        Settings.load(file, {"KOHORT_NUM_PARTITION": "1"}, ["log.retention.ms=x"])

    assert str(caught.value).split("\n") == [
        "KOHORT_NUM_PARTITION (environment): no such key; did you mean num.partitions?",
        f"log.retention.mss ({file}:3): there is no such key; did you mean log.retention.ms?",
        "log.retention.ms (--set log.retention.ms): 'x' can't be: a 64-bit integer is needed",
    ]


def test_a_secret_is_not_told() -> None:
    settings = Settings.load(overrides=["ssl.key.password=hunter2"])

    assert "hunter2" not in "".join(settings.notes)


@pytest.mark.parametrize(
    ("values", "retention"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": 2}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 5}, 300_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 5, "log.retention.ms": 10}, 10),
        ({"log.retention.hours": -1}, -1),
    ],
)
def test_other_units_count_where_ms_are_not_given(values: dict[str, object], retention: int) -> None:
    assert Settings.of(values).int("log.retention.ms") == retention


def test_the_old_name_of_the_node_id_will_do() -> None:
    assert Settings.of({"broker.id": 4}).int("node.id") == 4


@pytest.mark.parametrize(
    ("given", "overrides", "ids"),
    [
        ({}, {}, (1, 1)),
        ({"node.id": 3}, {}, (3, 3)),
        ({"broker.id": 3}, {}, (3, 3)),
        ({"node.id": 3, "broker.id": 3}, {}, (3, 3)),
        ({"node.id": 3}, {"node.id": 5}, (5, 5)),
        ({}, {"broker.id": 5}, (5, 5)),
    ],
)
def test_the_node_has_one_id(given: dict[str, object], overrides: dict[str, object], ids: tuple[int, int]) -> None:
    settings = Settings.of(given).with_overrides(overrides)

    assert (settings.int("node.id"), settings.int("broker.id")) == ids


def test_two_ids_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"broker\.id \(a program\): it must be the same as node\.id, which is 3"):
        Settings.of({"node.id": 3, "broker.id": 4})


def test_run_time_values_count_before_those_of_the_start() -> None:
    settings = Settings.of({"log.retention.ms": 1, "log.segment.bytes": 2_000_000, "message.max.bytes": 3})

    changed = settings.with_dynamic(
        {"log.retention.ms": "20", "log.segment.bytes": "2000001"}, {"log.retention.ms": "30"}
    )

    assert [changed.int(key) for key in ("log.retention.ms", "log.segment.bytes", "message.max.bytes")] == [
        30, 2_000_001, 3,
    ]  # fmt: skip


def test_overrides_leave_the_original_alone() -> None:
    settings = Settings.of({"num.partitions": 2})

    assert (settings.with_overrides({"num.partitions": 3}).int("num.partitions"), settings.int("num.partitions")) == (
        3,
        2,
    )


def test_a_key_is_read_as_what_it_is() -> None:
    with pytest.raises(TypeError, match="isn't an integer"):
        Settings().int("listeners")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"group.streams.session.timeout.ms": 3000}, "group.streams.min.session.timeout.ms allows no less than 45000"),
        ({"group.streams.num.standby.replicas": 5}, "group.streams.max.standby.replicas allows no more than 2"),
        ({"group.consumer.heartbeat.interval.ms": 20_000}, "max.heartbeat.interval.ms allows no more than 15000"),
        (
            {"group.share.min.session.timeout.ms": 1, "group.share.session.timeout.ms": 5000},
            "group.share.session.timeout.ms must be more than group.share.heartbeat.interval.ms",
        ),
    ],
)
def test_the_brokers_values_for_groups_keep_to_its_own_bounds(given: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Settings.of(given)
