"""A log for the transaction coordinator that it restarts from, partitions that take markers, and short requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kohort.coordinator.step import Client, Step
from kohort.coordinator.transactions import (
    Markers,
    ProducerIdAndEpoch,
    TopicPartition,
    Transaction,
    TransactionSettings,
    TransactionShard,
    TransactionStep,
)
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kohort.protocol.messages.end_txn import EndTxnRequest
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from kohort.protocol.stored import TRANSACTION_TOPIC, decode_key, record_type

P0, P1, P2 = (TopicPartition("t", index) for index in range(3))


class Given(NamedTuple):
    """What InitProducerId or EndTxn answered."""

    code: int
    producer_id: int
    epoch: int


class Coordinator:
    """Carries out a shard's steps: appends bytes, replays, answers; markers wait in `due` until they are written."""

    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.settings = settings or TransactionSettings(transaction_max_timeout_ms=10_000)
        self.now = 1_000_000
        self.next_id = 100
        self.entries: list[tuple[bytes, bytes | None]] = []
        self.due: deque[Markers] = deque()
        self.fails: ErrorCode | None = None
        self.on_append: Callable[[Transaction | None, Transaction | None], None] = lambda before, after: None
        self.shard = self.make()

    def make(self) -> TransactionShard:
        return TransactionShard(0, self.settings, self._new_producer_id, coordinator_epoch=5)

    def _new_producer_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def run(self, step: Step) -> bool:
        """Carry a step out; whether it appended something."""
        assert isinstance(step, TransactionStep)
        kind = record_type(TRANSACTION_TOPIC, 0)
        if step.records and self.fails is not None:
            if step.failed is not None:
                failed = step.failed(self.fails)
                assert not failed.records
                self.run(failed)
            return False
        for key, value in step.records:
            raw = kind.encode_key(key), None if value is None else kind.encode_value(value)
            before = self.shard.get(key.transactional_id)  # type: ignore[attr-defined]
            self.entries.append(raw)
            self._replay(self.shard, *raw)
            self.on_append(before, self.shard.get(key.transactional_id))  # type: ignore[attr-defined]
        for answer in step.answers:
            answer.reply(answer.response)
        self.due.extend(step.markers)
        return bool(step.records)

    @staticmethod
    def _replay(shard: TransactionShard, raw_key: bytes, raw_value: bytes | None) -> None:
        kind, key = decode_key(TRANSACTION_TOPIC, raw_key)
        shard.replay(key, None if raw_value is None else kind.decode_value(raw_value)[0])

    def replayed(self) -> TransactionShard:
        """What a restart would make of the log."""
        shard = self.make()
        for entry in self.entries:
            self._replay(shard, *entry)
        return shard

    def restart(self) -> None:
        """Lose all but the log, and load it."""
        self.due.clear()
        self.shard = self.replayed()
        self.shard.loaded(self.now)
        while self.shard.pending_steps:
            self.run(self.shard.pending_steps.pop(0))

    def write_markers(self) -> list[Markers]:
        """Write all markers that are due."""
        written = []
        while self.due:
            markers = self.due.popleft()
            written.append(markers)
            due = self.shard.pending_markers(markers)
            self.run(self.shard.markers_written(markers.transactional_id, due, self.now))
        return written

    # Requests

    def init(self, name: str | None = "x", held: tuple[int, int] = (-1, -1), version: int = 5, **fields: Any) -> Given:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=fields.pop("timeout", 5000),
            producer_id=held[0],
            producer_epoch=held[1],
            **fields,
        )
        answers: list[Any] = []
        self.run(self.shard.init_producer_id(request, Client(version=version), self.now, answers.append))
        (answer,) = answers
        answer.encode(version)
        return Given(answer.error_code, answer.producer_id, answer.producer_epoch)

    def add(
        self, producer: tuple[int, int], *partitions: TopicPartition, name: str = "x", version: int = 3
    ) -> list[int]:
        """AddPartitionsToTxn; the error of each partition."""
        request = AddPartitionsToTxnRequest.Transaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=(index,)) for topic, index in partitions],
        )
        answers: list[Any] = []
        self.run(self.shard.add_partitions(request, Client(version=version), self.now, answers.append))
        (answer,) = answers
        return [result.partition_error_code for topic in answer.topic_results for result in topic.results_by_partition]

    def add_offsets(self, producer: tuple[int, int], name: str = "x", version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        answers: list[Any] = []
        self.run(self.shard.add_offsets(request, 7, Client(version=version), self.now, answers.append))
        (answer,) = answers
        code: int = answer.error_code
        return code

    def verify(
        self, producer: tuple[int, int], *partitions: TopicPartition, add: bool = False, name: str = "x"
    ) -> list[int]:
        """What precedes a produce; the error of each partition."""
        answers: list[Any] = []
        step = self.shard.verify_or_add(
            name, ProducerIdAndEpoch(*producer), partitions, add=add, now=self.now, reply=answers.append
        )
        self.run(step)
        (answer,) = answers
        return [answer[partition] for partition in partitions]

    def end(self, producer: tuple[int, int], commit: bool, name: str = "x", version: int = 5) -> Given:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        answers: list[Any] = []
        self.run(self.shard.end_txn(request, Client(version=version), self.now, answers.append))
        (answer,) = answers
        return Given(answer.error_code, answer.producer_id, answer.producer_epoch)

    def state(self, name: str = "x") -> str:
        return self.shard.describe(name).transaction_state
