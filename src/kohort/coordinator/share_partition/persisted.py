"""What is persisted of a share partition, as the share coordinator keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.coordinator.share_partition.states import RecordState

__all__ = ["UNKNOWN_START_OFFSET", "PersistedState", "StateBatch", "combined"]

UNKNOWN_START_OFFSET: Final = -1
"""Nothing was ever read: share.auto.offset.reset says where the group starts."""


class StateBatch(NamedTuple):
    """Records in one state, from the first offset to the last one."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


@dataclass(frozen=True, slots=True)
class PersistedState:
    """A share partition without its locks.

    Attributes:
        state_epoch: rises when the group's offsets are set anew; goes with every write.
        start_offset: all before it is done; or `UNKNOWN_START_OFFSET`.
        delivery_complete_count: records from the start offset on that are acknowledged or archived.
        batches: states from the start offset on; what no batch tells is available and was never delivered.
    """

    state_epoch: int
    start_offset: int
    delivery_complete_count: int = 0
    batches: tuple[StateBatch, ...] = ()


def combined(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """The same with neighbours made one where they are equal; they come by offset and don't overlap."""
    result: list[StateBatch] = []
    for batch in batches:
        if result:
            previous = result[-1]
            if (
                previous.last_offset + 1 == batch.first_offset
                and previous.state is batch.state
                and previous.delivery_count == batch.delivery_count
            ):
                result[-1] = previous._replace(last_offset=batch.last_offset)
                continue
        result.append(batch)
    return tuple(result)
