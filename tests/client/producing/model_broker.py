"""A partition's leader that keeps the rules of idempotent producers, and a producer's pure parts beside it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kohort.client.producing.accumulator import Accumulator
from kohort.client.producing.batch import Identity, ProducerBatch
from kohort.client.producing.batch_completer import BatchCompleter
from kohort.client.producing.delivery import Delivery
from kohort.client.producing.encoding import encode, stamp
from kohort.client.producing.produce_request import PartitionResponse
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_manager import TransactionManager
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.records.batch import check_batch
from kohort.protocol.records.rows import decode_rows

TARGET = TopicPartition("t", 0)


@dataclass
class ModelLeader:
    """What a broker keeps of one partition and one producer: the log, the epoch, the last five batches."""

    log: list[bytes] = field(default_factory=list)
    epoch: int = -1
    next_sequence: int = 0
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=5))  # first, count, offset
    refused: dict[bytes, ErrorCode] = field(default_factory=dict)  # what is wrong with records stays wrong

    def append(self, data: bytes) -> tuple[ErrorCode, int]:
        """Kafka's checks, in Kafka's order."""
        if data in self.refused:
            return self.refused[data], -1
        header = check_batch(data)
        first, count = header.base_sequence, header.record_count
        if header.producer_epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch == self.epoch:
            for sequence, number, offset in self.recent:
                if (sequence, number) == (first, count):
                    return ErrorCode.NONE, offset
            if first != self.next_sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        elif first != 0 and self.epoch >= 0:  # who isn't known yet may begin anywhere
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        else:
            self.recent.clear()
        offset = len(self.log)
        self.log += [value or b"" for value in decode_rows(data, header).values]
        self.epoch, self.next_sequence = header.producer_epoch, first + count
        self.recent.append((first, count, offset))
        return ErrorCode.NONE, offset


class ModelProducer:
    """The pure parts of a producer, driven by hand; one partition, times in ms."""

    def __init__(self, **settings: object) -> None:
        self.settings = ProducerSettings(**{"linger_ms": 0, "delivery_timeout_ms": 1000, **settings})  # type: ignore[arg-type]
        self.state = TransactionManager(None)
        self.state.initialized(Identity(7, 0))
        self.accumulator = Accumulator(self.settings)
        self.completer = BatchCompleter(self.accumulator, self.state, self.settings, lambda attempts: 10.0)
        self.queue = self.accumulator.queue(TARGET)
        self.accumulator.move(self.queue, 1)
        self.now = 0.0
        self.deliveries: list[Delivery] = []
        self.wire: deque[tuple[ProducerBatch, bytes]] = deque()
        self.unread: list[deque[bytes]] = []  # what was sent over lost connections, and the broker may yet read

    def send(self, count: int) -> None:
        """A batch of that many records, each of which has its number as value."""
        batch = self.accumulator.open_batch(self.queue, self.now)
        for _ in range(count):
            self.deliveries.append(Delivery(batch, batch.count))
            batch.keys.append(None)
            batch.values.append(b"%06d" % (len(self.deliveries) - 1))
            batch.timestamps.append(int(self.now))
            batch.count += 1
            batch.size += 18
            self.accumulator.buffered += 18

    def drain(self) -> int:
        """Put what is due on the wire; how many batches."""
        due = self.accumulator.due(1, self.now, self.state, self.completer.may_send)
        for batch in due.batches:
            if batch.encoded is None:
                encode(batch, self.settings)
            stamp(batch, transactional=False)
            assert batch.encoded is not None
            self.wire.append((batch, bytes(batch.encoded)))
        return len(due.batches)

    def answer(self, batch: ProducerBatch, code: ErrorCode, offset: int = -1) -> None:
        """A broker's answer arrives."""
        self.completer.handle_response(batch, PartitionResponse(index=0, error_code=code, base_offset=offset), self.now)
