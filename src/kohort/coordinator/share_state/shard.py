"""One shard of the share coordinator: the share partitions in one partition of `__share_group_state`.

| Request | Who asks | What it writes |
| --- | --- | --- |
| initialize | the group coordinator | a snapshot with a new state epoch |
| read | the partition's leader | its leader epoch, if it is new |
| write | the partition's leader | an update, or a snapshot once there were enough updates |
| summary | the group coordinator | nothing |
| delete | the group coordinator | a tombstone |

Writes with an older state epoch, reads and writes with an older leader epoch are fenced; an epoch of -1 is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from kohort.coordinator.share_state import records
from kohort.coordinator.share_state.batches import StateBatch, combine
from kohort.coordinator.share_state.results import Outcome, ReadOutcome, Summary
from kohort.coordinator.share_state.settings import ShareStateSettings
from kohort.coordinator.share_state.state import (
    NO_DELIVERY_COMPLETE_COUNT,
    NO_EPOCH,
    NO_START_OFFSET,
    SharePartitionKey,
    ShareState,
)
from kohort.coordinator.step import Answer, Record, Reply, Step, first_batch
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Data
from kohort.protocol.stored.share_snapshot import ShareSnapshotKey, ShareSnapshotValue
from kohort.protocol.stored.share_update import ShareUpdateKey, ShareUpdateValue

_Refuse = Callable[[ErrorCode, str | None], Any]


class ShareStateShard:
    """The states of a partition's share partitions.

    Args:
        partition: number of the partition of `__share_group_state`.
        partitions_of: how many partitions the topic with an id has; 0 if there is none.

    Attributes:
        pending_steps: steps that no request causes; there are none.
    """

    def __init__(self, partition: int, settings: ShareStateSettings, partitions_of: Callable[[UUID], int]) -> None:
        self.partition = partition
        self.pending_steps: list[Step] = []
        self._settings = settings
        self._partitions_of = partitions_of
        self._states: dict[SharePartitionKey, ShareState] = {}
        self._snapshot_at: dict[SharePartitionKey, int] = {}
        self._end_offset = 0

    def __len__(self) -> int:
        return len(self._states)

    def states(self) -> list[tuple[SharePartitionKey, ShareState]]:
        """All of them, as they are now."""
        return list(self._states.items())

    def get(self, key: SharePartitionKey) -> ShareState | None:
        return self._states.get(key)

    # Requests ---------------------------------------------------------------------------------------------------

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now: int, reply: Reply) -> Step:
        """Begins a state anew.

        Args:
            start_offset: where delivery begins; -1 leaves it to the group's reset policy.
            now: ms since 1970.
            reply: gets an `Outcome`: INVALID_REQUEST, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        state = self._states.get(key)
        if key.partition < 0:
            return _negative_partition(Outcome, reply)
        if state is not None and NO_EPOCH != state_epoch < state.state_epoch:
            return _refused(Outcome, reply, ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refused(Outcome, reply, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        begun = ShareState(
            snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0 if state is None else max(0, state.leader_epoch),
            start_offset=start_offset,
            # What is done with can be counted from an offset alone.
            delivery_complete_count=NO_DELIVERY_COMPLETE_COUNT if start_offset == NO_START_OFFSET else 0,
            create_timestamp=now,
            write_timestamp=now,
        )
        return _written(records.snapshot(key, begun), Outcome, Outcome(), reply)

    def read(self, key: SharePartitionKey, leader_epoch: int, now: int, reply: Reply) -> Step:
        """Reads a state for the leader of the partition, and fences its predecessors.

        Args:
            reply: gets a `ReadOutcome`: INVALID_REQUEST if the state wasn't initialized, FENCED_LEADER_EPOCH,
                UNKNOWN_TOPIC_OR_PARTITION.
        """
        state = self._states.get(key)
        if key.partition < 0:
            return _negative_partition(ReadOutcome, reply)
        if state is None:
            message = "The state of the share partition can't be read: it isn't initialized."
            return _refused(ReadOutcome, reply, ErrorCode.INVALID_REQUEST, message)
        if NO_EPOCH != leader_epoch < state.leader_epoch:
            return _refused(ReadOutcome, reply, ErrorCode.FENCED_LEADER_EPOCH)
        if not self._exists(key):
            return _refused(ReadOutcome, reply, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        found = ReadOutcome(
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            batches=state.batches,
            delivery_complete_count=state.delivery_complete_count,
        )
        if leader_epoch in (NO_EPOCH, state.leader_epoch):
            return Step(answers=[Answer(reply, found)])
        record = self._changed(key, state, leader_epoch, state.start_offset, state.delivery_complete_count, (), now)
        return _written(record, ReadOutcome, found, reply)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now: int,
        reply: Reply,
    ) -> Step:
        """Writes what has changed in a state.

        Args:
            start_offset: -1 leaves it as it is.
            batches: may overlap; see `combine`.
            reply: gets an `Outcome`: INVALID_REQUEST if the state wasn't initialized or a batch ends before it
                begins, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        state = self._states.get(key)
        if key.partition < 0:
            return _negative_partition(Outcome, reply)
        if state is None:
            message = "The state of the share partition can't be written: it isn't initialized."
            return _refused(Outcome, reply, ErrorCode.INVALID_REQUEST, message)
        if NO_EPOCH != leader_epoch < state.leader_epoch:
            return _refused(Outcome, reply, ErrorCode.FENCED_LEADER_EPOCH)
        if NO_EPOCH != state_epoch < state.state_epoch:
            return _refused(Outcome, reply, ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refused(Outcome, reply, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if any(not 0 <= batch.first_offset <= batch.last_offset for batch in batches):
            message = "The offsets of a batch of states aren't a range."
            return _refused(Outcome, reply, ErrorCode.INVALID_REQUEST, message)
        record = self._changed(key, state, state.leader_epoch, start_offset, delivery_complete_count, batches, now)
        return _written(record, Outcome, Outcome(), reply)

    def summary(self, key: SharePartitionKey, reply: Reply) -> Step:
        """Reads a state without its batches.

        Args:
            reply: gets a `Summary`, with a start offset of -1 if the state wasn't initialized: INVALID_REQUEST,
                UNKNOWN_TOPIC_OR_PARTITION.
        """
        if key.partition < 0:
            return _negative_partition(Summary, reply)
        if not self._exists(key):
            return _refused(Summary, reply, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = self._states.get(key)
        if state is None:
            return Step(answers=[Answer(reply, Summary(start_offset=NO_START_OFFSET))])
        found = Summary(
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        return Step(answers=[Answer(reply, found)])

    def delete(self, key: SharePartitionKey, reply: Reply) -> Step:
        """Deletes a state; one that isn't there counts as deleted.

        Args:
            reply: gets an `Outcome`: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
        """
        if key.partition < 0:
            return _negative_partition(Outcome, reply)
        if not self._exists(key):
            return _refused(Outcome, reply, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if key not in self._states:
            return Step(answers=[Answer(reply, Outcome())])
        return _written(records.tombstone(key), Outcome, Outcome(), reply)

    # What happens without a request -----------------------------------------------------------------------------

    def delete_orphans(self) -> Step:
        """Deletes states of topics that were deleted. O(share partitions).

        One batch at most: the next run does the rest.
        """
        return Step(first_batch(records.tombstone(key) for key in self._states if not self._exists(key)))

    def snapshot_cold(self, now: int) -> Step:
        """Writes snapshots again that are old, so that what is before them can be deleted; not in a quiet log.

        One batch at most: the next run does the rest.
        """
        if all(state.cold for state in self._states.values()):
            return Step()
        before = now - self._settings.share_coordinator_cold_partition_snapshot_interval_ms
        return Step(
            first_batch(
                records.snapshot(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now))
                for key, state in self._states.items()
                if state.write_timestamp <= before
            )
        )

    def redundant_before(self) -> int:
        """The offset in the log before which nothing is needed any more: where the oldest last snapshot is."""
        return min(self._snapshot_at.values(), default=self._end_offset)

    # The log ----------------------------------------------------------------------------------------------------

    def replay(self, key: Data, value: Data | None, producer: tuple[int, int] | None = None) -> None:
        """Applies a record whose offset isn't known: the end of what was replayed so far."""
        self.replay_at(self._end_offset, key, value)

    def replay_at(self, offset: int, key: Data, value: Data | None) -> None:
        """Applies the record at an offset of the log; those of unknown types, such as a newer server's, are ignored."""
        self._end_offset = offset + 1
        if isinstance(key, ShareSnapshotKey):
            place = SharePartitionKey(key.group_id, key.topic_id, key.partition)
            if value is None:
                self._states.pop(place, None)
                self._snapshot_at.pop(place, None)
            elif isinstance(value, ShareSnapshotValue):
                self._states[place] = ShareState.of_snapshot(value)
                self._snapshot_at[place] = offset
        elif isinstance(key, ShareUpdateKey) and isinstance(value, ShareUpdateValue):
            place = SharePartitionKey(key.group_id, key.topic_id, key.partition)
            state = self._states.get(place)
            self._states[place] = ShareState.of_update(value) if state is None else state.updated(value)
            self._snapshot_at.setdefault(place, offset)

    def loaded(self, now: int) -> None:
        """Nothing waits for the log to be loaded."""

    # ------------------------------------------------------------------------------------------------------------

    def _exists(self, key: SharePartitionKey) -> bool:
        return key.partition < self._partitions_of(key.topic_id)

    def _changed(
        self,
        key: SharePartitionKey,
        state: ShareState,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now: int,
    ) -> Record:
        """An update; or a snapshot, if there were enough updates since the last one."""
        update = records.update(
            key,
            state.snapshot_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            combine((), batches, start_offset),
        )
        if state.updates < self._settings.share_coordinator_snapshot_update_records_per_snapshot:
            return update
        assert isinstance(update.value, ShareUpdateValue)
        snapshot = replace(
            state.updated(update.value),
            snapshot_epoch=state.snapshot_epoch + 1,
            create_timestamp=now,
            write_timestamp=now,
        )
        return records.snapshot(key, snapshot)


def _negative_partition(kind: _Refuse, reply: Reply) -> Step:
    return _refused(kind, reply, ErrorCode.INVALID_REQUEST, "The number of the partition is negative.")


def _refused(kind: _Refuse, reply: Reply, code: ErrorCode, message: str | None = None) -> Step:
    return Step(answers=[Answer(reply, kind(code, message or code.name))])


def _written(record: Record, kind: _Refuse, answer: Any, reply: Reply) -> Step:
    return Step([record], [Answer(reply, answer)], partial(_refused, kind, reply))
