"""Pages of rows, merged from several partitions and instances, and their keys and values as JSON."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from kohort.spark.state import Store

MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of keys and values after which a page ends."""

MAX_SCANNED: Final = 200_000
"""The most rows that are scanned for a page, where only those with a suffix are wanted."""

_FIRST_SCAN: Final = 128
_MAX_SCAN: Final = 10_000
_SCAN_BYTES: Final = 1024 * 1024
_LIST: Final = b'{"rows":['
"""What a piece of a processor's list begins with."""
_Row = dict[str, msgspec.Raw]
_KEY: Final = attrgetter("key")


class Row(NamedTuple):
    """A key and its value as they are stored, and their partition (-1: a global table)."""

    key: bytes
    value: bytes
    partition: int


class Page(NamedTuple):
    """Rows in the order of their keys' bytes.

    `scanned_to` is the last key that was scanned for the page; None if there are no more.
    """

    rows: list[Row]
    scanned_to: bytes | None


def merge_rows(sources: Sequence[Iterator[Row]], limit: int, suffix: bytes | None = None) -> Page:
    """Merges rows of sources, each in order, into a page; takes only keys that end with `suffix`, if given.

    Rows with equal keys stay on one page, which may then have more than `limit` rows.
    """
    rows: list[Row] = []
    size, last = 0, b""
    for scanned, row in enumerate(heapq.merge(*sources, key=_KEY)):
        if (len(rows) >= limit or size >= MAX_PAGE_BYTES or scanned >= MAX_SCANNED) and row.key != last:
            return Page(rows, last)
        last = row.key
        if suffix is None or last.endswith(suffix):
            rows.append(row)
            size += len(last) + len(row.value)
    return Page(rows, None)


def merge_pages(pages: Iterable[Page], limit: int) -> Page:
    """Merges pages into one; it ends where the first of those that aren't the last of their source ends."""
    pages = list(pages)
    scanned_to = min((page.scanned_to for page in pages if page.scanned_to is not None), default=None)
    rows = heapq.merge(*(page.rows for page in pages), key=_KEY)
    within = (row for row in rows if scanned_to is None or row.key <= scanned_to)
    page = merge_rows([within], limit)
    return page if page.scanned_to is not None else Page(page.rows, scanned_to)


def scan_rows(store: Store, partition: int, start: bytes, end: bytes | None, limit: int) -> Iterator[Row]:
    """Reads the rows of a partition of a store lazily: a few in the first scan, then more at a time.

    After the first scan, which shows how large rows are, a scan reads about a MiB.
    """
    size = min(limit, _FIRST_SCAN)
    while True:
        table = store.scan(start, end, size)
        keys, values = table.column("key").to_pylist(), table.column("value").to_pylist()
        yield from map(Row, keys, values, repeat(partition))
        if len(keys) < size:
            return
        start = keys[-1] + b"\0"
        size = max(1, min(4 * size, _MAX_SCAN, _SCAN_BYTES * size // max(table.nbytes, 1)))


def key_json(key: bytes, is_json: bool) -> msgspec.Raw | str:
    """A key as responses have it: an object where keys are JSON, else a string."""
    return _json_or_text(key) if is_json else key.decode(errors="replace")


def value_json(value: bytes, with_state: bool, shown: Sequence[tuple[str, str]] = ()) -> msgspec.Raw | str:
    """A value as responses have it, without the last field of aggregates, their state, unless that is wanted.

    Args:
        shown: fields that are called otherwise there, and how.
    """
    if shown:
        return _json_or_text(_renamed(value, dict(shown)))
    if not with_state and value.endswith(b"}}"):
        # Quotes within strings are escaped, and the state is flat: nothing else ends like this.
        head, found, _ = value.rpartition(b',"state":{')
        if found:
            value = head + b"}"
        elif value.startswith(b'{"state":{'):
            value = b"{}"
    return _json_or_text(value)


def _renamed(value: bytes, names: Mapping[str, str]) -> bytes:
    """An object, or the rows of a list, with other names of fields; as it is, if it is something else."""
    try:
        if value.startswith(_LIST):
            rows = {field: [_with_names(row, names) for row in each] for field, each in _list.decode(value).items()}
            return msgspec.json.encode(rows)
        return msgspec.json.encode(_with_names(_row.decode(value), names))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value


def _with_names(row: _Row, names: Mapping[str, str]) -> _Row:
    return {names.get(name, name): field for name, field in row.items()}


def _json_or_text(text: bytes) -> msgspec.Raw | str:
    try:
        _anything.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text.decode(errors="replace")
    return msgspec.Raw(text)


_row: Final[msgspec.json.Decoder[_Row]] = msgspec.json.Decoder(_Row)
_list: Final[msgspec.json.Decoder[dict[str, list[_Row]]]] = msgspec.json.Decoder(dict[str, list[_Row]])
_anything: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
