"""Reading JSON lines: a document as a value, or a description of a whole record."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from kohort.cli.data.errors import DataError, no_key
from kohort.cli.data.row_block import RowBlock
from kohort.cli.data.source import Source
from kohort.protocol.records.rows import Headers

T = TypeVar("T")


def read_json(source: Source, key: str | None = None, *, null_keys: bool = False) -> Iterator[RowBlock]:
    """Each line as a value, unchanged; its field `key`, if given, as the key. Empty lines are skipped.

    A key is a string's text, or another value's JSON.

    Args:
        null_keys: whether the field may be missing, or null; the key is null then.

    Raises:
        DataError: a line isn't JSON, or isn't an object although there is a `key`; it has no key and must have one.
    """
    if key is None:
        raw = msgspec.json.Decoder(msgspec.Raw)
        for lines, _ in _decoded(source, raw.decode):
            yield RowBlock([*lines])
        return
    fields: Any = msgspec.defstruct("Line", [("key", Any, msgspec.UNSET)], rename={"key": key})
    decode = msgspec.json.Decoder(fields).decode

    def key_of(line: bytes) -> bytes | None:
        found = decode(line).key
        if found is None or found is msgspec.UNSET:
            if not null_keys:
                raise _NoKeyError(found is None)
            return None
        return _bytes(found)

    try:
        for lines, keys in _decoded(source, key_of):
            yield RowBlock([*lines], keys=keys)
    except _NoKeyError as error:
        raise no_key(error.where, key, "null" if error.there else None) from None


class _NoKeyError(Exception):
    """A line has no key: its field is there, but null, or it isn't there."""

    where = ""

    def __init__(self, there: bool) -> None:
        self.there = there


class _Header(msgspec.Struct):
    key: str
    value: Any = None
    value_encoding: Literal["base64"] | None = None


class _Record(msgspec.Struct):
    key: Any = None
    value: Any = None
    key_encoding: Literal["base64"] | None = None
    value_encoding: Literal["base64"] | None = None
    timestamp: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    headers: list[_Header] = []


def read_json_records(source: Source) -> Iterator[RowBlock]:
    """A record a line, as `kohort consume --format json` writes it: key, value, headers and timestamp (ms).

    Topic, partition and offset are ignored. Keys and values are the same as with `read_json`; those with an
    "…_encoding" of "base64" are bytes.

    Raises:
        DataError: a line isn't such an object.
    """
    decode = msgspec.json.Decoder(_Record).decode

    def row(line: bytes) -> tuple[bytes | None, bytes | None, int | None, Headers]:
        record = decode(line)
        return (
            _bytes(record.value, record.value_encoding),
            _bytes(record.key, record.key_encoding),
            record.timestamp,
            [(header.key, _bytes(header.value, header.value_encoding)) for header in record.headers],
        )

    for _, rows in _decoded(source, row):
        values, keys, timestamps, headers = zip(*rows, strict=True)
        yield RowBlock([*values], [*keys], [*timestamps], headers)


def _decoded(source: Source, decode: Callable[[bytes], T]) -> Iterator[tuple[list[bytes], list[T]]]:
    """Lines, and the decoded values; an error at the first line that can't be decoded."""
    for first, block in source.line_blocks():
        if first == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        lines, found = [], []
        problem: DataError | _NoKeyError | None = None
        for number, line in enumerate(block.split(b"\n"), first):
            try:
                found.append(decode(line))
                lines.append(line.strip())
            except _NoKeyError as error:
                problem = error
                problem.where = f"{source.name}, line {number}"
                break
            except (msgspec.DecodeError, ValueError) as error:
                if line.strip():
                    problem = DataError(f"{source.name}, line {number}: {_explained(error, line)}")
                    break
        if found:
            yield lines, found
        if problem is not None:
            raise problem


def _explained(error: Exception, line: bytes) -> str:
    shown = line[:60].decode(errors="replace") + ("…" if len(line) > 60 else "")
    if isinstance(error, msgspec.ValidationError):
        return f"{error}: {shown}"
    if isinstance(error, binascii.Error):
        return f"base64 that isn't: {error}"
    return f"not JSON ({error}): {shown}"


def _bytes(value: Any, encoding: str | None = None) -> bytes | None:
    if value is None:
        return None
    if encoding is not None:
        if not isinstance(value, str):
            raise msgspec.ValidationError("what is encoded as base64 must be a string")
        return base64.b64decode(value, validate=True)
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
