"""Rows of stores: pages of them, put together from several partitions and instances, and shown as JSON."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

import msgspec

from kohort.spark.queries.queryable import ReadableStore

__all__ = [
    "MAX_PAGE_BYTES", "MAX_SCANNED", "Page", "Row", "collect", "joined", "shown_key", "shown_value", "stored_rows",
]  # fmt: skip

MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of keys and values after which a page ends."""

MAX_SCANNED: Final = 200_000
"""Rows that are looked at for one page, where only some are wanted."""

_FIRST: Final = 128
_MOST_AT_ONCE: Final = 10_000
_BYTES_AT_ONCE: Final = 1024 * 1024


class Row(NamedTuple):
    """A key and its value, as they are stored, and the partition that they are in (-1: a global table)."""

    key: bytes
    value: bytes
    partition: int


class Page(NamedTuple):
    """Rows in the order of their keys' bytes.

    `until` is the last key that the page has taken into account; None if there is nothing behind it.
    """

    rows: list[Row]
    until: bytes | None


def collect(sources: Sequence[Iterator[Row]], limit: int, suffix: bytes | None = None) -> Page:
    """A page of what `sources` have, each in order; of keys that end in `suffix`, where that is given.

    Rows with equal keys stay on one page, which may then have more than `limit` rows.
    """
    rows: list[Row] = []
    size, last = 0, b""
    for scanned, row in enumerate(heapq.merge(*sources, key=_key_of)):
        if (len(rows) >= limit or size >= MAX_PAGE_BYTES or scanned >= MAX_SCANNED) and row.key != last:
            return Page(rows, last)
        last = row.key
        if suffix is None or last.endswith(suffix):
            rows.append(row)
            size += len(last) + len(row.value)
    return Page(rows, None)


def joined(pages: Iterable[Page], limit: int) -> Page:
    """One page of several pages' rows; it ends where the first of them that has more to come ends."""
    kept = list(pages)
    until = min((page.until for page in kept if page.until is not None), default=None)
    rows = heapq.merge(*(page.rows for page in kept), key=_key_of)
    within = (row for row in rows if until is None or row.key <= until)
    page = collect([within], limit)
    return page if page.until is not None else Page(page.rows, until)


def stored_rows(store: ReadableStore, partition: int, start: bytes, end: bytes | None, wanted: int) -> Iterator[Row]:
    """The rows of a partition of a store, read as they are asked for: few of them, then more at a time.

    However large they are, about a MiB of them is in memory, once it is known how large they are.
    """
    size = min(wanted, _FIRST)
    while True:
        table = store.scan(start, end, size)
        keys, values = table.column("key").to_pylist(), table.column("value").to_pylist()
        yield from map(Row, keys, values, repeat(partition))
        if len(keys) < size:
            return
        start = keys[-1] + b"\0"
        size = max(1, min(4 * size, _MOST_AT_ONCE, _BYTES_AT_ONCE * size // max(table.nbytes, 1)))


def shown_key(key: bytes, is_json: bool) -> msgspec.Raw | str:
    """A key as an answer has it: an object where keys are JSON, else a string."""
    return _shown(key) if is_json else key.decode(errors="replace")


def shown_value(value: bytes, with_state: bool) -> msgspec.Raw | str:
    """A value as an answer has it; aggregates' state, which is the last field, is left out unless it is asked for."""
    if not with_state and value.endswith(b"}}"):
        # Within a string quotes are escaped, and state is flat: this can be nothing else.
        head, found, _ = value.rpartition(b',"state":{')
        if found:
            value = head + b"}"
        elif value.startswith(b'{"state":{'):
            value = b"{}"
    return _shown(value)


def _shown(text: bytes) -> msgspec.Raw | str:
    try:
        _anything.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text.decode(errors="replace")
    return msgspec.Raw(text)


_anything: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()


def _key_of(row: Row) -> bytes:
    return row.key
