"""What comes out: an independent consumer (librdkafka) that reads what is committed."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from confluent_kafka import Consumer, TopicPartition

DELETED: Final = "__deleted"
"""A result has it that a record without a value has deleted."""

ExpectedT = TypeVar("ExpectedT", contravariant=True)


def result_of(key: bytes | None, value: bytes | None) -> bytes:
    """A result as JSON: of a record without a value its key's columns, and `DELETED`."""
    if value is not None:
        return value
    return (key or b"{}")[:-1] + f',"{DELETED}":true}}'.encode()


class Watcher(ABC, Generic[ExpectedT]):
    """Reads the results' topic from its start, as a context manager.

    Attributes:
        counted: records of the source that the latest results tell of.
        records: results read.
        arrived: when the last of them came, in s since 1970; 0: none has.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.counted = 0
        self.records = 0
        self.arrived = 0.0
        self._consumer = Consumer({
            "bootstrap.servers": servers, "group.id": f"{topic}-watcher", "isolation.level": "read_committed",
            "enable.auto.commit": False, "fetch.wait.max.ms": 100, "log_level": 0,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def poll(self, seconds: float) -> None:
        """Take what is there, waiting so long for it at most."""
        first = self._consumer.poll(seconds)
        messages = [] if first is None else [first, *self._consumer.consume(10_000, 0)]
        values = [result_of(message.key(), message.value()) for message in messages if message.error() is None]
        if values:
            self.records += len(values)
            self.arrived = time.time()
            self.take(values)

    @abstractmethod
    def take(self, values: Sequence[bytes]) -> None:
        """Take results, in the order in which they were read."""

    @abstractmethod
    def differences(self, expected: ExpectedT) -> list[str]:
        """Where the results aren't what a batch makes of the same records."""
