"""Produce: appends batches to partitions, and responds once they are safe."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.expansion import Expansion
from kohort.broker.handlers import Served
from kohort.broker.reply import BadRequestError, Reply
from kohort.broker.topics import Partition, Topic
from kohort.broker.turns import Slices
from kohort.coordinator.transactions import ProducerIdAndEpoch, verification_error
from kohort.log.record_checks import InvalidRecordsError
from kohort.log.types import AppendInfo, Origin
from kohort.log.validation import CheckedBatch, check_in_slices, sent_header
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.produce import ProduceRequest, ProduceResponse
from kohort.protocol.records.batch import Compression
from kohort.protocol.schema import Records

SERVED: Final = Served(ProduceRequest, versions=(3, 13), takes_records=True)

_TopicResponse = ProduceResponse.TopicResponse
_Partition = ProduceResponse.TopicResponse.PartitionResponse

BY_ID: Final = 13
"""First version that identifies topics by id."""
ABORTABLE: Final = 11
"""First version with TRANSACTION_ABORTABLE."""
IMPLICIT_ADD: Final = 12
"""First version in which producing adds the partition to the transaction (KIP-890, transactions v2)."""
ZSTD: Final = 7
"""First version in which records may be compressed with zstd (KIP-110)."""

_COORDINATOR_ERRORS: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


def handle(request: ProduceRequest, context: Context) -> Slices[Reply[ProduceResponse | BadRequestError | None]]:
    """Appends to each partition on its own. With acks=0 there is no response, but an error closes the connection."""
    production = _Production(request, context)
    yield from production.run()
    return production.reply


class _Production:
    """A produce request in progress; done when every partition has its response."""

    def __init__(self, request: ProduceRequest, context: Context) -> None:
        self.request = request
        self.context = context
        self.reply: Reply[ProduceResponse | BadRequestError | None] = Reply()
        self.by_id = context.version >= BY_ID
        self._transaction_version = 2 if context.version >= IMPLICIT_ADD else 0
        self._waiting = 1  # run() itself
        self._failed = False
        self._response = ProduceResponse(responses=[])

    def run(self) -> Slices[None]:
        request, context = self.request, self.context
        refusal = ErrorCode.NONE if request.acks in (-1, 0, 1) else ErrorCode.INVALID_REQUIRED_ACKS
        topics = context.broker.topics
        seen: set[tuple[str, int]] = set()
        for data in request.topic_data:
            yield
            if self.by_id:
                topic = topics.by_id(data.topic_id)
                responses = _TopicResponse(topic_id=data.topic_id)
            else:
                topic = topics.get(data.name)
                responses = _TopicResponse(name=data.name)
            self._response.responses.append(responses)
            error = refusal or self._topic_error(topic, data.name)
            for part in data.partition_data:
                yield
                response = _Partition(index=part.index, base_offset=-1)
                responses.partition_responses.append(response)
                if error:
                    self._fail(response, KafkaError(error))
                    continue
                assert topic is not None
                partition = topic.partition(part.index)
                if partition is None:
                    self._fail(response, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                elif (topic.name, part.index) in seen:
                    self._fail(response, KafkaError(ErrorCode.INVALID_REQUEST, "The partition is there twice."))
                else:
                    seen.add((topic.name, part.index))
                    yield from self._produce(partition, part.records, response)
        self._part_done()

    def _topic_error(self, topic: Topic | None, name: str) -> ErrorCode:
        if topic is None:
            # A client that may not write to a topic doesn't learn whether it exists.
            if not self.by_id and not self.context.allowed(Operation.WRITE, ResourceType.TOPIC, name):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return ErrorCode.UNKNOWN_TOPIC_ID if self.by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self.context.allowed(Operation.WRITE, ResourceType.TOPIC, topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic.internal and self.context.client_id != "__admin_client":
            return ErrorCode.INVALID_TOPIC_EXCEPTION  # only coordinators write their state
        return ErrorCode.NONE

    def _produce(self, partition: Partition, records: Records | None, response: _Partition) -> Slices[None]:
        if not records:
            self._fail(response, KafkaError(ErrorCode.INVALID_RECORD, "There are no records."))
            return
        try:
            header = sent_header(records)
        except KafkaError as error:
            self._fail(response, error)
            return
        if header.compression == Compression.ZSTD and self.context.version < ZSTD:
            self._fail(response, KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd came with Produce v7."))
            return
        transactional_id = self.request.transactional_id
        # Needs WRITE on the transactional id, even if the partition already takes part in the transaction.
        if header.transactional and (
            transactional_id is None
            or not self.context.allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        ):
            self._fail(response, KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        try:
            with Expansion(self.context.broker.expansions) as expansion:
                batch = yield from check_in_slices(
                    records, partition.log.config, Origin.CLIENT, self.context.now, expansion.expand
                )
        except KafkaError as error:
            self._fail(response, error)
            return
        if not header.transactional or partition.log.has_ongoing(header.producer_id):
            self._append(partition, batch, response)
            return
        assert transactional_id is not None
        self._waiting += 1

        def verified(code: ErrorCode) -> None:
            if code:
                self._fail(response, KafkaError(_produce_error(code, self.context.version)))
            else:
                self._append(partition, batch, response)
            self._part_done()

        self.context.broker.transactions.verify(
            transactional_id,
            ProducerIdAndEpoch(header.producer_id, header.producer_epoch),
            partition,
            add=self.context.version >= IMPLICIT_ADD,
            then=verified,
        )

    def _append(self, partition: Partition, batch: CheckedBatch, response: _Partition) -> None:
        broker = self.context.broker
        try:
            appended: AppendInfo = partition.log.append(
                batch,
                now=self.context.now,
                leader_epoch=partition.leader_epoch,
                transaction_version=self._transaction_version,
            )
        except KafkaError as error:
            self._fail(response, error)
            return
        response.base_offset = appended.base_offset
        response.log_append_time_ms = appended.log_append_time
        response.log_start_offset = appended.log_start_offset
        if self.request.acks != 0:
            self._waiting += 1
            broker.flusher.when_safe(partition.log, self._part_done, lambda error: self._flush_failed(response, error))
        else:
            broker.flusher.when_safe(partition.log)

    def _flush_failed(self, response: _Partition, error: KafkaError) -> None:
        self._fail(response, error)
        self._part_done()

    def _fail(self, response: _Partition, error: KafkaError) -> None:
        self._failed = True
        response.error_code = error.code
        response.base_offset = -1
        response.log_append_time_ms = -1
        response.log_start_offset = -1
        response.error_message = error.detail
        if isinstance(error, InvalidRecordsError):
            response.record_errors = [
                _Partition.RecordError(batch_index=each.index, batch_index_error_message=each.reason)
                for each in error.errors
            ]
        self.context.broker.metrics.produce_failed(error.code)

    def _part_done(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        if self.request.acks != 0:
            self.reply(self._response)
        elif self._failed:
            self.reply(BadRequestError("a produce request with acks=0 failed"))
        else:
            self.reply(None)


def _produce_error(code: ErrorCode, version: int) -> ErrorCode:
    """The producer's error where verification failed; clients before transactions v2 can only retry."""
    if code in _COORDINATOR_ERRORS or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < IMPLICIT_ADD):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return verification_error(code, abortable=version >= ABORTABLE)
