"""Requests of members of consumer groups."""

from __future__ import annotations

from typing import Any

from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def joining(**changes: Any) -> ConsumerGroupHeartbeatRequest:
    """Member "m" joins group "g", which reads topic "there"."""
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ("there",),
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**fields | changes)
