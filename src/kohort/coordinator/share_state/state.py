"""A share partition's delivery state, and its key."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from uuid import UUID

from kohort.coordinator.share_state.batches import StateBatch, combine, overlay
from kohort.protocol.stored.share_snapshot import ShareSnapshotValue
from kohort.protocol.stored.share_update import ShareUpdateValue

NO_START_OFFSET: Final = -1
"""The group's share.auto.offset.reset decides."""

NO_DELIVERY_COMPLETE_COUNT: Final = -1
"""It isn't known how many offsets are done with."""

NO_EPOCH: Final = -1
"""A request with this state epoch or leader epoch isn't fenced."""

_MAX_PARTITION: Final = 2**31 - 1
_INT: Final = re.compile(r"[+-]?[0-9]{1,10}")
_UUID_SIZE: Final = 16


class SharePartitionKey(NamedTuple):
    """A partition of a topic, as a share group consumes it."""

    group_id: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        """The key that finds its coordinator: `group:topicId:partition`, the topic's id as Kafka writes it."""
        topic_id = base64.urlsafe_b64encode(self.topic_id.bytes).decode().rstrip("=")
        return f"{self.group_id}:{topic_id}:{self.partition}"

    @classmethod
    def parse(cls, key: str) -> SharePartitionKey:
        """Parses a key from the right: a group's id may have colons.

        Raises:
            ValueError: it isn't `group:topicId:partition`.
        """
        parts = key.rsplit(":", 2)
        if len(parts) < 3 or not parts[0].strip():
            raise ValueError(f"{key!r} isn't group:topicId:partition")
        group_id, topic_id, partition = parts
        try:
            raw = base64.b64decode(topic_id.rstrip("=") + "==", altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != _UUID_SIZE:
            raise ValueError(f"{topic_id!r} isn't the id of a topic")
        if not _INT.fullmatch(partition) or abs(int(partition)) > _MAX_PARTITION:
            raise ValueError(f"{partition!r} isn't the number of a partition")
        return cls(group_id, UUID(bytes=raw), int(partition))


@dataclass(frozen=True, slots=True)
class ShareState:
    """What is known of a share partition's deliveries; never changed in place.

    Attributes:
        snapshot_epoch: number of the last snapshot.
        state_epoch: raised when the state is initialized again; writes with a lower one are fenced.
        leader_epoch: newest leader epoch that has read the state; requests with a lower one are fenced.
        start_offset: first offset that isn't done with; -1 if none was chosen yet.
        delivery_complete_count: offsets from there on that are acknowledged or archived; -1 if unknown.
        batches: delivery states from the start offset on; they don't overlap, and are in the order of their offsets.
        create_timestamp: when the state was last written as a snapshot by a request, in ms since 1970.
        write_timestamp: when the last snapshot was written, in ms since 1970; later than `create_timestamp` if the
            partition had grown cold.
        updates: updates since the last snapshot.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    create_timestamp: int = 0
    write_timestamp: int = 0
    updates: int = 0

    @property
    def cold(self) -> bool:
        """Whether the last snapshot was written because there were no others for long."""
        return self.create_timestamp != self.write_timestamp

    def updated(self, update: ShareUpdateValue) -> ShareState:
        """The state after an update."""
        start_offset = self.start_offset if update.start_offset == NO_START_OFFSET else update.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=overlay(self.batches, [_batch(each) for each in update.state_batches], start_offset),
            updates=self.updates + 1,
        )

    @classmethod
    def of_snapshot(cls, value: ShareSnapshotValue) -> ShareState:
        return cls(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=combine((), (_batch(each) for each in value.state_batches)),
            create_timestamp=value.create_timestamp,
            write_timestamp=value.write_timestamp,
        )

    @classmethod
    def of_update(cls, value: ShareUpdateValue) -> ShareState:
        """The best that is known where the snapshot before an update is lost."""
        return cls(value.snapshot_epoch, 0, value.leader_epoch, NO_START_OFFSET, NO_DELIVERY_COMPLETE_COUNT).updated(
            value
        )


def _batch(batch: ShareSnapshotValue.StateBatch | ShareUpdateValue.StateBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
