"""The records of `__share_group_state`: snapshots, updates, and tombstones."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.coordinator.share_state.batches import StateBatch
from kohort.coordinator.share_state.state import SharePartitionKey, ShareState
from kohort.coordinator.step import Record
from kohort.protocol.stored.share_snapshot import ShareSnapshotKey, ShareSnapshotValue
from kohort.protocol.stored.share_update import ShareUpdateKey, ShareUpdateValue


def snapshot(key: SharePartitionKey, state: ShareState) -> Record:
    """The whole state; nothing that was written of the key before counts any more."""
    return Record(
        ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            create_timestamp=state.create_timestamp,
            write_timestamp=state.write_timestamp,
            state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in state.batches],
        ),
    )


def update(
    key: SharePartitionKey,
    snapshot_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: Iterable[StateBatch],
) -> Record:
    """What has changed since the last snapshot or update."""
    return Record(
        ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        ShareUpdateValue(
            snapshot_epoch=snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=[ShareUpdateValue.StateBatch(**batch._asdict()) for batch in batches],
        ),
    )


def tombstone(key: SharePartitionKey) -> Record:
    """The state is deleted; updates are not deleted by themselves."""
    return Record(ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), None)
