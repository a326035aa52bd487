"""The input, the output and the statistics of an epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from kohort.protocol.records.arrow import RECORD_SCHEMA

ROWS_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("route", pa.binary()),
        pa.field("timestamp", pa.int64()),
    ]
)
"""The rows of one sink. `partition`: the task's, or null where it follows from `route` or, without one, from `key`.
A null `value` deletes. `timestamp` is in ms; null means the time of sending.

In a branch with mergers, rows with a `partition` are those of a store, as it is after the epoch; -1 - p stands for
partition p of the topic, to which a row goes as it would without mergers."""

HEADERS_SENT: Final = "headers"
"""Rows of a user's topic may have this column, too: their headers, as in `RECORD_SCHEMA`."""

TOPIC_SENT: Final = "topic"
"""Likewise: the topic that a row goes to, where a column names it. STRING."""

SENT_SCHEMA = pa.schema([RECORD_SCHEMA.field("headers").with_name(HEADERS_SENT), pa.field(TOPIC_SENT, pa.string())])
"""The types of these two."""

SHOWN: Final = "shown"
"""Rows of an aggregate of sessions have this column, too: whether its outputs get them. BOOLEAN."""

DEAD_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", RECORD_SCHEMA.field("headers").type),
        pa.field("error", pa.string()),
    ]
)
"""Records that couldn't be read, as they were, with the reason. `timestamp` is in ms."""


@dataclass(frozen=True)
class OffsetRange:
    """Offsets `start` (inclusive) to `end` (exclusive) of one partition. Not each of them need hold a record."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """How many offsets; no fewer than its records."""
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class Mergers:
    """Tasks of this instance that merge the rows of a branch at once, instead of reading them from the topic.

    `partitions` is how many the topic has. `stream_times` has the tasks by their partitions, each with its stream time
    (ms) before the epoch; None: it has read nothing yet.
    """

    partitions: int
    stream_times: Mapping[int, int | None]


@dataclass(frozen=True)
class EpochInput:
    """One epoch of one subtopology: what to read, and the stream time (ms) of each partition before it.

    `partitions` is how many the topic has, if it is to be checked that records lie where their keys belong; else 0.
    `mergers` has, by branch, the tasks that merge its rows at once. `now` is the clock's time, in ms since 1970, which
    goes up from one epoch of an instance to the next.
    """

    epoch: int
    ranges: tuple[OffsetRange, ...]
    stream_times: Mapping[int, int] = field(default_factory=dict)
    partitions: int = 0
    mergers: Mapping[int, Mergers] = field(default_factory=dict)
    now: int = 0

    @property
    def length(self) -> int:
        """How many offsets; no fewer than its records."""
        return sum(each.length for each in self.ranges)


@dataclass(frozen=True)
class Read:
    """How a task of Spark has read its split of an epoch's input, in one branch.

    Rows go on as they are read, so that what is done with them lies between: of `took_ms`, from the first request to
    the last row, `fetch_ms` were waits for brokers and the taking apart of record batches, and `decode_ms` made columns
    of values.

    Attributes:
        records, bytes: as in `EpochStatistics`.
        partitions: of what topics: "flights-0".
        ended: when the driver heard of it, in seconds since 1970 by its own clock: executors' may differ.
        branch: its number.
    """

    records: int
    bytes: int
    took_ms: float
    fetch_ms: float
    decode_ms: float
    partitions: tuple[str, ...] = ()
    ended: float = 0.0
    branch: int = 0


@dataclass
class EpochStatistics:
    """What was read in an epoch.

    `records` and `bytes` (of keys and values) count all records; `reasons` those that were dropped, by why; `late` rows
    that came after their window was closed. `max_times` has each partition's largest event time (ms); `merged_times`
    the same of rows that were merged at once, by branch and the merging task's partition, null times as None. `dead`
    holds the unreadable records (`DEAD_SCHEMA`). `reads` says how it was read, split by split and branch by branch:
    each branch reads all of it.
    """

    records: int = 0
    bytes: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    late: int = 0
    max_times: dict[int, int] = field(default_factory=dict)
    merged_times: dict[int, dict[int, int | None]] = field(default_factory=dict)
    dead: pa.Table = field(default_factory=DEAD_SCHEMA.empty_table)
    reads: list[Read] = field(default_factory=list)

    def drop(self, reason: str, count: int) -> None:
        """Counts what was dropped, by a reason of `drop_reasons`."""
        if count:
            self.reasons[reason] = self.reasons.get(reason, 0) + count

    @property
    def dropped(self) -> int:
        """How many were dropped, for whatever reason."""
        return sum(self.reasons.values())


@dataclass
class EpochOutput:
    """What an epoch made: the rows (`ROWS_SCHEMA`) of each of the subtopology's branches, and what was read.

    `writes` has what its processors wrote to their stores, by store, with the same columns but for `route`.
    """

    rows: dict[int, pa.Table]
    statistics: EpochStatistics
    writes: dict[str, pa.Table] = field(default_factory=dict)
