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
        table = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in some], schema)
        stream_times = []
        for row in some:
            times = [each for each in (row["_time"], stream_time) if each is not None]
            stream_time = max(times, default=None)
            stream_times.append(stream_time)
        given = Rows(
            table,
            group_keys(group, [table[name].combine_chunks() for name in group]),
            pa.array([row["_time"] for row in some], pa.int64()),
            pa.array(stream_times, pa.int64()),
            pa.array(range(start, start + len(some)), pa.int64()),
        )
        made = processor.process(given, TaskState(0, stream_time, {KEPT: State("kept", kept, store, **state)}))
        store.commit()
        if windows is not None:
            store.rows = {key: value for key, value in store.rows.items() if not _is_old(key, windows, stream_time)}
        yield table, made
        start += size


def _is_old(key: bytes, windows: Windows, stream_time: int | None) -> bool:
    bounds = windows.expiring(None, stream_time)
    return bounds is not None and bounds[0] <= key < bounds[1]
