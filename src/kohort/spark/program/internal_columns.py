"""Columns of Kohort's own, which rows have beside the user's."""

from __future__ import annotations

from typing import Final

PARTITION: Final = "_partition"
"""INT: the partition, so the task, that a row belongs to. Transforms see it."""

STREAM_TIME: Final = "_stream_time"
"""BIGINT: the stream time of its task at which a row was read, its own included, in ms; null before there is any."""

OFFSET: Final = "_offset"
"""BIGINT: the offset of a row's record, where anything goes by it."""

TIMESTAMP: Final = "_time"
"""BIGINT: a record's time, in ms."""

KEY: Final = "_key"
"""STRING: the key in a store; of rows that no window takes `LATE` or `NO_WINDOW`, which no key is."""

RECORDS: Final = "_records"
"""BIGINT: how many rows went into a partial; 0 for prior values."""

WINDOW_START: Final = "_window"
"""BIGINT: where a row's window begins, in ms since 1970; null if it can be in none, `CLOSED` if it comes too late."""

SESSION: Final = "_session"
"""BIGINT: where a row's session begins, in ms since 1970."""

ABSORBED: Final = "_absorbed"
"""ARRAY<BIGINT>: where sessions of earlier epochs begin that are part of a row's; one row of a session has them all."""

CHANGE: Final = "_change"
"""INT: what becomes of a row's session: a number of `kohort.spark.program.operations.Change`."""

HEADERS: Final = "_headers"
"""ARRAY<STRUCT<key: STRING, value: BINARY>>: a record's headers, where a stream asks for them. Users see it."""

TOPIC: Final = "_topic"
"""STRING: the topic that a record is from, where a stream asks for that. Users see it."""

VALUELESS: Final = "_valueless"
"""BOOLEAN: whether a record had no value, of a topic whose keys are in a format and that becomes a table."""

DELETED: Final = "_deleted"
"""BOOLEAN, never null: of a table that goes from step to step as *upserts*, one row for each time that a key is set:
whether the key is gone. All other columns but the key's, and the event time, are null then."""

SIGN: Final = "_sign"
"""INT: of a table's changes, on their way to an aggregate: 1 for a row that comes in, -1 for one that leaves."""

RESERVED: Final = frozenset(
    {
        PARTITION, STREAM_TIME, OFFSET, TIMESTAMP, KEY, RECORDS, WINDOW_START, SESSION, ABSORBED, CHANGE, DELETED, SIGN,
    }
)  # fmt: skip
"""Those of users have other names."""
