"""Fetch: reads batches from logs; waits up to `max_wait_ms` for `min_bytes` of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.fetch_sessions import PARTITIONS_A_SLICE, FetchPartition, FetchSession
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.broker.topics import Partition
from kohort.broker.turns import Slices
from kohort.coordinator.purgatory import DelayedOperation, Purgatory
from kohort.log.log import Log
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.records.batch import HEADER_SIZE, Compression
from kohort.protocol.schema import NO_UUID

SERVED: Final = Served(FetchRequest, versions=(4, 18), returns_records=True)

_Topic = FetchResponse.TopicResponse
_Read = FetchResponse.TopicResponse.Partition

READ_COMMITTED: Final = 1
STORAGE: Final = 6
"""First version with KAFKA_STORAGE_ERROR; older clients refresh their metadata and retry on NOT_LEADER_OR_FOLLOWER."""
ZSTD: Final = 10
"""First version in which records may be compressed with zstd (KIP-110)."""
BY_ID: Final = 13
"""First version that identifies topics by id."""


def handle(request: FetchRequest, context: Context) -> Slices[FetchResponse | Reply[Slices[FetchResponse]]]:
    """Reads, and waits if there is less than `min_bytes`."""
    broker = context.broker
    try:
        session = yield from broker.fetch_sessions.update(request, context.now, by_id=context.version >= BY_ID)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(request, context, session)
    yield from fetch.read()
    waits = request.max_wait_ms > 0 and not fetch.failed and session.partitions and fetch.size < fetch.min_bytes
    if not waits or context.session.gone:  # it may have gone between two slices
        return (yield from fetch.response())
    waiting = _DelayedFetch(context.now + request.max_wait_ms, fetch)
    context.session.on_close = waiting.force_complete
    for oldest in broker.waiting_partitions.put(waiting, len(fetch.found)):
        oldest.force_complete()  # its client asks again
    yield from waiting.wait(broker.fetches)
    return waiting.reply


class _Fetch:
    """A fetch: its request, and what was read for it.

    Attributes:
        min_bytes: of the request, at most the size of the largest response.
        size: bytes of records read.
        failed: whether a partition has an error, which ends the wait.
        found: for each partition without an error: the partition, the request for it, the offset where reading ended,
            and the bytes read.
    """

    def __init__(self, request: FetchRequest, context: Context, session: FetchSession) -> None:
        self.request = request
        self.context = context
        self.session = session
        self._committed = request.isolation_level == READ_COMMITTED
        quota = context.broker.throttling.fetch_bytes(context.session, context.client_id)
        self._max_bytes = min(request.max_bytes, context.broker.fetch_max_bytes)
        if quota is not None:
            self._max_bytes = min(self._max_bytes, quota)
        self.min_bytes = min(request.min_bytes, self._max_bytes)
        self.size = 0
        self.failed = False
        self.found: list[tuple[Partition, FetchPartition, int, int]] = []
        self._results: list[tuple[FetchPartition, _Read]] = []

    def read(self) -> Slices[None]:
        """Reads as much of each partition as fits, in the session's order."""
        left = self._max_bytes
        self.discard()
        for wanted in list(self.session.partitions.values()):
            result = _Read(
                partition_index=wanted.index, high_watermark=-1, last_stable_offset=-1, log_start_offset=-1, records=b""
            )
            try:
                self._read(wanted, result, left)
            except KafkaError as error:
                result.error_code = error.code
                self.failed = True
                self.context.broker.metrics.fetch_failed(error.code)
            else:
                assert result.records is not None
                self.size += len(result.records)
                left -= len(result.records)
            self._results.append((wanted, result))
            yield

    def read_again(self) -> Slices[FetchResponse]:
        """The response after a wait."""
        yield from self.read()
        response = yield from self.response()
        self.discard()
        return response

    def discard(self) -> None:
        """Drops what was read: a waiting fetch must not hold megabytes."""
        self.size = 0
        self.failed = False
        self.found = []
        self._results = []

    def end_offset(self, log: Log) -> int:
        """The offset where reading ends, by the isolation level."""
        return log.last_stable_offset if self._committed else log.high_watermark

    def _read(self, wanted: FetchPartition, result: _Read, left: int) -> None:
        """Reads a partition: sets what the result has beyond an error.

        Raises:
            KafkaError: the partition isn't there, or can't be read by this client, or at this offset.
        """
        partition = _find_partition(wanted, self.context)
        _check_readable(partition, wanted, self.context.version)
        log = partition.log
        if wanted.last_epoch >= 0 and (diverging := _diverging_epoch(log, wanted)) is not None:
            result.diverging_epoch = diverging
            self.failed = True  # the client must truncate now
            return
        if not log.log_start_offset <= wanted.offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        up_to = self.end_offset(log)
        if wanted.offset < up_to:
            self._read_records(log, wanted, result, up_to, left)
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        result.log_start_offset = log.log_start_offset
        self.found.append((partition, wanted, up_to, len(result.records or b"")))

    def _read_records(self, log: Log, wanted: FetchPartition, result: _Read, up_to: int, left: int) -> None:
        """Reads as much as fits, and for read_committed lists the transactions in it that were aborted."""
        room = min(left, wanted.max_bytes)
        first = not self.size
        if room <= 0 and not first:
            return
        # The first batch of a response is complete, however large, or the client could get stuck.
        result.records = log.read(wanted.offset, max(room, 0), up_to=up_to, min_one=first)
        if self._committed and result.records:
            result.aborted_transactions = [
                _Read.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in log.aborted_transactions(wanted.offset, up_to, size=len(result.records))
            ]

    def response(self) -> Slices[FetchResponse]:
        """The response with everything that was read, or with the changes in an incremental session.

        It is empty for a client over its quota: the client asks again once it has waited.
        """
        session = self.session
        context = self.context
        if context.broker.throttling.fetch(context.session, context.client_id, self.size):
            if session.incremental:
                return FetchResponse(session_id=session.id)
            context.broker.fetch_sessions.forget(session)  # an answer without partitions begins none
            return FetchResponse()
        topics: dict[object, _Topic] = {}
        for wanted, result in self._results:
            yield
            if session.incremental and not self._has_changed(wanted, result):
                continue
            wanted.last_high_watermark = result.high_watermark
            wanted.last_log_start_offset = result.log_start_offset
            wanted.last_error = result.error_code
            by_id = self.context.version >= BY_ID
            key = wanted.topic_id if by_id else wanted.name
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = _Topic(topic_id=wanted.topic_id) if by_id else _Topic(topic=wanted.name)
            topic.partitions.append(result)
            if session.id and result.records:
                session.move_to_end((wanted.name, wanted.topic_id, wanted.index))
        return FetchResponse(session_id=session.id, responses=list(topics.values()))

    def _has_changed(self, wanted: FetchPartition, result: _Read) -> bool:
        return bool(
            result.records
            or result.error_code
            or wanted.last_error
            or result.diverging_epoch is not None
            or result.high_watermark != wanted.last_high_watermark
            or result.log_start_offset != wanted.last_log_start_offset
        )


def _find_partition(wanted: FetchPartition, context: Context) -> Partition:
    """The partition, if the client may read its topic; if it may not, it doesn't learn whether a name exists."""
    topics = context.broker.topics
    by_id = wanted.topic_id != NO_UUID
    topic = topics.by_id(wanted.topic_id) if by_id else topics.get(wanted.name)
    if topic is None and by_id:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not context.allowed(Operation.READ, ResourceType.TOPIC, wanted.name if topic is None else topic.name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = None if topic is None else topic.partition(wanted.index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return partition


def _check_readable(partition: Partition, wanted: FetchPartition, version: int) -> None:
    """Raises the error of another leader epoch, of an offline log, or of records that the client doesn't know."""
    if fenced := partition.epoch_error(wanted.leader_epoch):
        raise KafkaError(fenced)
    if partition.offline is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR if version >= STORAGE else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if version < ZSTD and partition.log.config.codec == Compression.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def _diverging_epoch(log: Log, wanted: FetchPartition) -> _Read.DivergingEpoch | None:
    """Where the client's log and this one part (KIP-595); None if the client's is a prefix of this one."""
    epoch, end = log.end_offset_for_epoch(wanted.last_epoch)
    if epoch >= 0 and (epoch < wanted.last_epoch or end < wanted.offset):
        return _Read.DivergingEpoch(epoch=epoch, end_offset=end)
    return None


class _DelayedFetch(DelayedOperation):
    """A fetch that waits in the purgatory; it counts the bytes that arrive, and reads once there are enough."""

    def __init__(self, deadline: int, fetch: _Fetch) -> None:
        super().__init__(deadline)
        self.reply: Reply[Slices[FetchResponse]] = Reply()
        self._fetch = fetch
        self._missing = fetch.min_bytes - fetch.size
        self._watched: dict[Hashable, _WatchedPartition] = {}  # by log

    def wait(self, fetches: Purgatory) -> Slices[None]:
        """Waits in the purgatory; it may be complete when this returns."""
        yield from fetches.watch_in_slices(self, self._watch())
        # What has come since a partition was read, before it was watched.
        for number, log in enumerate(list(self._watched)):
            if self.completed:
                return
            self.check(log)
            if number % PARTITIONS_A_SLICE == 0:
                yield

    def _watch(self) -> Iterator[Log]:
        """Yields the logs that were read; from then on each is watched."""
        found = self._fetch.found
        self._fetch.discard()
        for partition, wanted, end, size in found:
            log = partition.log
            room = max(wanted.max_bytes, 1) - size
            self._watched[log] = _WatchedPartition(partition, wanted.offset, max(end, wanted.offset), room)
            yield log

    def try_complete(self) -> bool:
        """Completes the fetch if there are enough bytes now, or an error."""
        return any(self.check(log) for log in self._watched)

    def check(self, key: Hashable) -> bool:
        """The same, where one log has changed alone."""
        watched = self._watched[key]
        if watched.has_error():
            return self.force_complete()
        log = watched.partition.log
        end = self._fetch.end_offset(log)
        if end > watched.end and watched.room > 0:
            size = HEADER_SIZE  # no batch has less
            if self._missing > size:
                try:
                    size = len(log.read(watched.end, watched.room, up_to=end))
                except KafkaError:
                    return self.force_complete()  # which reads again, and reports the error
            watched.end = end
            watched.room -= size
            self._missing -= size
        return self._missing <= 0 and self.force_complete()

    def on_complete(self) -> None:
        context = self._fetch.context
        context.session.on_close = None
        context.broker.waiting_partitions.remove(self)
        self.reply(self._response())

    def _response(self) -> Slices[FetchResponse]:
        yield from self._fetch.context.broker.fetches.release_in_slices(self)
        return (yield from self._fetch.read_again())


@dataclass(slots=True)
class _WatchedPartition:
    """A partition that a fetch watches.

    Attributes:
        offset: where the fetch starts.
        end: records before it have been counted.
        room: how many more bytes count, by partition_max_bytes.
    """

    partition: Partition
    offset: int
    end: int
    room: int

    def has_error(self) -> bool:
        """Whether reading the partition now gives an error."""
        partition = self.partition
        return partition.topic.deleted or partition.offline is not None or partition.log.log_start_offset > self.offset
