"""A store's rows as a test reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.result_pages import value_json

_WINDOW = "window"


class StoreView(Mapping[Any, dict[str, Any]]):
    """A store as it is now: values by key, in the order of the keys' bytes.

    A key is what the key's only column has, or a tuple of its columns, the window's start first, as outputs show them:
    `driver.store("delays")["2013-01-01T05:00:00.000Z", "JFK"]`. A value has an aggregate's results, or a table's
    columns.

    Args:
        info: what is known of the store.
        rows: its keys and values, as they are stored.
    """

    def __init__(self, info: StoreInfo, rows: pa.Table) -> None:
        self._info, self._raw = info, rows
        self._names = ((_WINDOW,) if info.windowed else ()) + tuple(name for name, _ in info.columns)
        keys, values = rows["key"].to_pylist(), rows["value"].to_pylist()
        self._rows = {self._key(key): _value(value) for key, value in zip(keys, values, strict=True)}

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
            return key.decode(errors="replace")
        parts = tuple(json.loads(key).values())
        return parts[0] if len(parts) == 1 else parts


def _value(value: bytes) -> dict[str, Any]:
    shown = value_json(value, False)
    read: dict[str, Any] = json.loads(bytes(shown) if not isinstance(shown, str) else shown)
    return read
