"""Stores in dictionaries, as processors see them."""

from __future__ import annotations

from itertools import accumulate

import pyarrow as pa


class DictStore:
    """A store of one task. What is written counts after `commit`, as after an epoch.

    Attributes:
        read: how many rows its scans have given.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.writes: list[tuple[bytes, bytes | None]] = []
        self.read = 0

    def lookup(self, keys: pa.Array) -> pa.Array:
        return pa.array([self.rows.get(key) for key in keys.cast(pa.binary()).to_pylist()], pa.binary())

    def scan(
        self,
        starts: pa.Array,
        ends: pa.Array,
        most_bytes: int | None = None,
        neighbours_from: pa.Array | None = None,
        neighbours_to: pa.Array | None = None,
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        found, ordered = [], sorted(self.rows)
        for number, (start, end) in enumerate(zip(starts.to_pylist(), ends.to_pylist(), strict=True)):
            keys = [key for key in ordered if start <= key < end]
            if neighbours_from is not None and (least := neighbours_from[number].as_py()) is not None:
                keys = [*[key for key in ordered if least <= key < start][-1:], *keys]
            if neighbours_to is not None and (bound := neighbours_to[number].as_py()) is not None:
                keys += [key for key in ordered if end <= key < bound][:1]
            found += [(number, key, self.rows[key]) for key in keys]
        self.read += len(found)
        if most_bytes is not None:
            sizes = accumulate(len(key) for _, key, _ in found)
            found = [row for row, size in zip(found, sizes, strict=True) if size <= most_bytes] or found[:1]
        numbers, keys, values = ([each[place] for each in found] for place in range(3))
        return pa.array(numbers, pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())

    def write(self, keys: pa.Array, values: pa.Array) -> None:
        self.writes += zip(keys.cast(pa.binary()).to_pylist(), values.to_pylist(), strict=True)

    def commit(self) -> None:
        for key, value in self.writes:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        self.writes = []
