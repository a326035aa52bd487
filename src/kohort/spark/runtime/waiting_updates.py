"""Groups of an aggregate that are written once in a time at most: which wait, and which are written. Pure, in Arrow.

A group that waits has two rows in a store of their own: `{"group":…}` says when it is due, and `{"due":…,"group":…}` is
found by that. What is written then is what the aggregate's store has by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import window_texts
from kohort.spark.jobs.output_values import window_starts
from kohort.spark.jobs.time_bounds import LAST_MS
from kohort.spark.runtime.subtopology_plan import StoreOutput, WaitingStore
from kohort.spark.runtime.window_closing import window_text

Scan = Callable[[str, int, bytes, bytes], pa.Table]
"""(store, partition, from, up to) -> what the store has there: columns key and value."""
Lookup = Callable[[str, int, pa.Array], pa.Array]
"""(store, partition, keys) -> their values; null where there is none."""

_DUE: Final = b'{"due":"'
_GROUP: Final = b'{"group":'
_AFTER_DUE: Final = len(_DUE) + 24
_BEFORE_GROUP: Final = _AFTER_DUE + len(b'","group":')


class Updates(NamedTuple):
    """What is written of an aggregate after an epoch.

    Attributes:
        rows: the groups, as in the aggregate's store; in the order in which they were due, and with that as their time.
        waiting: rows of the store of those that wait; null values delete.
    """

    rows: pa.Table
    waiting: pa.Table


def updates_due(
    output: StoreOutput,
    waiting: WaitingStore,
    partition: int,
    rows: pa.Table,
    times: tuple[int | None, int | None],
    scan: Scan,
    lookup: Lookup,
) -> Updates:
    """What is due after an epoch.

    A group begins to wait at the time of its change, or at the stream time before the epoch if that is later: so there
    is never less than the time between two of its records, however late rows come. One whose window is forgotten goes
    before that.

    Args:
        rows: of the aggregate's store, that the epoch has changed in this partition; each key once.
        times: stream time before the epoch and after it (ms).
        scan, lookup: read stores as they were before the epoch.
    """
    before, now = times
    if now is None:  # there is no time yet, by which to wait
        return Updates(rows.select(["key", "value", "timestamp"]), _writes([], []))
    groups = _one(rows["key"])
    began = _one(rows["timestamp"]).cast(pa.int64())
    began = pc.fill_null(began, now) if before is None else pc.max_element_wise(began, before)
    due = pc.min_element_wise(pc.add(began, waiting.every), LAST_MS)
    new = lookup(waiting.store, partition, _group_keys(groups)).is_null() if len(groups) else pa.array([], pa.bool_())
    goes = pc.less_equal(due, now)
    # From the first on: a program that wrote each change at once may have let some become due.
    found = scan(waiting.store, partition, _DUE, _bound(now))["key"]
    waited = pc.binary_slice(_one(found), _BEFORE_GROUP, -1)
    waited_for = _times(_one(found))
    forgotten = None if output.windows is None else output.windows.expiring(before, now)
    if forgotten is not None:
        first, last = forgotten
        goes = pc.or_(goes, pc.and_(pc.greater_equal(groups, first), pc.less(groups, last)))
        early = scan(waiting.store, partition, _GROUP + first, _GROUP + last)
        more = pc.binary_slice(_one(early["key"]), len(_GROUP), -1)
        others = pc.invert(pc.is_in(more, value_set=waited))
        waited = pa.concat_arrays([waited, more.filter(others)])
        waited_for = pa.concat_arrays([waited_for, _times(_one(early["value"]).filter(others))])
    goes, stays = pc.and_(new, goes), pc.and_(new, pc.invert(goes))

    released = pa.concat_arrays([waited, groups.filter(goes)])
    at = pa.concat_arrays([waited_for, due.filter(goes)])
    place = pc.index_in(released, value_set=groups)
    values = pc.coalesce(_one(rows["value"]).take(place), _stored(output.store, partition, released, place, lookup))
    written = pa.table({"key": released, "value": values, "timestamp": at})
    written = written.take(pc.sort_indices(written, [("timestamp", "ascending"), ("key", "ascending")]))
    written = written.set_column(2, "timestamp", pc.min_element_wise(written["timestamp"], now))

    begin, begin_at = groups.filter(stays), due.filter(stays)
    keys = [_group_keys(begin), _due_keys(begin, begin_at), _group_keys(waited), _due_keys(waited, waited_for)]
    entries = [_due_values(begin_at), pa.array([b"{}"] * len(begin), pa.binary())]
    return Updates(written, _writes(keys, [*entries, pa.nulls(2 * len(waited), pa.binary())]))


def _stored(store: str, partition: int, groups: pa.Array, place: pa.Array, lookup: Lookup) -> pa.Array:
    """The values of those groups that the epoch hasn't changed; null for the others."""
    unchanged = place.is_null()
    if not unchanged.true_count:
        return pa.nulls(len(groups), pa.binary())
    values = lookup(store, partition, groups.filter(unchanged)).cast(pa.binary())
    return pc.replace_with_mask(pa.nulls(len(groups), pa.binary()), unchanged, values)


# The store of those that wait ----------------------------------------------------------------------------------------


def _group_keys(groups: pa.Array) -> pa.Array:
    return _joined(_GROUP.decode(), groups, "}")


def _due_keys(groups: pa.Array, due: pa.Array) -> pa.Array:
    return _joined(_DUE.decode(), window_texts(due), '","group":', groups, "}")


def _due_values(due: pa.Array) -> pa.Array:
    return _joined(_DUE.decode(), window_texts(due), '"}')


def _joined(*parts: Any) -> pa.Array:
    texts = [part if isinstance(part, str) else part.cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*texts, "").cast(pa.binary())


def _bound(time: int) -> bytes:
    """Keys that are due later (ms) come after this, the others before it."""
    return _DUE + (window_text(time + 1).encode() if time < LAST_MS else b"#")


def _times(keys: pa.Array) -> pa.Array:
    """When keys, or values, say that a group is due (ms)."""
    return window_starts(pc.binary_replace_slice(keys, 0, len(_DUE), b'{"window":"'))


def _writes(keys: list[pa.Array], values: list[pa.Array]) -> pa.Table:
    key = pa.concat_arrays([pa.array([], pa.binary()), *keys])
    value = pa.concat_arrays([pa.array([], pa.binary()), *values])
    none = pa.nulls(len(key), pa.int64())
    return pa.table({"key": key, "value": value, "timestamp": none})


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
