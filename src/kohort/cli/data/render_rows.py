"""Writing rows as text by a template, or as JSON lines."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Final

import msgspec

from kohort.cli.data.record_path import Render, Template
from kohort.client.types import Record

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR: Final = 146_097 * 86_400_000
"""Milliseconds of 400 years, after which the calendar repeats; `datetime` has no years before 1 or after 9999."""

_YEARS: Final = 32_767
"""Years before and after Christ that Arrow writes."""


def text(template: Template, null: bytes) -> Render:
    def render(records: Sequence[Record]) -> bytes:
        columns = [
            repeat(part, len(records)) if isinstance(part, bytes) else map(_FIELDS[part], records, repeat(null))
            for part in template
        ]
        return b"".join(chain.from_iterable(zip(*columns, strict=True)))

    return render


def _moment(ms: int) -> bytes:
    calendars, rest = divmod(ms, _CALENDAR)
    moment = _EPOCH + timedelta(milliseconds=rest)
    year = moment.year + 400 * calendars
    if abs(year) > _YEARS:
        return b"<value out of range: %d>" % ms
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{moment:%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z".encode()


def _headers(record: Record, null: bytes) -> bytes:
    return b",".join(name.encode() + b"=" + (null if value is None else value) for name, value in record.headers)


def _length(value: bytes | None) -> bytes:
    return b"-1" if value is None else b"%d" % len(value)


_FIELDS: Final[Mapping[str, Callable[[Record, bytes], bytes]]] = {
    "t": lambda record, null: record.topic.encode(),
    "p": lambda record, null: b"%d" % record.partition,
    "o": lambda record, null: b"%d" % record.offset,
    "k": lambda record, null: null if record.key is None else record.key,
    "v": lambda record, null: null if record.value is None else record.value,
    "s": lambda record, null: null if record.value is None else record.value,
    "T": lambda record, null: b"%d" % record.timestamp,
    "D": lambda record, null: _moment(record.timestamp),
    "h": _headers,
    "K": lambda record, null: _length(record.key),
    "S": lambda record, null: _length(record.value),
}


class _Header(msgspec.Struct):
    key: str
    value: str | None
    value_encoding: str | msgspec.UnsetType


class _Line(msgspec.Struct):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: str | None
    key_encoding: str | msgspec.UnsetType
    value: str | None
    value_encoding: str | msgspec.UnsetType
    headers: list[_Header]


_encode_lines: Final = msgspec.json.Encoder().encode_lines


def render_json(records: Sequence[Record]) -> bytes:
    lines = [
        _Line(
            topic, partition, offset, timestamp, *_text(key), *_text(value),
            [_Header(name, *_text(content)) for name, content in headers],
        )
        for topic, partition, offset, timestamp, key, value, headers in records
    ]  # fmt: skip
    return _encode_lines(lines).replace(b"\x7f", b"\\u007f")  # which JSON needn't escape, but the columns do


def _text(value: bytes | None) -> tuple[str | None, str | msgspec.UnsetType]:
    """A key or value as JSON has it, and its encoding."""
    if value is None:
        return None, msgspec.UNSET
    try:
        return value.decode(), msgspec.UNSET
    except UnicodeDecodeError:
        return base64.b64encode(value).decode(), "base64"
