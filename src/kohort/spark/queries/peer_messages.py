"""What instances ask each other, and what they answer. As MessagePack, since keys and values are bytes."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from kohort.spark.queries.result_pages import Row

__all__ = ["MAX_LIMIT", "Answer", "Copy", "Missing", "PeerQuery", "answers", "encode", "questions"]


MAX_LIMIT: Final = 10_000
"""The most rows that can be asked for at once."""


class PeerQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of some partitions of a store.

    Attributes:
        store, partitions: where to look; a global table's only partition is -1.
        stale: whether a copy will do that may be behind.
        key: the one key that is wanted; None for a range.
        start, end, suffix: of a range: from `start` to before `end` (None: to the end), keys that end in `suffix`.
        limit: rows that are wanted at most.
    """

    store: str
    partitions: Annotated[tuple[int, ...], msgspec.Meta(max_length=10_000)]
    stale: bool = False
    key: bytes | None = None
    start: bytes = b""
    end: bytes | None = None
    suffix: bytes | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)] = 1


class Copy(msgspec.Struct, frozen=True):
    """A copy of a partition that was read: where, what it is, and how many records it lacks (None: unknown)."""

    partition: int
    role: str
    lag: int | None
    instance: str | None


class Missing(msgspec.Struct, frozen=True):
    """A partition that couldn't be read.

    Attributes:
        reason: for people.
        ask: "host:port" of the instance that has it or is about to; None if nobody has.
        copies: "host:port" of those that have copies, which answer with `stale`.
    """

    partition: int
    reason: str
    ask: str | None = None
    copies: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """Rows in the order of their keys, what they were read from, and what is missing; `until` as in a `Page`."""

    rows: list[Row]
    until: bytes | None
    copies: list[Copy]
    missing: list[Missing]


encode: Final = msgspec.msgpack.Encoder().encode
questions: Final = msgspec.msgpack.Decoder(PeerQuery)
answers: Final = msgspec.msgpack.Decoder(Answer)
