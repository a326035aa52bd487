"""The records that a test has in a topic: as it writes them down, or of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["NewRecord", "records_of"]

_BYTES: Final = (bytes, bytearray, memoryview)
_JSON_LINES: Final = (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written.

    Attributes:
        value, key: bytes, or text; anything else is written as JSON; None for none. A key that is text in JSON, such as
            a UUID, is without quotes.
        timestamp_ms: ms since 1970; now by default.
        partition: by default the key's, or without a key each in turn, from 0 on.
        headers: names, and values of bytes, or None.
    """

    value: Any = None
    key: Any = None
    timestamp_ms: int | None = None
    partition: int | None = None
    headers: Mapping[str, bytes | None] | None = None


def records_of(source: Iterable[Any] | Path, key: str | None = None) -> list[NewRecord]:
    """What a test gave, as records of bytes.

    Args:
        source: values, pairs of key and value, or `NewRecord`s; or a file by its ending: JSON lines (.jsonl, .ndjson,
            .json), whose lines are values as they are, or CSV (.csv), whose rows are written as JSON objects of
            text, as `kohort produce` does.
        key: the field whose value is a record's key.

    Raises:
        ValueError: no records, or a file of another kind, such as a JSON array; a line that isn't JSON, a row that
            doesn't fit the header, a value without the field `key`, one that can't become JSON; a part of a `NewRecord`
            of another type. Says where.
        OSError: the file can't be read.
    """
    if isinstance(source, (str, bytes, Mapping)) or not isinstance(source, (Iterable, Path)):
        raise ValueError(f"records are a list or a Path, not {source!r:.80}")
    given = _of_file(source) if isinstance(source, Path) else _of_list(source)
    return [_as_bytes(where, record, key) for where, record in given]


def _of_list(source: Iterable[Any]) -> Iterator[tuple[str, NewRecord]]:
    for number, each in enumerate(source):
        where = f"record {number}"
        if isinstance(each, NewRecord):
            yield where, each
        elif isinstance(each, tuple):
            if len(each) != 2:
                raise ValueError(f"{where}: a tuple is (key, value), not {each!r:.80}")
            yield where, NewRecord(each[1], each[0])
        else:
            yield where, NewRecord(each)


def _of_file(path: Path) -> Iterator[tuple[str, NewRecord]]:
    kind = path.suffix.lower()
    if kind in _JSON_LINES:
        return _json_lines(path)
    if kind == ".csv":
        return _csv_rows(path)
    raise ValueError(f"{path}: records are read from {', '.join(_JSON_LINES)} and .csv, by the file's ending")


def _json_lines(path: Path) -> Iterator[tuple[str, NewRecord]]:
    text = path.read_bytes()
    if _is_list_of_records(path, text):
        raise ValueError(f"{path} is an array; records are one a line (JSON Lines)")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            where = f"{path}, line {number}"
            _decoded(where, line)
            yield where, NewRecord(line)


def _is_list_of_records(path: Path, text: bytes) -> bool:
    """Whether a file is one array. A single line may be meant as a record that is one: then the ending tells."""
    text = text.strip()
    if not text.startswith(b"[") or (path.suffix.lower() != ".json" and len(text.splitlines()) == 1):
        return False
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _csv_rows(path: Path) -> Iterator[tuple[str, NewRecord]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        names = next(rows, [])
        if len(set(names)) < len(names):
            raise ValueError(f"{path}: two columns have one name: {', '.join(names)}")
        for row in rows:
            if not row:
                continue
            where = f"{path}, line {rows.line_num}"
            if len(row) != len(names):
                raise ValueError(f"{where}: {len(names)} fields wanted, as in the first line, and there are {len(row)}")
            yield where, NewRecord(dict(zip(names, row, strict=True)))


def _as_bytes(where: str, record: NewRecord, key_field: str | None) -> NewRecord:
    _check(where, record)
    key, value = record.key, _bytes(where, record.value)
    if key_field is not None and key is None and value is not None:
        fields = record.value if isinstance(record.value, Mapping) else _decoded(where, value)
        if not isinstance(fields, Mapping) or key_field not in fields:
            raise ValueError(f"{where} has no field {key_field!r} for its key: {record.value!r:.80}")
        key = fields[key_field]
    return NewRecord(value, _key_bytes(where, key), record.timestamp_ms, record.partition, record.headers)


def _check(where: str, record: NewRecord) -> None:
    """Refuses what only the encoder would, without the record's place."""
    for name, number in (("timestamp_ms", record.timestamp_ms), ("partition", record.partition)):
        if number is not None and not isinstance(number, int):
            raise ValueError(f"{where}: {name} is a whole number, not {number!r:.80}")
    if record.headers is None:
        return
    if not isinstance(record.headers, Mapping):
        raise ValueError(f"{where}: headers are a dict of names and bytes, not {record.headers!r:.80}")
    for header, value in record.headers.items():
        if not isinstance(header, str) or not (value is None or isinstance(value, bytes)):
            raise ValueError(f"{where}: the header {header!r} is {value!r:.80}; a name is text, a value bytes or None")


def _decoded(where: str, text: bytes | str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"{where} isn't JSON: {error}") from None


def _key_bytes(where: str, key: Any) -> bytes | None:
    data = _bytes(where, key)
    if data is not None and not isinstance(key, (str, *_BYTES)):
        written = _decoded(where, data)
        return written.encode() if isinstance(written, str) else data
    return data


def _bytes(where: str, value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, _BYTES):
        return bytes(value)
    try:
        return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{where} can't become JSON: {error}: {value!r:.80}") from None
