"""Settings of brokers for tests."""

from __future__ import annotations

from typing import Final

__all__ = ["TEST_SETTINGS"]

TEST_SETTINGS: Final[dict[str, object]] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 1,
    "group.streams.min.session.timeout.ms": 1,
    "group.streams.min.task.offset.interval.ms": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}
"""Settings that make tests quick: tasks are placed at once, short session timeouts, few partitions of internal
topics. Everything else has Kafka's defaults."""
