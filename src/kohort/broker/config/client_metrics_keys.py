"""The keys of a client metrics subscription (KIP-714)."""

from __future__ import annotations

from typing import Final

from kohort.broker.config.keys import INT, LIST, Key, keys_by_name

CLIENT_METRICS_KEYS: Final = keys_by_name(
    (
        Key("interval.ms", INT, 300_000, "Time between two pushes of a client, in ms.", 100, 3_600_000),
        Key("match", LIST, (), "Which clients: PARAMETER=REGEX each, all of which have to match."),
        Key("metrics", LIST, (), "Beginnings of the names of metrics to be pushed; * is all."),
    )
)
"""Kafka 4.2's keys."""
