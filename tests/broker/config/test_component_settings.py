"""Settings of logs, topics and coordinators, taken from the broker's."""

from __future__ import annotations

from kohort.broker.config import Settings
from kohort.broker.config.component_settings import log_config, settings_for, topic_value
from kohort.coordinator.transactions.settings import TransactionSettings
from kohort.log.config import LogConfig


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
