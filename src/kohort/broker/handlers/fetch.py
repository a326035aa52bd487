"""Fetch: bytes of logs as they are, at once if there are enough, else when there are or when time is up."""

from __future__ import annotations

from typing import Final

from kohort.broker.context import Context
from kohort.broker.fetch_sessions import FetchPartition, FetchSession
from kohort.broker.reply import Reply
from kohort.broker.security import Operation, ResourceType
from kohort.coordinator.purgatory import DelayedOperation
from kohort.log.log import Log
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID

_Topic = FetchResponse.TopicResponse
_Read = FetchResponse.TopicResponse.Partition

READ_COMMITTED: Final = 1
BY_ID: Final = 13
"""First version that names topics by id."""


def handle(request: FetchRequest, context: Context) -> FetchResponse | Reply[FetchResponse]:
    """Read; if there is less than wanted, wait for more."""
    broker = context.broker
    try:
        session = broker.fetch_sessions.take(request, context.now)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(request, context, session)
    fetch.read()
    if request.max_wait_ms <= 0 or fetch.failed or not session.partitions or fetch.size >= request.min_bytes:
        return fetch.response()
    waiting = _Waiting(context.now + request.max_wait_ms, fetch)
    broker.fetches.try_complete_else_watch(waiting, fetch.watched)
    return waiting.reply


class _Fetch:
    """A fetch: what it reads, and what it answers.

    Attributes:
        size: bytes of records read.
        failed: whether a partition has an error, which the client shall know at once.
        watched: the logs that more may come to.
    """

    def __init__(self, request: FetchRequest, context: Context, session: FetchSession) -> None:
        self.request = request
        self.context = context
        self.session = session
        self.committed = request.isolation_level == READ_COMMITTED
        self.size = 0
        self.failed = False
        self.watched: list[Log] = []
        self._results: list[tuple[FetchPartition, _Read]] = []

    def read(self) -> None:
        """Read as much of each partition as there is room for, in the session's order."""
        left = min(self.request.max_bytes, self.context.broker.fetch_max_bytes)
        self.size = 0
        self.failed = False
        self.watched = []
        self._results = []
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
        log = partition.log
        up_to = log.last_stable_offset if self.committed else log.high_watermark
        try:
            if wanted.last_epoch >= 0:
                epoch, end = log.end_offset_for_epoch(wanted.last_epoch)
                if epoch >= 0 and (epoch < wanted.last_epoch or end < wanted.offset):
                    result.diverging_epoch = _Read.DivergingEpoch(epoch=epoch, end_offset=end)
                    self.failed = True  # the client has to hear of it now
                    return ErrorCode.NONE
            if not log.log_start_offset <= wanted.offset <= log.log_end_offset:
                return ErrorCode.OFFSET_OUT_OF_RANGE
            if wanted.offset < up_to:
                room = min(left, wanted.max_bytes)
                # The first batch of a response is given whole, however large it is, or a client could get stuck.
                if room > 0 or not self.size:
                    result.records = log.read(wanted.offset, max(room, 0), up_to=up_to, min_one=not self.size)
                if self.committed and result.records:
                    result.aborted_transactions = [
                        _Read.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                        for aborted in log.aborted_transactions(wanted.offset, up_to, size=len(result.records))
                    ]
        except KafkaError as error:
            return error.code
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        result.log_start_offset = log.log_start_offset
        self.watched.append(log)
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
    """A fetch that waits for records."""

    def __init__(self, deadline: int, fetch: _Fetch) -> None:
        super().__init__(deadline)
        self.fetch = fetch
        self.reply: Reply[FetchResponse] = Reply()

    def try_complete(self) -> bool:
        """Complete the fetch if there are enough bytes by now, or if there is an error to tell."""
        self.fetch.read()
        if not self.fetch.failed and self.fetch.size < self.fetch.request.min_bytes:
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Answer with what was read last."""
        self.reply(self.fetch.response())

    def on_expiration(self) -> None:
        """Nothing more: what there is was sent on completion."""
