"""What a share partition is told: limits of its group, and how a member wants to acquire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["AcquireMode", "SharePartitionSettings"]


class AcquireMode(IntEnum):
    """How ShareFetch keeps to its maximum of records (KIP-1206); the values are those of its field.

    BATCH_OPTIMIZED gives whole batches, so somewhat more than the maximum; RECORD_LIMIT never gives more.
    """

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


@dataclass(frozen=True, slots=True)
class SharePartitionSettings:
    """What applies to a group: its own configs, or the broker's.

    Attributes:
        record_lock_duration_ms: share.record.lock.duration.ms, group.share.record.lock.duration.ms.
        delivery_count_limit: how often a record is delivered at most: share.delivery.count.limit,
            group.share.delivery.count.limit.
        max_record_locks: from the start offset to the last in-flight one there are about this many records at most:
            share.partition.max.record.locks, group.share.partition.max.record.locks.
        renew_enabled: whether members may renew locks: share.renew.acknowledge.enable.
        dead_letters: whether what is rejected or exhausted becomes a dead letter: errors.deadletterqueue.topic.name is
            set, and share.version allows it.
    """

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    max_record_locks: int = 2_000
    renew_enabled: bool = True
    dead_letters: bool = False
