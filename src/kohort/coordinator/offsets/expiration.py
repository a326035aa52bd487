"""Expiration of committed offsets: `offsets.retention.minutes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kohort.coordinator.offsets.records import offset_tombstone
from kohort.coordinator.offsets.rules import EACH_COMMIT, OffsetRules
from kohort.coordinator.offsets.table import OffsetTable
from kohort.coordinator.step import Record

_MINUTE: Final = 60_000


def expired_offsets(
    group_id: str,
    committed: OffsetTable,
    rules: OffsetRules,
    has_pending: Callable[[str, str, int], bool],
    retention_minutes: int,
    now: int,
) -> Iterator[Record]:
    """The tombstones of a group's offsets whose retention is over at `now`, in ms since 1970.

    Topics that members read keep their offsets, and so do partitions with an offset in an open transaction.
    """
    base = rules.retention_base(group_id)
    if base is None:
        return
    for topic, partition, offset in committed.entries(group_id):
        if offset.expires_at >= 0:
            due = offset.expires_at
        else:
            due = (offset.committed_at if base == EACH_COMMIT else base) + retention_minutes * _MINUTE
        if due <= now and not rules.is_subscribed(group_id, topic) and not has_pending(group_id, topic, partition):
            yield offset_tombstone(group_id, topic, partition)
