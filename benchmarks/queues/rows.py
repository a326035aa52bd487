"""The rows to work on, and what came of them."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

SCHEMA: Final = "id LONG, sent DOUBLE, ms INT, text STRING"
WARM: Final = -1
"""The id of rows that aren't counted."""
TEXT: Final = "a row of a hundred bytes or so, as they are: some words, and then a few words more"


class Rows:
    """Writes rows to a topic.

    Args:
        ms: how long the work on each waits.
    """

    def __init__(self, servers: str, name: str, ms: int) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
        self._topic, self._ms = f"{name}-rows", ms

    def write(self, count: int, first: int = 0) -> None:
        """Writes rows with ids from `first`, with the time now."""
        for number in range(first, first + count):
            self._write(number, self._ms)
        self._producer.flush()

    def warm_up(self, count: int) -> None:
        """Writes rows that nobody waits for."""
        for _ in range(count):
            self._write(WARM, 0)
        self._producer.flush()

    def _write(self, number: int, ms: int) -> None:
        row = {"id": number, "sent": time.time(), "ms": ms, "text": TEXT}
        self._producer.produce(self._topic, json.dumps(row).encode())
        self._producer.poll(0)


class Results:
    """Reads what was made of rows, from the topic's start.

    Attributes:
        taken: seconds from a row's writing until its first result was read, by id.
        workers: the processes that have done some, in order.
        warm: results of rows to warm up with.
        again: results of rows that had one.
    """

    def __init__(self, servers: str, name: str) -> None:
        self.taken: dict[int, float] = {}
        self.workers: dict[int, None] = {}
        self.warm = self.again = self._first = 0
        self._consumer = Consumer({
            "bootstrap.servers": servers, "group.id": f"{name}-results", "isolation.level": "read_committed",
            "enable.auto.commit": False, "fetch.wait.max.ms": 100, "log_level": 0,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(f"{name}-done", 0, 0)])

    def read(self, seconds: float) -> None:
        """Takes what is there, waiting so long for it at most."""
        first = self._consumer.poll(seconds)
        messages = [] if first is None else [first, *self._consumer.consume(10_000, 0)]
        now = time.time()
        for message in messages:
            if message.error() is None:
                self._take(json.loads(message.value() or b"{}"), now)

    def begin_at(self, first: int) -> None:
        """Counts rows from this id on, and forgets the others, whose results may come again."""
        self.taken.clear()
        self._first = first

    def close(self) -> None:
        """Reads no more."""
        self._consumer.close()

    def median_ms(self) -> float:
        """Of what rows have taken."""
        return 1000 * statistics.median(self.taken.values())

    def percentile_95_ms(self) -> float:
        """Of what rows have taken."""
        return 1000 * statistics.quantiles(self.taken.values(), n=20)[-1]

    def _take(self, row: dict[str, Any], now: float) -> None:
        self.workers.setdefault(row["worker"])
        if row["id"] == WARM:
            self.warm += 1
        elif row["id"] < self._first:
            return
        elif row["id"] in self.taken:
            self.again += 1
        else:
            self.taken[row["id"]] = now - row["sent"]
