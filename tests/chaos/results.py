"""What the application has put out, read by a client that isn't ours: librdkafka, committed records only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from .flights import Delivered, batch_result

__all__ = ["Results"]


class Results:
    """The last value of each group in the output topic, followed from its beginning.

    Attributes:
        groups: by airport and the hour's beginning (ms since 1970).
        records: how many were read.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.groups: dict[tuple[str, int], dict[str, Any]] = {}
        self.records = 0
        self._consumer = Consumer({
            "bootstrap.servers": servers, "group.id": f"results-{uuid.uuid4()}", "enable.auto.commit": False,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest", "log_level": 0,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def read(self, seconds: float = 0.5) -> None:
        """Take what has come."""
        for message in self._consumer.consume(10_000, seconds):
            if message.error() is not None:
                if message.error().retriable() or message.error().code() < 0:
                    continue  # the broker is away
                raise KafkaException(message.error())
            value = json.loads(message.value())
            hour = datetime.fromisoformat(value["window"])
            self.groups[value["origin"], int(hour.timestamp() * 1000)] = value
            self.records += 1

    @property
    def flights(self) -> int:
        """How many flights the groups count."""
        return sum(group["n"] for group in self.groups.values())

    def differences(self, delivered: Iterable[Delivered]) -> list[str]:
        """Where they differ from what a batch over the records gives."""
        expected = batch_result(delivered).groups
        found = [f"{group} shouldn't be there: {self.groups[group]}" for group in self.groups.keys() - expected.keys()]
        for group, summary in expected.items():
            if group not in self.groups:
                found.append(f"{group} is missing: {summary}")
            elif not _same(summary, self.groups[group]):
                found.append(f"{group} is {self.groups[group]} instead of {summary}")
        return found


def _same(expected: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(
        abs(given[name] - value) < 1e-9 * max(1, abs(value)) if isinstance(value, float) else given[name] == value
        for name, value in expected.items()
    )
