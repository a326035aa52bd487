"""Committed offsets as records of `__consumer_offsets`."""

from __future__ import annotations

from kohort.coordinator.offsets.table import CommittedOffset
from kohort.coordinator.step import Record
from kohort.protocol.schema import NO_UUID
from kohort.protocol.stored.offset_commit import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Record:
    """The record of a committed offset, as it will be read back (see `value_version`)."""
    if committed.expires_at >= 0:
        committed = committed._replace(leader_epoch=-1, topic_id=NO_UUID)
    return Record(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.committed_at,
            expire_timestamp=committed.expires_at,
            topic_id=committed.topic_id,
        ),
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    return Record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def committed_offset(value: OffsetCommitValue | LegacyOffsetCommitValue, order: int) -> CommittedOffset:
    """The offset in a record's value, as the commit with number `order`."""
    if isinstance(value, LegacyOffsetCommitValue):
        return CommittedOffset(value.offset, -1, value.metadata, value.commit_timestamp, order=order)
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        order,
    )


def value_version(value: OffsetCommitValue) -> int:
    """The version to write a value in, as Kafka 4.2 does: 4, or 1, the only one with a time of expiry."""
    return 4 if value.expire_timestamp < 0 else 1
