"""Arguments and results of a log's operations."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

NOT_FOUND: Final = -1


class Origin(enum.Enum):
    """Who made a batch: a client's is fully validated, a coordinator's has no sequences and is trusted."""

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()


class AppendInfo(NamedTuple):
    """An appended batch.

    Attributes:
        base_offset, last_offset: offsets of its first and last record.
        log_append_time: timestamp of the records by the broker's clock (ms since 1970); -1 if they have their own.
        log_start_offset: of the log.
        duplicate: whether it was appended before; the offsets are those of the first time.
    """

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


class Aborted(NamedTuple):
    """An aborted transaction, with its first offset."""

    producer_id: int
    first_offset: int


class TimestampedOffset(NamedTuple):
    """A record: its offset, timestamp (ms since 1970), and the leader epoch it was written in (-1 if unknown)."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """A leader epoch with its end offset; -1 and -1 if it is unknown."""

    epoch: int
    end_offset: int


class ProducerSummary(NamedTuple):
    """A producer's state for DescribeProducers.

    Attributes:
        producer_id, producer_epoch: the producer.
        last_sequence: of its last record, -1 if it has none in this epoch.
        last_timestamp: of its last batch or marker, in ms since 1970.
        coordinator_epoch: of the last transaction marker, -1 if there was none.
        first_offset: of its ongoing transaction, -1 without one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    first_offset: int
