"""Fetch: bytes of logs as they are, at once if there are enough, else when there are or when time is up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.fetch_sessions import FetchPartition, FetchSession
from kohort.broker.reply import Reply
from kohort.broker.topics import Partition
from kohort.coordinator.purgatory import DelayedOperation
from kohort.log.log import Log
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.records.batch import HEADER_SIZE, Compression
from kohort.protocol.schema import NO_UUID

_Topic = FetchResponse.TopicResponse
_Read = FetchResponse.TopicResponse.Partition

READ_COMMITTED: Final = 1
STORAGE: Final = 6
"""First version that knows KAFKA_STORAGE_ERROR; clients before look for another leader, and come again."""
ZSTD: Final = 10
"""First version in which records may be compressed with zstd (KIP-110)."""
BY_ID: Final = 13
"""First version that names topics by id."""


def handle(request: FetchRequest, context: Context) -> FetchResponse | Reply[FetchResponse]:
    """Read; if there is less than wanted, wait for more."""
    broker = context.broker
    try:
        session = broker.fetch_sessions.take(request, context.now, by_id=context.version >= BY_ID)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(request, context, session)
    fetch.read()
    if request.max_wait_ms <= 0 or fetch.failed or not session.partitions or fetch.size >= fetch.min_bytes:
        return fetch.response()
    waiting = _Waiting(context.now + request.max_wait_ms, fetch)
    context.session.on_close = waiting.force_complete
    broker.fetches.try_complete_else_watch(waiting, waiting.logs)
    return waiting.reply


class _Fetch:
    """A fetch: what it reads, and what it answers.

    Attributes:
        min_bytes: how much is wanted, if there is room for so much.
        size: bytes of records read.
        failed: whether a partition has an error, which the client shall know at once.
        found: of each partition without an error where it is, what is wanted of it, where reading ended, and how many
            bytes there were.
    """

    def __init__(self, request: FetchRequest, context: Context, session: FetchSession) -> None:
        self.request = request
        self.context = context
        self.session = session
        self._committed = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, context.broker.fetch_max_bytes)
        self.min_bytes = min(request.min_bytes, self._max_bytes)
        self.size = 0
        self.failed = False
        self.found: list[tuple[Partition, FetchPartition, int, int]] = []
        self._results: list[tuple[FetchPartition, _Read]] = []

    def read(self) -> None:
        """Read as much of each partition as there is room for, in the session's order."""
        left = self._max_bytes
        self.forget()
        for wanted in self.session.partitions.values():
            result = _Read(
                partition_index=wanted.index, high_watermark=-1, last_stable_offset=-1, log_start_offset=-1, records=b""
            )
            result.error_code = self._read(wanted, result, left)
            if result.error_code:
                self.failed = True
                self.context.broker.metrics.fetch_failed(ErrorCode(result.error_code))
            else:
                assert result.records is not None
                self.size += len(result.records)
                left -= len(result.records)
            self._results.append((wanted, result))

    def forget(self) -> None:
        """Let go of what was read: while a fetch waits, it must not hold megabytes."""
        self.size = 0
        self.failed = False
        self.found = []
        self._results = []

    def readable(self, log: Log) -> int:
        """Up to where a log may be read."""
        return log.last_stable_offset if self._committed else log.high_watermark

    def _read(self, wanted: FetchPartition, result: _Read, left: int) -> ErrorCode:
        topics = self.context.broker.topics
        by_id = wanted.topic_id != NO_UUID
        topic = topics.by_id(wanted.topic_id) if by_id else topics.get(wanted.name)
        if topic is None:
            if not by_id and not self.context.allowed(Operation.READ, ResourceType.TOPIC, wanted.name):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self.context.allowed(Operation.READ, ResourceType.TOPIC, topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partition = topic.partition(wanted.index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if refused := partition.epoch_error(wanted.leader_epoch):
            return refused
        if partition.offline is not None:
            return (
                ErrorCode.KAFKA_STORAGE_ERROR if self.context.version >= STORAGE else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        log = partition.log
        if self.context.version < ZSTD and log.config.codec == Compression.ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        up_to = self.readable(log)
        try:
            if wanted.last_epoch >= 0:
                epoch, end = log.end_offset_for_epoch(wanted.last_epoch)
                if epoch >= 0 and (epoch < wanted.last_epoch or end < wanted.offset):
                    result.diverging_epoch = _Read.DivergingEpoch(epoch=epoch, end_offset=end)
                    self.failed = True  # the client has to when_replied of it now
                    return ErrorCode.NONE
            if not log.log_start_offset <= wanted.offset <= log.log_end_offset:
                return ErrorCode.OFFSET_OUT_OF_RANGE
            if wanted.offset < up_to:
                room = min(left, wanted.max_bytes)
                # The first batch of a response is given whole, however large it is, or a client could get stuck.
                if room > 0 or not self.size:
                    result.records = log.read(wanted.offset, max(room, 0), up_to=up_to, min_one=not self.size)
                if self._committed and result.records:
                    result.aborted_transactions = [
                        _Read.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                        for aborted in log.aborted_transactions(wanted.offset, up_to, size=len(result.records))
                    ]
        except KafkaError as error:
            return error.code
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        result.log_start_offset = log.log_start_offset
        self.found.append((partition, wanted, up_to, len(result.records or b"")))
        return ErrorCode.NONE

    def response(self) -> FetchResponse:
        """Everything that was read, or in an incremental session what is news to the client."""
        session = self.session
        topics: dict[object, _Topic] = {}
        for wanted, result in self._results:
            if session.incremental and not self._news(wanted, result):
                continue
            wanted.told_high_watermark = result.high_watermark
            wanted.told_start_offset = result.log_start_offset
            wanted.told_error = result.error_code
            by_id = self.context.version >= BY_ID
            key = wanted.topic_id if by_id else wanted.name
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = _Topic(topic_id=wanted.topic_id) if by_id else _Topic(topic=wanted.name)
            topic.partitions.append(result)
            if session.id and result.records:
                session.served((wanted.name, wanted.topic_id, wanted.index))
        return FetchResponse(session_id=session.id, responses=list(topics.values()))

    def _news(self, wanted: FetchPartition, result: _Read) -> bool:
        return bool(
            result.records
            or result.error_code
            or wanted.told_error
            or result.diverging_epoch is not None
            or result.high_watermark != wanted.told_high_watermark
            or result.log_start_offset != wanted.told_start_offset
        )


class _Waiting(DelayedOperation):
    """A fetch that waits for records; it looks at those that come, each once, and reads all when there are enough."""

    def __init__(self, deadline: int, fetch: _Fetch) -> None:
        super().__init__(deadline)
        self.reply: Reply[FetchResponse] = Reply()
        self._fetch = fetch
        self._missing = fetch.min_bytes - fetch.size
        self._places = [
            _Place(partition, wanted.offset, max(end, wanted.offset), max(wanted.max_bytes, 1) - size)
            for partition, wanted, end, size in fetch.found
        ]
        fetch.forget()

    @property
    def logs(self) -> list[Log]:
        """Where records may come."""
        return [place.partition.log for place in self._places]

    def try_complete(self) -> bool:
        """Complete the fetch if there are enough bytes by now, or if there is an error to tell."""
        for place in self._places:
            log = place.partition.log
            if place.gone():
                return self.force_complete()
            end = self._fetch.readable(log)
            if end > place.end and place.room > 0:
                size = HEADER_SIZE  # no batch has less
                if self._missing > size:
                    try:
                        size = len(log.read(place.end, place.room, up_to=end))
                    except KafkaError:
                        return self.force_complete()  # which comes upon the error, and tells of it
                place.end = end
                place.room -= size
                self._missing -= size
        return self._missing <= 0 and self.force_complete()

    def on_complete(self) -> None:
        """Answer with what there is."""
        fetch = self._fetch
        fetch.context.session.on_close = None
        fetch.read()
        self.reply(fetch.response())
        fetch.forget()


@dataclass(slots=True)
class _Place:
    """A partition that a fetch watches.

    Attributes:
        offset: where the fetch begins.
        end: up to where records have been counted.
        room: how many bytes more count: a fetch takes only so much of a partition.
    """

    partition: Partition
    offset: int
    end: int
    room: int

    def gone(self) -> bool:
        """Whether there is nothing more to wait for, but an error."""
        partition = self.partition
        return partition.topic.deleted or partition.offline is not None or partition.log.log_start_offset > self.offset
