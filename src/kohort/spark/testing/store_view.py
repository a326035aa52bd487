"""A store's rows as a test reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from kohort.spark.program.compiled import Program
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.result_pages import value_json

_WINDOW: Final = "window"
_NUMBERS: Final = {"float": float, "double": float, "decimal": float}
_NESTED: Final = ("array", "map", "struct")
_EPOCH: Final = datetime(1970, 1, 1)


class StoreView(Mapping[Any, dict[str, Any]]):
    """A store as it is now: values by key, in the order of the keys' bytes.

    A key is what the key's only column has, or a tuple of its columns, the window's start first, as outputs show them:
    `driver.store("delays")["2013-01-01T05:00:00.000Z", "JFK"]`. A value has an aggregate's results, or a table's
    columns.

    Args:
        info: what is known of the store.
        rows: its keys and values, as they are stored.
        kinds: the names of Spark's types of a table's columns, whose values are stored in encoded types; {} of an
            aggregate.
    """

    def __init__(self, info: StoreInfo, rows: pa.Table, kinds: Mapping[str, str]) -> None:
        self._info, self._raw = info, rows
        self._names = ((_WINDOW,) if info.windowed else ()) + tuple(name for name, _ in info.columns)
        keys, values = rows["key"].to_pylist(), rows["value"].to_pylist()
        self._rows = {self._key(key): _value(value, kinds) for key, value in zip(keys, values, strict=True)}

    def __getitem__(self, key: Any) -> dict[str, Any]:
        return self._rows[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"StoreView({self._rows!r})"

    def to_arrow(self) -> pa.Table:
        """The rows as a table, the key's columns first; they have the types that follow from the values."""
        listed = []
        for key, value in self._rows.items():
            parts = key if len(self._names) > 1 else (key,) if self._names else ()
            listed.append({**dict(zip(self._names, parts, strict=True)), **value})
        names = dict.fromkeys(name for row in listed for name in row)
        return pa.table({name: pa.array([row.get(name) for row in listed]) for name in names})

    @property
    def raw(self) -> pa.Table:
        """The rows as they are stored: key and value, with an aggregate's state."""
        return self._raw

    def _key(self, key: bytes) -> Any:
        if not self._info.json_keys:
            ((_, kind),) = self._info.columns
            text = key.decode(errors="replace")
            return int(text) if kind in ("tinyint", "smallint", "int", "bigint") else text
        values = json.loads(key)
        kinds = dict(self._info.columns)
        parts = tuple(_shown(each, kinds.get(name, "")) for name, each in values.items())
        return parts[0] if len(parts) == 1 else parts


def table_kinds(program: Program) -> dict[str, dict[str, str]]:
    """The names of Spark's types of tables' columns, by the tables' names."""
    tables = [*(table for each in program.subtopologies for table in each.tables), *program.globals]
    return {
        each.name: {field.name: field.dataType.typeName() for field in each.source.schema.fields} for each in tables
    }


def _value(value: bytes, kinds: Mapping[str, str]) -> dict[str, Any]:
    shown = value_json(value, False)
    read: dict[str, Any] = json.loads(shown if isinstance(shown, str) else bytes(shown))
    return {name: _decoded(each, kinds[name]) if name in kinds else each for name, each in read.items()}


def _decoded(value: Any, kind: str) -> Any:
    """What stands for an encoded value, as outputs show it."""
    if value is None:
        return None
    if kind in _NUMBERS:
        return _NUMBERS[kind](value)
    if kind in _NESTED:
        return json.loads(value)
    if kind in ("timestamp", "timestamp_ntz"):
        text = (_EPOCH + timedelta(microseconds=value)).isoformat(timespec="microseconds")
        return _shown(text + ("Z" if kind == "timestamp" else ""), kind)
    return value


def _shown(value: Any, kind: str) -> Any:
    """A time with ms, unless it has any µs, as outputs have it."""
    if kind not in ("timestamp", "timestamp_ntz") or not isinstance(value, str):
        return value
    zone = "Z" if value.endswith("Z") else ""
    bare = value.removesuffix("Z")
    return bare.removesuffix("000") + zone if len(bare.rpartition(".")[2]) == 6 else value
