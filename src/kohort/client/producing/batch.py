"""A batch of records for one partition."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kohort.client.types import RecordMetadata, TopicPartition
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import HEADER_SIZE

Order = tuple[int, ...]
"""Batches of a partition are sent in this order. The parts of a split batch have one number more."""

PlainHeaders = Sequence[tuple[str, bytes | None]]
NO_HEADERS: Final[PlainHeaders] = ()

RECORD_OVERHEAD: Final = 12
"""Approximate bytes that a record takes beside key, value and headers: lengths, deltas, attributes."""


class Identity(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int
    epoch: int


class ProducerBatch:
    """Records of one partition, first as lists, later encoded, in the end written or failed.

    Attributes:
        order: its place in the partition.
        created: ms; the delivery timeout counts from here.
        size: approximate encoded bytes; its part of `buffer_memory`.
        count: records.
        keys, values, timestamps, headers: the records, until `encoded`; headers are None while no record has any.
        encoded: the batch as it is sent.
        identity, sequence: of an idempotent producer, from the first attempt on.
        attempts: how often it was sent.
        doubtful: whether an attempt may have written it, or may still do so.
        base_offset, append_time: where it was written, when by the broker's clock (-1: the records' own times count).
        seen: indexes of the records whose errors the user has looked at.
        last_error: the error of the last attempt.
    """

    __slots__ = (
        "_starts", "append_time", "attempts", "base_offset", "count", "created", "done", "doubtful", "encoded", "error",
        "headers", "identity", "keyed", "keys", "last_error", "order", "parts", "seen", "sequence", "size", "target",
        "timestamps", "values", "watchers",
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
        self.last_error: Exception | None = None
        self.watchers: list[tuple[int, Callable[[], object]]] = []
        self.parts: list[ProducerBatch] = []
        self._starts: list[int] = []

    def add_headers(self, headers: PlainHeaders) -> None:
        """Adds the headers of the next record, before it is counted."""
        if self.headers is None:
            self.headers = [NO_HEADERS] * self.count
        self.headers.append(headers)

    def written(self, base_offset: int, append_time: int) -> None:
        """Completes the batch as written, unless it is done."""
        if not self.done:
            self.base_offset, self.append_time = base_offset, append_time
            self._finish()

    def fail(self, error: Exception) -> None:
        """Completes the batch with an error, unless it is done."""
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
        """Moves its records to `parts`, in their order, with their watchers."""
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
        """Returns the batch that the record is in by now, and its index there."""
        batch = self
        while batch.parts:
            place = bisect_right(batch._starts, index) - 1
            index -= batch._starts[place]
            batch = batch.parts[place]
        return batch, index

    def watch(self, index: int, watcher: Callable[[], object]) -> None:
        """Calls `watcher` once the record is done; at once if it is."""
        batch, index = self.holder_of(index)
        if batch.done:
            watcher()
        else:
            batch.watchers.append((index, watcher))

    def unwatch(self, index: int, watcher: Callable[[], object]) -> None:
        batch, index = self.holder_of(index)
        if (index, watcher) in batch.watchers:
            batch.watchers.remove((index, watcher))

    def metadata(self, index: int) -> RecordMetadata:
        """Returns where a record of a written batch is."""
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        own = self.timestamps[index] if self.timestamps else -1
        return RecordMetadata(*self.target, offset, self.append_time if self.append_time >= 0 else own)
