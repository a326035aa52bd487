"""Parses keys of stores as people write them in a URL to keys as they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, NoReturn

from kohort.spark.program.compiled import Route
from kohort.spark.queries.queryable import StoreInfo

WINDOW: Final = "window"
"""The first field of keys that have a window: its start."""

_UNSAFE: Final = re.compile('["\\\\\x00-\x1f]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_INTEGER: Final = re.compile("-?(0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_PLAIN: Final = _INTEGERS | {"string", "boolean", "date"}
_TIMESTAMPS: Final = ("timestamp", "timestamp_ntz")
_NESTED: Final = ("array<", "map<", "struct<")


class KeyTextError(ValueError):
    """A text isn't a key of the store; says what one looks like."""


class Key(NamedTuple):
    """A key of a store, or all windows of one.

    Attributes:
        stored: its bytes in the store and in the changelog; for all windows of a key, the end of these bytes.
        route: what its partition follows from; None if unknown.
    """

    stored: bytes
    route: bytes | None


class _Number(str):
    """A number as it is written: 1.0 and 1.00 are different keys."""


def parse_key(info: StoreInfo, text: str) -> Key:
    """Parses a key.

    A text is either the key as it is stored, or short: the values of the columns with `,` between them, and after an
    `@` the start of the window: `JFK@2013-01-01T05:00:00Z`.

    Raises:
        KeyTextError: it isn't a key of the store.
    """
    if not info.json_keys:
        stored = _bytes(info, text)
        return Key(stored, stored if info.route is Route.TEXT else None)
    window = None
    if text.startswith("{"):
        fields = _parsed(info, text)
        if info.windowed:
            start = fields.pop(WINDOW, None)
            window = utc_text(start) if isinstance(start, str) and not isinstance(start, _Number) else None
            if window is None:
                _refuse(info, "the window's start is missing, or is no time")
        values = _json_values(info, fields)
    else:
        if info.windowed:
            text, at, start = text.rpartition("@")
            window = utc_text(start)
            if not at or window is None:
                _refuse(info, f"{start!r} is no time" if at else "the window's start is missing")
        values = _short_values(info, text)
    head = "{" if window is None else _window_head(window) + ("," if values else "")
    return Key(_bytes(info, head + _object(values)[1:]), _route(info, values))


def parse_bound(info: StoreInfo, text: str) -> bytes:
    """Parses the start or the end of a range: a key, or a time where keys begin with one.

    A text that begins like a stored key is taken as it is, so that it may be incomplete.

    Raises:
        KeyTextError: it is neither.
    """
    if not info.json_keys or text.startswith("{"):
        return _bytes(info, text)
    if info.windowed and (window := utc_text(text)) is not None:
        return _window_head(window).encode()
    return parse_key(info, text).stored


def prefix_range(info: StoreInfo, text: str) -> tuple[bytes, bytes | None]:
    """The range of the keys with a prefix: its start, and its exclusive end (None: to the end).

    Short prefixes are of the window's time ("2013-01-01T"), or else of the first column's value.
    """
    start = _bytes(info, text)
    if info.json_keys and not text.startswith("{"):
        if info.windowed:
            start = b'{"window":"' + start
        else:
            name, kind = info.columns[0]
            opening = "" if kind in _INTEGERS or kind in ("boolean", "float", "double") else '"'
            start = _bytes(info, f"{{{_quoted(name)}:{opening}{_escaped(text)}")
    # All keys with the prefix lie before the next text of at most its length, if there is one.
    head = start.rstrip(b"\xff")
    return start, head[:-1] + bytes([head[-1] + 1]) if head else None


def parse_group(info: StoreInfo, text: str) -> tuple[bytes, bytes, bytes | None]:
    """Parses a group's key; returns the range of the rows that it has, and what their partition follows from.

    Raises:
        KeyTextError: it isn't one, or each key of the store is for itself.
    """
    if not info.group:
        _refuse(info, "its groups have one row each")
    key = parse_key(replace(info, columns=info.columns[: info.group]), text)
    start = key.stored[:-1] + b","
    return start, start[:-1] + b"-", key.route


def parse_key_of_all_windows(info: StoreInfo, text: str) -> Key:
    """Parses a key without its window; returns the end of the stored keys of all its windows.

    Raises:
        KeyTextError: it isn't such a key.
    """
    if not info.windowed:
        _refuse(info, "its keys have no windows")
    values = _json_values(info, _parsed(info, text)) if text.startswith("{") else _short_values(info, text)
    return Key(_bytes(info, ("," if values else "") + _object(values)[1:]), _route(info, values))


def utc_text(text: str) -> str | None:
    """A time in ISO 8601 (UTC if it has no zone) as keys have the start of a window: in UTC, with ms. None: no time."""
    time = _time(text)
    return None if time is None else f"{time:%Y}".zfill(4) + f"{time:-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _timestamp(text: str, kind: str, *, micros: bool) -> str:
    """A time as keys have it, with ms, or with µs always (`micros`) or if it has any. Other texts stay as they are."""
    time = _time(text) if kind in _TIMESTAMPS else None
    if time is None:
        return text
    fraction = f"{time:%f}" if micros or time.microsecond % 1000 else f"{time.microsecond // 1000:03}"
    return f"{time:%Y}".zfill(4) + f"{time:-%m-%dT%H:%M:%S}.{fraction}" + ("Z" if kind == "timestamp" else "")


def _parsed(info: StoreInfo, text: str) -> dict[str, Any]:
    """The fields of a JSON object, with numbers as they are written."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            _refuse(info, "a field comes twice")
        return fields

    def constant(name: str) -> NoReturn:
        _refuse(info, f"{name} is not JSON")

    try:
        parsed: dict[str, Any] = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=constant, object_pairs_hook=unique
        )
    except json.JSONDecodeError as error:
        _refuse(info, f"not JSON: {error}")
    except RecursionError:
        _refuse(info, "nested too deep")
    return parsed


def _json_values(info: StoreInfo, fields: dict[str, Any]) -> dict[str, str]:
    """The values of the columns as JSON texts."""
    if set(fields) != {name for name, _ in info.columns}:
        _refuse(info, "it has other fields")
    for name, kind in info.columns:
        if kind in _TIMESTAMPS and isinstance(fields[name], str):
            fields[name] = _timestamp(fields[name], kind, micros=info.micros)
    try:
        return {name: _written(fields[name]) for name, _ in info.columns}
    except RecursionError:
        _refuse(info, "nested too deep")


def _short_values(info: StoreInfo, text: str) -> dict[str, str]:
    count = len(info.columns)
    values = [text] if count == 1 else text.split(",") if text or count else []
    if len(values) != count:
        _refuse(info, f"{len(values)} values for {count} columns")
    return {
        name: _short_value(info, name, kind, value) for (name, kind), value in zip(info.columns, values, strict=True)
    }


def _short_value(info: StoreInfo, name: str, kind: str, value: str) -> str:
    if kind in _INTEGERS:
        good = _INTEGER.fullmatch(value) is not None
    elif kind in ("float", "double") or kind.startswith("decimal"):
        good = _NUMBER.fullmatch(value) is not None
    elif kind == "boolean":
        good = value in ("true", "false")
    elif kind.startswith(_NESTED):
        _refuse(info, f"column {name!r} is {kind}: write the key as JSON")
    else:
        return _quoted(_timestamp(value, kind, micros=info.micros))
    if not good:
        _refuse(info, f"column {name!r} is {kind}, which {value!r} is not")
    return value


def _object(values: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{_quoted(name)}:{value}" for name, value in values.items()) + "}"


def _route(info: StoreInfo, values: Mapping[str, str]) -> bytes | None:
    if info.route is None or any(name not in values for name in info.routed_by):
        return None
    if info.route is Route.JSON or len(info.routed_by) > 1:
        kinds = dict(info.columns)
        names = zip(info.routed_by, info.route_names or info.routed_by, strict=True)
        return _bytes(info, _object({there: _in_route(kinds[name], values[name]) for name, there in names}))
    (name,) = info.routed_by
    if dict(info.columns)[name] not in _PLAIN or values[name] == "null":
        return None  # its text may differ from its JSON
    text = values[name]
    return _bytes(info, json.loads(text) if text.startswith('"') else text)


def _in_route(kind: str, value: str) -> str:
    """A column's value as routes have it: times with µs."""
    if kind not in _TIMESTAMPS or not value.startswith('"'):
        return value
    return _quoted(_timestamp(json.loads(value), kind, micros=True))


def _window_head(window: str) -> str:
    return f'{{"{WINDOW}":"{window}"'


def _written(value: Any) -> str:
    """JSON as Spark's `to_json` writes it."""
    match value:
        case _Number():
            return str(value)
        case str():
            return _quoted(value)
        case None | True | False:
            return json.dumps(value)
        case dict():
            return "{" + ",".join(f"{_quoted(name)}:{_written(one)}" for name, one in value.items()) + "}"
        case _:
            return "[" + ",".join(map(_written, value)) + "]"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text)


def _bytes(info: StoreInfo, text: str) -> bytes:
    try:
        return text.encode(errors="strict" if info.json_keys else "surrogateescape")
    except UnicodeEncodeError:
        _refuse(info, "not Unicode text")


def _refuse(info: StoreInfo, why: str) -> NoReturn:
    names = [name for name, _ in info.columns]
    if not info.json_keys:
        form = f"the text of {names[0]}"
    else:
        example = {WINDOW: "2013-01-01T05:00:00.000Z"} if info.windowed else {}
        example.update(dict.fromkeys(names, "…"))
        as_json = json.dumps(example, ensure_ascii=False, separators=(",", ":"))
        form = ",".join(names) + ("@2013-01-01T05:00:00Z" if info.windowed else "") + f", or {as_json}"
    raise KeyTextError(f"no key of {info.name}: {why}; one looks like {form}")
