"""What goes into a log's operations and comes out of them."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

__all__ = ["NOT_FOUND", "Aborted", "AppendInfo", "EpochEnd", "Origin", "ProducerSummary", "TimestampedOffset"]

NOT_FOUND: Final = -1


class Origin(enum.Enum):
    """Who made a batch: what a client sends is checked in full; a coordinator writes neither sequences nor nonsense."""

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()


class AppendInfo(NamedTuple):
    """Where a batch went.

    Attributes:
        base_offset, last_offset: offsets of its first and last record.
        log_append_time: the time that the log gave its records (ms since 1970); -1 where they keep their own.
        log_start_offset: first offset that the log holds.
        duplicate: whether it was there already, and was not written again; the offsets are those of the first time.
    """

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


class Aborted(NamedTuple):
    """A transaction that was aborted, and the offset where it began."""

    producer_id: int
    first_offset: int


class TimestampedOffset(NamedTuple):
    """A record: its offset, timestamp (ms since 1970), and the leader epoch it was written in (-1 if unknown)."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last record; -1 and -1 if the log knows neither."""

    epoch: int
    end_offset: int


class ProducerSummary(NamedTuple):
    """What a log knows about a producer, as DescribeProducers shows it.

    Attributes:
        producer_id, producer_epoch: who, and its epoch.
        last_sequence: sequence of its last record, -1 if it has none in this epoch.
        last_timestamp: ms since 1970, of its last batch or marker.
        coordinator_epoch: of the last transaction marker, -1 if there was none.
        first_offset: where its ongoing transaction began, -1 without one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    first_offset: int
