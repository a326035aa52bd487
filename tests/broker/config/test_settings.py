"""Where settings come from, which one counts, and what is wrong with those that can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.broker.config import ConfigError, Settings
from kohort.broker.config.component_settings import log_config, settings_for, topic_value
from kohort.coordinator.transactions.settings import TransactionSettings
from kohort.log.config import LogConfig

KAFKAS_OWN = """\
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_command_line_wins_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.segment.bytes=2000000\nfetch.max.bytes=2000\n")
    environ = {"KOHORT_NUM_PARTITIONS": "3", "KOHORT_LOG_SEGMENT_BYTES": "3000000", "PATH": "/bin"}

    settings = Settings.load(file, environ, ["num.partitions=4"])

    keys = ("num.partitions", "log.segment.bytes", "fetch.max.bytes", "auto.create.topics.enable")
    assert [(settings.value(key), settings.provenance(key)) for key in keys] == [
        (4, "--set num.partitions"),
        (3_000_000, "KOHORT_LOG_SEGMENT_BYTES"),
        (2000, f"{file}:3"),
        (True, "default"),
    ]


def test_the_file_that_comes_with_kafka_loads(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(KAFKAS_OWN)

    settings = Settings.load(file)

    assert settings.int("node.id") == 7


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
            "authorizer.class.name=org.Acl",
            "it can't be taken: it names a class of Java, and without it everybody would be allowed everything",
        ),
    ],
)
def test_what_can_not_be_taken_is_named_with_its_place_and_what_was_meant(override: str, problem: str) -> None:
    key = override.split("=")[0]

    with pytest.raises(ConfigError) as caught:
        Settings.load(overrides=[override])

    assert str(caught.value) == f"{key} (--set {key}): {problem}"


@pytest.mark.parametrize("override", ["num.partitions", "=3"])
def test_an_override_is_a_key_and_a_value(override: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {override}: key=value is needed"):
        Settings.load(overrides=[override])


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\n\nlog.retention.mss=5\n")

    with pytest.raises(ConfigError) as caught:
        Settings.load(file, {"KOHORT_NUM_PARTITION": "1"}, ["log.retention.ms=x"])

    assert str(caught.value).split("\n") == [
        "KOHORT_NUM_PARTITION (environment): it stands for no key; did you mean num.partitions?",
        f"log.retention.mss ({file}:3): there is no such key; did you mean log.retention.ms?",
        "log.retention.ms (--set log.retention.ms): 'x' can't be: a 64-bit integer is needed",
    ]


def test_a_secret_is_not_told() -> None:
    settings = Settings.load(overrides=["ssl.key.password=hunter2"])

    assert "hunter2" not in "".join(settings.notes)


def test_a_file_that_is_not_there_is_the_callers_problem(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Settings.load(tmp_path / "none")


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


def test_a_program_may_give_what_it_has() -> None:
    settings = Settings.of({"delete.topic.enable": False, "log.cleanup.policy": ["compact", "delete"], "node.id": 3})

    assert (settings.flag("delete.topic.enable"), settings.names("log.cleanup.policy"), settings.int("node.id")) == (
        False, ("compact", "delete"), 3,
    )  # fmt: skip


def test_a_key_is_read_as_what_it_is() -> None:
    with pytest.raises(TypeError, match="isn't a whole number"):
        Settings().int("listeners")


def test_the_defaults_of_a_log_are_kafkas() -> None:
    assert log_config(Settings(), {}) == LogConfig()


def test_a_topics_own_values_count_before_the_brokers() -> None:
    settings = Settings.of({"log.retention.hours": 1, "log.segment.bytes": 2_000_000, "producer.id.expiration.ms": 5})
    topic = {"segment.bytes": "3000000", "cleanup.policy": "compact,delete", "compression.type": "zstd"}

    config = log_config(settings, topic)

    wanted = LogConfig(
        retention_ms=3_600_000,
        segment_bytes=3_000_000,
        cleanup_policy=frozenset({"compact", "delete"}),
        compression_type="zstd",
        compression_level=3,
        producer_id_expiration_ms=5,
    )
    assert config == wanted


def test_tests_may_have_small_segments() -> None:
    assert log_config(Settings(), {"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_a_topics_single_value_can_be_asked_for() -> None:
    assert topic_value(Settings.of({"log.retention.hours": 1}), {}, "retention.ms") == 3_600_000


def test_a_parts_settings_are_taken_by_their_names() -> None:
    settings = Settings.of({"transaction.max.timeout.ms": 5})

    assert settings_for(TransactionSettings, settings) == TransactionSettings(transaction_max_timeout_ms=5)


def test_what_kubernetes_puts_into_the_environment_is_passed_over() -> None:
    environ = {"KOHORT_SERVICE_HOST": "10.0.0.1", "KOHORT_PORT": "tcp://10.0.0.1:9092", "KOHORT_PORT_9092_TCP": "x"}
    assert Settings.load(None, environ).int("num.partitions") == 1


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
