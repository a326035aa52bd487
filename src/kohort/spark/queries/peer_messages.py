"""Queries between instances and their results, as MessagePack since keys and values are bytes."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from kohort.spark.queries.result_pages import Row

MAX_LIMIT: Final = 10_000
"""The most rows of a query."""


class PeerQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query of some partitions of a store.

    Attributes:
        store, partitions: what is read; a global table's only partition is -1.
        stale: whether a copy that lags may be read.
        key: the only key that is wanted; None for a range.
        start, end, suffix: a range: keys from `start` to before `end` (None: to the end) that end with `suffix`.
        limit: the most rows.
    """

    store: str
    partitions: Annotated[tuple[int, ...], msgspec.Meta(max_length=10_000)]
    stale: bool = False
    key: bytes | None = None
    start: bytes = b""
    end: bytes | None = None
    suffix: bytes | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)] = 1


class StoreCopy(msgspec.Struct, frozen=True):
    """A copy of a partition that was read: its role, its lag in records (None: unknown), and where it is."""

    partition: int
    role: str
    lag: int | None
    instance: str | None


class MissingPartition(msgspec.Struct, frozen=True):
    """A partition that couldn't be read.

    Attributes:
        reason: for people.
        ask: "host:port" of the instance that has the partition, or gets it; None if none has.
        copies: "host:port" of the instances that have copies, which answer with `stale`.
    """

    partition: int
    reason: str
    ask: str | None = None
    copies: tuple[str, ...] = ()


class QueryResult(msgspec.Struct, frozen=True, rename={"scanned_to": "until"}):
    """Rows in the order of their keys, the copies they were read from, and the partitions that are missing.

    `scanned_to` is as in a `Page`; instances of all versions send it as `until`.
    """

    rows: list[Row]
    scanned_to: bytes | None
    copies: list[StoreCopy]
    missing: list[MissingPartition]


encode: Final = msgspec.msgpack.Encoder().encode
decode_query: Final = msgspec.msgpack.Decoder(PeerQuery).decode
decode_result: Final = msgspec.msgpack.Decoder(QueryResult).decode
