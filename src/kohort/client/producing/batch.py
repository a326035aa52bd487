"""The records that go to a partition together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kohort.client.types import RecordMetadata, TopicPartition
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import HEADER_SIZE

__all__ = ["NO_HEADERS", "RECORD_OVERHEAD", "Identity", "Order", "PlainHeaders", "ProducerBatch"]

Order = tuple[int, ...]
"""Batches of a partition go in this order. The parts of a split batch have one number more."""

PlainHeaders = Sequence[tuple[str, bytes | None]]
NO_HEADERS: Final[PlainHeaders] = ()

RECORD_OVERHEAD: Final = 12
"""Bytes that a record takes beside key, value and headers, about: lengths, deltas, attributes."""


class Identity(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int
    epoch: int


class ProducerBatch:
    """Records of one partition, first as lists, later encoded, at last written or failed.

    Attributes:
        target: where it goes.
        order: its place in the partition.
        created: ms; the delivery timeout counts from here.
        size: bytes, about, that it will take; what it holds of the producer's memory.
        count: records.
        keys, values, timestamps, headers: the records, until `encoded`; headers are None while no record has any.
        encoded: the batch as it is sent.
        identity, sequence: of an idempotent producer, once it was drained.
        attempts: how often it was sent.
        doubtful: whether an attempt may have put it into the log, or may still do so.
        base_offset, append_time: where it was written, when by the broker's clock (-1: the records' own times count).
        error: why it wasn't.
        seen: the records, by place, whose errors somebody has looked at.
        trouble: the last error that it was sent again after.
    """

    __slots__ = (
        "_starts", "append_time", "attempts", "base_offset", "count", "created", "done", "doubtful", "encoded", "error",
        "headers", "identity", "keyed", "keys", "order", "parts", "seen", "sequence", "size", "target", "timestamps",
        "trouble", "values", "watchers",
    )  # fmt: skip

    def __init__(self, target: TopicPartition, order: Order, created: float) -> None:
        self.target = target
        self.order = order
        self.created = created
        self.size = HEADER_SIZE
        self.count = 0
        self.keyed = False
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: list[PlainHeaders] | None = None
        self.encoded: Buffer | None = None
        self.identity: Identity | None = None
        self.sequence = -1
        self.attempts = 0
        self.doubtful = False
        self.done = False
        self.base_offset = -1
        self.append_time = -1
        self.error: Exception | None = None
        self.seen: set[int] = set()
        self.trouble: Exception | None = None
        self.watchers: list[tuple[int, Callable[[], object]]] = []
        self.parts: list[ProducerBatch] = []
        self._starts: list[int] = []

    def add_headers(self, headers: PlainHeaders) -> None:
        """The headers of the record that is about to be counted in."""
        if self.headers is None:
            self.headers = [NO_HEADERS] * self.count
        self.headers.append(headers)

    def written(self, base_offset: int, append_time: int) -> None:
        """It is in the log. What was done before stays."""
        if not self.done:
            self.base_offset, self.append_time = base_offset, append_time
            self._finish()

    def fail(self, error: Exception) -> None:
        """It isn't, or nobody knows. What was done before stays."""
        if not self.done:
            self.error = error
            self._finish()

    def _finish(self) -> None:
        self.done = True
        self.keys, self.values, self.headers = [], [], None
        self.encoded = None
        watchers, self.watchers = self.watchers, []
        for _, watcher in watchers:
            watcher()

    def split_into(self, parts: list[ProducerBatch]) -> None:
        """Its records go on in `parts`, in their order; whoever watches a record watches it there."""
        self.parts = parts
        start = 0
        for part in parts:
            self._starts.append(start)
            start += part.count
        self.encoded = None
        watchers, self.watchers = self.watchers, []
        for index, watcher in watchers:
            self.watch(index, watcher)

    def holder_of(self, index: int) -> tuple[ProducerBatch, int]:
        """The batch that the record is in by now, and its place there."""
        batch = self
        while batch.parts:
            place = bisect_right(batch._starts, index) - 1
            index -= batch._starts[place]
            batch = batch.parts[place]
        return batch, index

    def watch(self, index: int, watcher: Callable[[], object]) -> None:
        """Call `watcher` once the record is done; at once if it is."""
        batch, index = self.holder_of(index)
        if batch.done:
            watcher()
        else:
            batch.watchers.append((index, watcher))

    def unwatch(self, index: int, watcher: Callable[[], object]) -> None:
        """Forget a watcher that may be there."""
        batch, index = self.holder_of(index)
        if (index, watcher) in batch.watchers:
            batch.watchers.remove((index, watcher))

    def metadata(self, index: int) -> RecordMetadata:
        """Where a record of a batch that was written is."""
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        own = self.timestamps[index] if self.timestamps else -1
        return RecordMetadata(*self.target, offset, self.append_time if self.append_time >= 0 else own)
