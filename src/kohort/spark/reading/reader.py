"""A synchronous reader of offset ranges: Arrow batches, no Python object a record."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kohort.client.cluster import Cluster
from kohort.client.column_codec import load_columns
from kohort.client.config import ClientConfig, Servers, client_config
from kohort.client.consuming.completed_fetch import Piece
from kohort.client.consuming.decoding import DecodedPiece
from kohort.client.consuming.log_offsets import LogOffsets
from kohort.client.errors import RecordError, raise_for
from kohort.client.loop_thread import LoopThread
from kohort.client.types import TopicPartition
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.reading.errors import RangeError
from kohort.spark.reading.fetching import Range, fetch_range

__all__ = ["CorruptBatch", "Range", "RangeReader", "shared"]

PATIENCE_MS: Final = 60_000

_AHEAD: Final = 4
"""Ranges that are fetched at once, the one that is read among them."""

_QUEUED: Final = 2
"""Pieces of a range that wait to be read."""


@dataclass(frozen=True)
class CorruptBatch:
    """A batch whose records can't be read.

    Attributes:
        offset, next_offset: of its first record that is wanted, and after its last one.
        reason: what is wrong with it.
        data: the batch, as far as it is known.
        timestamp: its latest, in ms; -1 if it isn't known.
    """

    partition: TopicPartition
    offset: int
    next_offset: int
    reason: str
    data: bytes = b""
    timestamp: int = -1

    @classmethod
    def of(cls, error: RecordError, wanted: Range, data: bytes = b"", timestamp: int = -1) -> CorruptBatch:
        end = min(error.next_offset, wanted.end)
        return cls(error.partition, error.offset, end, error.reason, data, timestamp)


class RangeReader:
    """Reads ranges of offsets for callers without an event loop, as Spark's Python workers.

    Connections, and a thread for them, are kept until `close`. After a fork, the child opens its own. Threads may share
    a reader.

    Args:
        servers: addresses, or a configuration.
        patience_ms: how long a range may make no progress (its leader moves, the broker restarts) before it's an error.

    Raises:
        ConfigError: settings that can't be.
    """

    def __init__(self, servers: Servers, *, patience_ms: float = PATIENCE_MS) -> None:
        self.config: ClientConfig = client_config(servers)
        self._patience_ms = patience_ms
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def read(
        self, topic: str, partition: int, start: int, end: int, *, committed: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """The records with offsets from `start` to `end` (exclusive), in order.

        Args:
            topic, partition: where.
            start, end: offsets. There may be fewer records: control records, aborted ones and those that compaction
                removed aren't given.
            committed: whether records of open and aborted transactions are left out. A range that ends beyond the last
                stable offset is waited for.

        Returns:
            Batches with `kohort.protocol.records.arrow.RECORD_SCHEMA`, none of them empty.

        Raises:
            RangeError: the offsets aren't there (any more, or yet), a batch is corrupt, or no broker gave them in time.
            KafkaError, ClientError: what won't change by waiting, as TOPIC_AUTHORIZATION_FAILED.
        """
        for _, batch in self.read_all([Range(topic, partition, start, end)], committed=committed):
            yield batch

    def read_all(
        self,
        ranges: Sequence[tuple[str, int, int, int]],
        *,
        committed: bool = True,
        corrupt: Callable[[CorruptBatch], None] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As `read`, of several ranges, one after the other; the next ones are fetched meanwhile.

        Args:
            ranges: (topic, partition, start, end) each.
            committed: as for `read`.
            corrupt: told of each batch whose records can't be read, which is left out; without it, such a batch is an
                error.

        Returns:
            (number of the range, batch) pairs.
        """
        for number, wanted, piece in self._pieces([Range(*each) for each in ranges], committed, corrupt):
            for batch in _decoded(piece, wanted, corrupt):
                yield number, batch

    def read_typed(self, wanted: Range, *, committed: bool = True) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """As `read`, each batch with the types of its timestamps (int32: 0 the producer's, 1 the broker's own)."""
        for _, _, piece in self._pieces([wanted], committed):
            for batch in _decoded(piece, wanted):
                yield batch, _timestamp_types(piece, batch)

    def _pieces(
        self, ranges: Sequence[Range], committed: bool, corrupt: Callable[[CorruptBatch], None] | None = None
    ) -> Iterator[tuple[int, Range, Piece]]:
        """What comes of ranges, in order, with the number of its range."""
        load_columns()  # while the first records are on their way; or, where there are none yet, for when there are
        wanted = [(number, each) for number, each in enumerate(ranges) if each.start < each.end]
        if not wanted:
            return
        opened = self._open()
        waiting = deque(wanted)
        running: deque[tuple[int, Range, _Fetch]] = deque()
        try:
            while waiting or running:
                while waiting and len(running) < _AHEAD:
                    number, each = waiting.popleft()
                    fetching = opened.fetch(each, committed, self._patience_ms, past_corrupt=corrupt is not None)
                    running.append((number, each, fetching))
                number, each, fetch = running[0]
                while (piece := opened.thread.run(fetch.next())) is not None:
                    if not isinstance(piece, RecordError):
                        yield number, each, piece
                    elif corrupt is not None:
                        corrupt(CorruptBatch.of(piece, each))
                running.popleft()
        finally:
            if running and not opened.thread.loop.is_closed() and opened.pid == os.getpid():
                opened.thread.run(_cancel([fetch for _, _, fetch in running]))

    def offsets(self, times: dict[TopicPartition, int], *, committed: bool = True) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time of each partition; None if there's no such record.

        Args:
            times: ms since 1970; -1 is the log's end, -2 its beginning.
            committed: whether the end is the last stable offset instead of the high watermark.

        Raises:
            KafkaError, ClientError: they couldn't be found within the reader's patience.
        """
        opened = self._open()
        return opened.thread.run(opened.offsets(times, committed, self._patience_ms))

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions.

        Raises:
            KafkaError: it isn't there (UNKNOWN_TOPIC_OR_PARTITION), or may not be seen.
            NoBrokerError: no broker answered in time.
        """
        opened = self._open()
        return opened.thread.run(opened.partitions(topic))

    def topics(self) -> list[str]:
        """The names of all topics that may be seen, without Kafka's internal ones.

        Raises:
            NoBrokerError: no broker answered in time.
        """
        opened = self._open()
        return opened.thread.run(opened.topics())

    def close(self) -> None:
        """Closes the connections; reading again opens new ones. May be called twice."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and opened.pid == os.getpid():
            opened.close()

    def _open(self) -> _Opened:
        if self._opened is not None and self._opened.pid != os.getpid():
            # A fork: the thread is gone, and the sockets belong to the parent. They are never touched again, not even
            # to free them, which would unregister them from the event loop that the parent still waits on.
            _left_behind.append(self._opened)
            self._opened = None
            self._lock = threading.Lock()
        with self._lock:
            if self._opened is None:
                self._opened = _Opened(self.config)
            return self._opened


_left_behind: Final[list[Any]] = []
_shared: dict[ClientConfig, RangeReader] = {}


def shared(servers: Servers) -> RangeReader:
    """The process' reader of a cluster, which stays open: connections are kept from one task of Spark to the next."""
    config = client_config(servers)
    return _shared.setdefault(config, RangeReader(config))


class _Fetch:
    def __init__(self, opened: _Opened, wanted: Range, committed: bool, patience_ms: float, past_corrupt: bool) -> None:
        self._pieces: asyncio.Queue[Piece | RecordError | None] = asyncio.Queue(_QUEUED)
        self.task = asyncio.create_task(self._run(opened, wanted, committed, patience_ms, past_corrupt))

    async def _run(
        self, opened: _Opened, wanted: Range, committed: bool, patience_ms: float, past_corrupt: bool
    ) -> None:
        cluster = await opened.cluster(patience_ms)
        await fetch_range(
            cluster,
            wanted,
            committed=committed,
            patience_ms=patience_ms,
            into=self._pieces,
            past_corrupt=past_corrupt,
        )

    async def next(self) -> Piece | RecordError | None:
        if self._pieces.empty() and not self.task.done():
            getting = asyncio.ensure_future(self._pieces.get())
            await asyncio.wait([getting, self.task], return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
            getting.cancel()
        if self._pieces.empty():
            self.task.result()
            return None
        return self._pieces.get_nowait()


class _Opened:
    """A reader's thread and connections, of one process."""

    def __init__(self, config: ClientConfig) -> None:
        self.pid = os.getpid()
        self._config = config
        self._cluster: Cluster | None = None
        self._starting: asyncio.Lock | None = None
        self.thread = LoopThread("kohort-range-reader")

    def fetch(self, wanted: Range, committed: bool, patience_ms: float, *, past_corrupt: bool) -> _Fetch:
        async def begin() -> _Fetch:
            return _Fetch(self, wanted, committed, patience_ms, past_corrupt)

        return self.thread.run(begin())

    async def cluster(self, patience_ms: float) -> Cluster:
        """The cluster, found when it's first needed."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._cluster is None:
                bounded = self._config
                if bounded.bootstrap_timeout_ms is None:
                    bounded = replace(bounded, bootstrap_timeout_ms=int(patience_ms))
                cluster = Cluster(bounded)
                await cluster.start()
                self._cluster = cluster
            return self._cluster

    async def offsets(
        self, times: dict[TopicPartition, int], committed: bool, patience_ms: float
    ) -> dict[TopicPartition, int | None]:
        finder = LogOffsets(await self.cluster(patience_ms), committed=committed)
        found = await finder.find(times, timeout_ms=patience_ms)
        return {at: None if each is None else each.offset for at, each in found.items()}

    async def partitions(self, topic: str) -> list[int]:
        answer = await self._metadata([MetadataRequest.Topic(name=topic)])
        (found,) = answer.topics
        raise_for(found.error_code, f"topic {topic}")
        return sorted(each.partition_index for each in found.partitions)

    async def topics(self) -> list[str]:
        answer = await self._metadata(None)
        return sorted(each.name for each in answer.topics if each.name and not each.error_code and not each.is_internal)

    async def _metadata(self, topics: list[MetadataRequest.Topic] | None) -> MetadataResponse:
        cluster = await self.cluster(PATIENCE_MS)
        return await cluster.ask_any(MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse)

    def close(self) -> None:
        async def end() -> None:
            if self._cluster is not None:
                await self._cluster.close()

        self.thread.run(end())
        self.thread.close()


async def _cancel(fetches: Sequence[_Fetch]) -> None:
    for fetch in fetches:
        fetch.task.cancel()
    await asyncio.gather(*(fetch.task for fetch in fetches), return_exceptions=True)


def _decoded(
    piece: Piece, wanted: Range, corrupt: Callable[[CorruptBatch], None] | None = None
) -> Iterator[pa.RecordBatch]:
    """A piece's records that are in the range."""
    module = load_columns().result()
    at = TopicPartition(wanted.topic, wanted.partition)
    rest: Piece | None = piece
    while rest is not None and rest.headers[0].base_offset < wanted.end:
        try:
            decoded = DecodedPiece(at, rest, max(wanted.start, rest.offset), module)
        except RecordError as error:
            if corrupt is None:
                raise RangeError(*wanted, error.offset, str(error)) from error
            header = rest.headers[0]
            corrupt(CorruptBatch.of(error, wanted, rest.data[header.position : header.end], header.max_timestamp))
            rest = rest.part(1) if len(rest.headers) > 1 else None
            continue
        batch = decoded.take_batch(decoded.left).select(RECORD_SCHEMA.names)
        if batch.num_rows and batch.column(0)[-1].as_py() >= wanted.end:
            batch = batch.slice(0, int(np.searchsorted(batch.column(0).to_numpy(), wanted.end)))
        if batch.num_rows:
            yield batch
        rest = decoded.rest


def _timestamp_types(piece: Piece, batch: pa.RecordBatch) -> pa.Array:
    appended = [header.log_append_time for header in piece.headers]
    if all(appended) or not any(appended):
        return pa.repeat(pa.scalar(int(appended[0]), pa.int32()), batch.num_rows)
    lasts = np.array([header.last_offset for header in piece.headers])
    return pa.array(np.array(appended, np.int32)[np.searchsorted(lasts, batch.column(0).to_numpy())])
