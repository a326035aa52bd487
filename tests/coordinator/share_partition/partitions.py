"""Share partitions for tests, and what they are asked in few words."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.coordinator.share_partition import (
    AckBatch,
    AcknowledgeType,
    AcquireMode,
    Change,
    PersistedState,
    SharePartition,
    SharePartitionSettings,
    StateBatch,
)

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
GAP, RENEW = AcknowledgeType.GAP, AcknowledgeType.RENEW
LOCK_MS = 30_000


def new(*batches: StateBatch, start: int = 0, **settings: int | bool) -> SharePartition:
    return SharePartition(
        SharePartitionSettings(**settings),  # type: ignore[arg-type]
        PersistedState(1, start, 0, batches),
    )


def fetch(
    partition: SharePartition,
    *batches: tuple[int, int],
    member: str = "a",
    at: int | None = None,
    most: int = 500,
    now: float = 0,
    size: int | None = None,
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    aborted: Sequence[tuple[int, int]] = (),
) -> list[tuple[int, int, int]]:
    """What a member acquires of fetched batches: (first, last, delivery count)."""
    offset = at if at is not None else partition.next_fetch_offset
    assert offset is not None
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for each in partition.acquire(
            member,
            batches,
            fetch_offset=offset,
            max_records=most,
            now=now,
            batch_size=size,
            mode=mode,
            aborted=aborted,
        )
    ]


def acknowledge(
    partition: SharePartition, first: int, last: int, *types: int, member: str = "a", now: float = 0
) -> Change:
    return partition.acknowledge(member, [AckBatch(first, last, types)], now)


def acknowledged(partition: SharePartition, first: int, last: int, *types: int, member: str = "a") -> bool:
    """The same, persisted."""
    return partition.commit(acknowledge(partition, first, last, *types, member=member))


def states(partition: SharePartition) -> list[tuple[int, int, str, int]]:
    """What is in flight: (first, last, state, delivery count)."""
    return [
        (each.first_offset, each.last_offset, each.state.name, each.delivery_count) for each in partition.describe()
    ]


def persisted(change: Change) -> list[tuple[int, int, str, int]]:
    return [(first, last, state.name, count) for first, last, state, count in change.batches]
