"""Fetches one range of offsets: request after request to the partition's leader, one response ahead of the reader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from kohort.client.cluster import Cluster
from kohort.client.consuming.completed_fetch import Piece, read_fetch
from kohort.client.consuming.fetch_session import BY_ID
from kohort.client.consuming.log_offsets import LogOffsets
from kohort.client.errors import ClientError, RecordError, is_retriable, kafka_error
from kohort.client.time_limit import time_limit_at
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID
from kohort.spark.reading.errors import RangeError

log = logging.getLogger("kohort.spark.reading")

PIECE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of batches that are decoded at once."""

_LANE: Final = "range"
_LEAST_FETCH: Final = 64 * 1024
_MOST_FETCH: Final = 8 * 1024 * 1024
_MOST_GROWN: Final = 2**30
_GUESSED_RECORD: Final = 512
"""Bytes a record takes, as long as nothing is known."""

_MAX_WAIT_MS: Final = 100
"""How long a broker may hold an answer back. It does so only where nothing is to be read any more."""

_EMPTY_ANSWERS: Final = 2
"""So many empty answers below the log's end mean that compaction has left nothing there."""

_Read = FetchResponse.TopicResponse.Partition


class Range(NamedTuple):
    """LogOffsets `start` to `end` (exclusive) of a partition."""

    topic: str
    partition: int
    start: int
    end: int


async def fetch_range(
    cluster: Cluster,
    wanted: Range,
    *,
    committed: bool,
    patience_ms: float,
    into: asyncio.Queue[Piece | RecordError | None],
    past_corrupt: bool = False,
) -> None:
    """Fetch a range; what came is put into the queue, piece by piece, and None after the last one.

    Args:
        cluster: started.
        wanted: the range.
        committed: whether records of open and aborted transactions are left out.
        patience_ms: how long to go on without any progress.
        into: its size bounds how far fetching runs ahead of reading.
        past_corrupt: whether a corrupt batch is put there as an error, in its place, and fetching goes on behind it.

    Raises:
        RangeError: the offsets aren't there (any more, or yet), a batch is corrupt, or no broker gave them in time.
        KafkaError, ClientError: what won't change by waiting, as TOPIC_AUTHORIZATION_FAILED.
    """
    await _RangeFetch(cluster, wanted, committed, patience_ms, into, past_corrupt).run()


class _RangeFetch:
    def __init__(
        self,
        cluster: Cluster,
        wanted: Range,
        committed: bool,
        patience_ms: float,
        into: asyncio.Queue[Piece | RecordError | None],
        past_corrupt: bool = False,
    ) -> None:
        self._cluster, self._wanted, self._committed = cluster, wanted, committed
        self._past_corrupt = past_corrupt
        self._patience_ms, self._into = patience_ms, into
        self._at = TopicPartition(wanted.topic, wanted.partition)
        self._offset = wanted.start
        self._size = _bounded((wanted.end - wanted.start) * _GUESSED_RECORD)
        self._topic_id = NO_UUID
        self._empty = 0
        self._failure: Exception | None = None

    async def run(self) -> None:
        now = asyncio.get_running_loop().time
        backoff = self._cluster.backoff()
        deadline = now() + self._patience_ms / 1000
        while self._offset < self._wanted.end:
            before = self._offset
            try:
                async with time_limit_at(deadline):
                    read = await self._ask()
                pieces = await self._take(read)
            except TimeoutError:
                pieces = ()
            except (KafkaError, ClientError) as error:
                if isinstance(error, RecordError):
                    raise self._error(str(error)) from error
                if not is_retriable(error) and not _moved(error):
                    raise
                log.info("%s: %s", self._at, error)
                self._failure = error
                pieces = ()
                self._cluster.request_refresh()
                # Pauses whatever is wrong: metadata may come at once, and be the same again.
                await asyncio.sleep(backoff.next() / 1000)
            for piece in pieces:
                if piece.headers:
                    await self._into.put(piece)
            if self._offset > before:
                backoff.reset()
                self._failure = None
                deadline = now() + self._patience_ms / 1000
            elif now() >= deadline:
                raise self._given_up()
        await self._into.put(None)

    async def _ask(self) -> _Read:
        info = self._cluster.info
        leader = info.leader(self._at)
        if leader is None:
            topic = await self._cluster.topic(self._at.topic)
            if self._at.partition not in topic.partitions:
                there = f"it has partitions 0 to {len(topic.partitions) - 1}"
                raise self._error(f"the topic has no partition {self._at.partition}: {there}")
            leader = info.leader(self._at)
            if leader is None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, str(self._at))
        connection = await self._cluster.connection(leader.node_id, _LANE)
        topic_id = info.topics[self._at.topic].topic_id
        if self._topic_id not in (NO_UUID, topic_id):
            raise self._error("the topic was deleted and created again")
        self._topic_id = topic_id
        version = connection.version(FetchRequest)
        if topic_id == NO_UUID:
            version = min(version, BY_ID - 1)
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._size,
            isolation_level=int(self._committed),
            session_id=0,
            session_epoch=-1,  # no session: the request isn't repeated
            # No rack_id: with one, a leader may name a follower to read from, and gives no records. That would be taken
            # for a gap that compaction has left.
            topics=[
                FetchRequest.Topic(
                    topic=self._at.topic,
                    topic_id=topic_id,
                    partitions=[
                        FetchRequest.Topic.Partition(
                            partition=self._at.partition,
                            current_leader_epoch=info.leader_epoch(self._at),
                            fetch_offset=self._offset,
                            partition_max_bytes=self._size,
                        )
                    ],
                )
            ],
        )
        timeout_ms = self._cluster.config.request_timeout_ms + _MAX_WAIT_MS
        answer = await connection.send(request, FetchResponse, version=version, timeout_ms=timeout_ms)
        if answer.error_code:
            raise kafka_error(answer.error_code, str(self._at))
        if answer.throttle_time_ms:
            self._empty = -1  # the answer may be empty for the quota's sake
        for each in answer.node_endpoints:
            self._cluster.info.learn_broker(Broker(each.node_id, each.host, each.port, each.rack))
        for topic_answer in answer.responses:
            for read in topic_answer.partitions:
                if read.partition_index == self._at.partition:
                    return read
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self._at}: the answer leaves it out")

    async def _take(self, read: _Read) -> Sequence[Piece]:
        """Takes what a response has; the offset moves behind it."""
        if read.error_code:
            await self._refused(read)
        if not read.records:
            self._nothing(read)
            return ()
        self._empty = 0
        data = bytes(read.records)
        aborted = read.aborted_transactions if self._committed else None
        answer = read_fetch(self._at, data, self._offset, aborted, piece_bytes=PIECE_BYTES)
        if answer.error is not None and not answer.pieces:
            if not self._past_corrupt:
                raise answer.error
            await self._into.put(answer.error)
            self._offset = answer.error.next_offset
            return ()
        if answer.cut_off:
            self._size = min(2 * self._size, _MOST_GROWN)
            return ()
        moved = answer.next_offset - self._offset
        if moved > 0:
            self._size = _bounded((self._wanted.end - answer.next_offset) * len(data) * 5 // (4 * moved))
            self._offset = answer.next_offset
        return answer.pieces

    async def _refused(self, read: _Read) -> None:
        error = kafka_error(read.error_code, str(self._at))
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise await self._out_of_range()
        hint = read.current_leader
        if hint is not None:
            self._cluster.learn_leader(self._at, hint.leader_id, hint.leader_epoch)
        raise error

    async def _out_of_range(self) -> Exception:
        ends = []
        for time in (-2, -1):
            found = (await LogOffsets(self._cluster).find({self._at: time}, timeout_ms=self._patience_ms))[self._at]
            ends.append(-1 if found is None else found.offset)
        first, last = ends
        if first <= self._offset <= last:  # it's there by now: a new leader hadn't caught up
            return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, str(self._at))
        why = (
            "its beginning was deleted: by the topic's retention, DeleteRecords, or a new topic of the same name"
            if self._offset < first
            else "the log was truncated, or the topic deleted and created again"
        )
        return self._error(f"the log has offsets {first} to {last} (exclusive) now: {why}")

    def _nothing(self, read: _Read) -> None:
        """An empty answer: the end isn't there yet, or compaction has left nothing up to it."""
        end = read.last_stable_offset if self._committed else read.high_watermark
        if end < self._wanted.end:
            kind = "last stable offset" if self._committed else "high watermark"
            self._failure = self._error(f"the {kind} is {end}: records behind it can't be read")
            return
        self._empty += 1
        if self._empty >= _EMPTY_ANSWERS:
            self._offset = self._wanted.end

    def _given_up(self) -> RangeError:
        why = self._failure
        detail = "no broker answered" if why is None else why.reason if isinstance(why, RangeError) else str(why)
        return self._error(f"no progress within {self._patience_ms / 1000:g} s: {detail}")

    def _error(self, reason: str) -> RangeError:
        return RangeError(*self._wanted, self._offset, reason)


def _moved(error: Exception) -> bool:
    """Whether it may be that the leader has moved, or the client's knowledge is old."""
    return isinstance(error, KafkaError) and error.code in (
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )


def _bounded(size: int) -> int:
    return max(_LEAST_FETCH, min(size, _MOST_FETCH))
