"""A processor with its stores, as one task runs it: epochs of rows in, rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kohort.spark.jobs.processors.interface import Processor, TaskState
from kohort.spark.jobs.processors.states import State

from .stores import DictStore
from .tasks import given


@dataclass
class OneTask:
    """A processor over rows that are dictionaries, with their event times in ms as `_time`.

    Attributes:
        schema: the columns of its rows.
        group: those that state is kept by.
        states: the columns of its stores; of maps, with those of their keys.
    """

    processor: Processor
    schema: pa.Schema
    group: Sequence[str]
    states: Mapping[str, pa.Schema | tuple[pa.Schema, pa.Schema]]
    late: int = 0
    dropped: int = 0
    _read: int = 0
    _stream_time: int | None = None
    stores: dict[str, DictStore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stores = {name: DictStore() for name in self.states}

    def epoch(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What it makes of an epoch's rows, with their times as `_time` and `_stream_time`, in ms."""
        if not rows:
            return []
        read, self._stream_time = given(rows, self.schema, self.group, self._stream_time, self._read)
        self._read += len(rows)
        made = self.processor.process(read, TaskState(0, self._stream_time, self._opened()))
        for store in self.stores.values():
            store.commit()
        self.late += made.late
        self.dropped += sum(count for _, count in made.dropped)
        assert len(made.of) == made.rows.num_rows
        made_times = read.times.take(made.of) if made.times is None else made.times
        seen_at = read.stream_times.take(made.of) if made.stream_times is None else made.stream_times
        times = zip(made_times.to_pylist(), seen_at.to_pylist(), strict=True)
        return [
            row | {"_time": at, "_stream_time": seen}
            for row, (at, seen) in zip(made.rows.to_pylist(), times, strict=True)
        ]

    def _opened(self) -> dict[str, State]:
        opened = {}
        for name, columns in self.states.items():
            kept, *map_key = columns if isinstance(columns, tuple) else (columns,)
            opened[name] = State(name, kept, self.stores[name], *map_key)
        return opened


def cut(rows: Sequence[Any], sizes: Sequence[int]) -> list[Sequence[Any]]:
    """Rows in epochs of these sizes, and the rest in a last one."""
    parts = []
    start = 0
    for size in (*sizes, len(rows)):
        parts.append(rows[start : start + size])
        start += size
    return parts
