"""A store's rows as a test reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kohort.spark.program.compiled import Program
from kohort.spark.queries.result_pages import value_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_EPOCH: Final = datetime(1970, 1, 1)
_TIMES: Final = ("timestamp", "timestamp_ntz")
_INTEGERS: Final = ("byte", "short", "integer", "long")


@dataclass(frozen=True)
class StoredAs:
    """How a store has its rows.

    Attributes:
        key: the types of the key's columns, by name, as Spark calls them; others are as JSON has them.
        key_text: the column whose text the keys are; None: they are JSON objects.
        value: the types of the columns whose values are stored in encoded types; {} of an aggregate's results.
        lists: whether a value has several rows of these columns.
    """

    key: Mapping[str, str] = field(default_factory=dict)
    key_text: str | None = None
    value: Mapping[str, str] = field(default_factory=dict)
    lists: bool = False


def stored_as(program: Program) -> dict[str, StoredAs]:
    """How each of a program's stores has its rows, by name."""
    found: dict[str, StoredAs] = {}
    for table in [*(table for each in program.subtopologies for table in each.tables), *program.globals]:
        key, kinds = table.source.key, _kinds(table.source.schema)
        text = key[0] if len(key) == 1 else None
        found[table.name] = StoredAs({name: kinds[name] for name in key}, text, kinds)
    for subtopology in program.subtopologies:
        for spec in subtopology.aggregates:
            found[spec.name] = StoredAs({name: kind.typeName() for name, kind in spec.group})
        for process in subtopology.processors:
            group = {name: kind.typeName() for name, kind in process.group}
            for state in process.states:
                more = {} if state.map_key is None else _kinds(state.map_key)
                found[state.store] = StoredAs({**group, **more}, None, _kinds(state.columns), state.kind == "list")
    return found


class StoreView(Mapping[Any, dict[str, Any]]):
    """A store as it is now: values by key, in the order of the keys' bytes.

    A key is what the key's only column has, or a tuple of its columns, the window's start first, as outputs show them:
    `driver.store("delays")["2013-01-01T05:00:00.000Z", "JFK"]`. A value has an aggregate's results, a table's columns,
    or those of a function's state (of a list: `{"rows": […]}`).

    Args:
        how: the store has its rows.
        rows: keys and values, as they are stored.

    Attributes:
        raw: the same: columns key and value, with an aggregate's state.
    """

    def __init__(self, how: StoredAs, rows: pa.Table) -> None:
        self.raw = rows
        keys, values = rows["key"].to_pylist(), rows["value"].to_pylist()
        self._listed = [(_key(how, key), _value(how, value)) for key, value in zip(keys, values, strict=True)]
        self._rows = {_named(key): value for key, value in self._listed}

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
        rows = [{**key, **value} for key, value in self._listed]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def _named(key: dict[str, Any]) -> Any:
    parts = tuple(key.values())
    return parts[0] if len(parts) == 1 else parts


def _key(how: StoredAs, key: bytes) -> dict[str, Any]:
    if how.key_text is not None:
        text = key.decode(errors="replace")
        return {how.key_text: int(text) if how.key[how.key_text] in _INTEGERS else text}
    return {name: _shown(each, how.key.get(name, "")) for name, each in json.loads(key).items()}


def _value(how: StoredAs, value: bytes) -> dict[str, Any]:
    shown = value_json(value, False)
    read: dict[str, Any] = json.loads(shown if isinstance(shown, str) else bytes(shown))
    if how.lists:
        return {name: [_row(how, row) for row in rows] for name, rows in read.items()}
    return _row(how, read)


def _row(how: StoredAs, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _decoded(each, how.value.get(name, "")) for name, each in row.items()}


def _decoded(value: Any, kind: str) -> Any:
    """What stands for an encoded value, as outputs show it."""
    if value is None:
        return None
    if kind in ("float", "double", "decimal"):
        return float(value)
    if kind in ("array", "map", "struct"):
        return json.loads(value)
    if kind in _TIMES:
        text = (_EPOCH + timedelta(microseconds=value)).isoformat(timespec="microseconds")
        return _shown(text + ("Z" if kind == "timestamp" else ""), kind)
    return value


def _shown(value: Any, kind: str) -> Any:
    """A time with ms, unless it has any µs, as outputs have it."""
    if kind not in _TIMES or not isinstance(value, str):
        return value
    zone = "Z" if value.endswith("Z") else ""
    bare = value.removesuffix("Z")
    return bare.removesuffix("000") + zone if len(bare.rpartition(".")[2]) == 6 else value


def _kinds(schema: StructType) -> dict[str, str]:
    return {each.name: each.dataType.typeName() for each in schema.fields}
