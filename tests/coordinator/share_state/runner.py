"""A shard of the share coordinator with a log in memory: records are encoded, decoded and replayed as by a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from kohort.coordinator.share_state import SharePartitionKey, ShareState, ShareStateSettings, ShareStateShard
from kohort.coordinator.step import Record, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.stored import SHARE_STATE_TOPIC, decode_key, record_type

TOPIC = UUID(int=7)
PARTITIONS = 3
KEY = SharePartitionKey("g", TOPIC, 0)
SETTINGS = ShareStateSettings(share_coordinator_snapshot_update_records_per_snapshot=3)


class Runner:
    """Attributes:
    log: encoded keys and values, by offset.
    broken: whether appends fail.
    """

    def __init__(self, settings: ShareStateSettings = SETTINGS) -> None:
        self.settings = settings
        self.topics = {TOPIC: PARTITIONS}
        self.now = 1_000
        self.log: dict[int, tuple[bytes, bytes | None]] = {}
        self.broken = False
        self.shard = self.new_shard()

    def new_shard(self) -> ShareStateShard:
        return ShareStateShard(0, self.settings, lambda topic_id: self.topics.get(topic_id, 0))

    def run(self, operation: Callable[..., Step], *args: Any) -> Any:
        """Runs an operation, and returns its answer; time goes on by 1 ms."""
        self.now += 1
        answers: list[Any] = []
        self.perform(operation(*args, answers.append))
        assert len(answers) == 1
        return answers[0]

    def perform(self, step: Step) -> None:
        if step.records and self.broken:
            assert step.failed is not None
            step = step.failed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for key, value in step.records:
            kind = record_type(SHARE_STATE_TOPIC, key.__message__.key)
            offset = max(self.log, default=-1) + 1
            self.log[offset] = kind.encode_key(key), None if value is None else kind.encode_value(value)
            self.shard.replay_at(offset, key, value)
        for reply, response in step.answers:
            reply(response)

    def records(self) -> list[Record]:
        records = []
        for raw, value in self.log.values():
            kind, key = decode_key(SHARE_STATE_TOPIC, raw)
            records.append(Record(key, None if value is None else kind.decode_value(value)[0]))
        return records

    def replayed(self, first: int = 0) -> ShareStateShard:
        """What a restart makes of the log from an offset on."""
        shard = self.new_shard()
        for offset, record in zip(self.log, self.records(), strict=True):
            if offset >= first:
                shard.replay_at(offset, *record)
        shard.loaded(self.now)
        return shard

    def state(self, key: SharePartitionKey = KEY) -> ShareState:
        state = self.shard.get(key)
        assert state is not None
        return state

    # Requests

    def initialize(self, state_epoch: int = 1, start_offset: int = -1, key: SharePartitionKey = KEY) -> Any:
        return self.run(self.shard.initialize, key, state_epoch, start_offset, self.now)

    def read(self, leader_epoch: int = 0, key: SharePartitionKey = KEY) -> Any:
        return self.run(self.shard.read, key, leader_epoch, self.now)

    def write(
        self,
        *batches: Any,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = -1,
        done: int = 0,
        key: SharePartitionKey = KEY,
    ) -> Any:
        return self.run(self.shard.write, key, state_epoch, leader_epoch, start_offset, done, batches, self.now)

    def summary(self, key: SharePartitionKey = KEY) -> Any:
        return self.run(self.shard.summary, key)

    def delete(self, key: SharePartitionKey = KEY) -> Any:
        return self.run(self.shard.delete, key)
