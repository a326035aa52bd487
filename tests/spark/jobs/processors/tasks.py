"""Rows as processors are given them, epoch by epoch, and what processors make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.processors.interface import Made, Processor, Rows, TaskState
from kohort.spark.jobs.processors.states import State
from kohort.spark.program.operations import KEPT
from kohort.spark.runtime.window_closing import Windows

from .stores import DictStore


def given(
    rows: Sequence[dict[str, Any]], schema: pa.Schema, group: Sequence[str], stream_time: int | None, first: int
) -> tuple[Rows, int | None]:
    """Rows of an epoch, and the stream time after them.

    Args:
        rows: with their event time in ms as `_time`, beside the columns of the schema; what isn't there is null.
        stream_time: before them.
        first: the offset of the first.
    """
    table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
    times = [row.get("_time") for row in rows]
    stream_times = []
    for time in times:
        stream_time = max((each for each in (time, stream_time) if each is not None), default=None)
        stream_times.append(stream_time)
    read = Rows(
        table,
        group_keys(group, [table[name].combine_chunks() for name in group]),
        pa.array(times, pa.int64()),
        pa.array(stream_times, pa.int64()),
        pa.array(range(first, first + len(rows)), pa.int64()),
    )
    return read, stream_time


def epochs(
    processor: Processor,
    rows: Sequence[dict[str, Any]],
    schema: pa.Schema,
    group: Sequence[str],
    kept: pa.Schema,
    sizes: Sequence[int],
    windows: Windows | None = None,
    **state: Any,
) -> Iterator[tuple[pa.Table, Made]]:
    """The rows of epochs of these sizes, and the rest in a last one, with what a processor makes of them.

    Args:
        rows: with their event time in ms as `_time`, beside the columns of the schema.
        kept: the columns of its store.
        windows: what of its store is forgotten after each epoch.
        state: more of the store, as `State` has it.
    """
    store = DictStore()
    stream_time: int | None = None
    start = 0
    for size in (*sizes, len(rows)):
        some = rows[start : start + size]
        if not some:
            continue
        read, stream_time = given(some, schema, group, stream_time, start)
        made = processor.process(read, TaskState(0, stream_time, {KEPT: State("kept", kept, store, **state)}))
        store.commit()
        if windows is not None:
            store.rows = {key: value for key, value in store.rows.items() if not _is_old(key, windows, stream_time)}
        yield read.columns, made
        start += size


def _is_old(key: bytes, windows: Windows, stream_time: int | None) -> bool:
    bounds = windows.expiring(None, stream_time)
    return bounds is not None and bounds[0] <= key < bounds[1]
