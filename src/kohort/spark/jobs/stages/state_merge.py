"""The stage that merges partials, of which each key has one, with prior values, and writes the store's records.

For aggregates that merge value by value (`Columnwise`). Others take Spark's grouping: see `state_lookup`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics
from kohort.spark.jobs.arrow_encoding import decoded_array
from kohort.spark.jobs.arrow_key_encoding import key_objects, window_texts
from kohort.spark.jobs.arrow_values import json_numbers, json_object, number_texts
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.errors import AggregationError
from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of
from kohort.spark.jobs.stages.late_partials import CLOSED, LATE
from kohort.spark.jobs.stages.state_lookup import StateLookup, taken
from kohort.spark.program.aggregates.columnwise import Fold
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP

MERGED_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("timestamp", pa.int64()),
    ]
)
"""What the stage gives: records of the store, as in `kohort.spark.epoch.ROWS_SCHEMA`."""
_ROWS_AT_ONCE: Final = 16_384
"""Texts of states are several times as large as what Spark gives: more at once take more memory, and no less time."""
_INTERNAL: Final = (PARTITION, TIMESTAMP, RECORDS)


@dataclass(frozen=True)
class Result:
    """A field of the output.

    Attributes:
        column: the number of the state column that it is.
        divided_by: the number of the one that it is divided by, where that isn't 0.
    """

    name: str
    column: int
    divided_by: int | None = None


@dataclass(frozen=True)
class StoreKey:
    """What the stage makes keys of, as `kohort.spark.jobs.key_encoding.store_key` does in Spark.

    Attributes:
        group: the names of the columns that are grouped by; none of them a time.
        windowed: whether there is a window, too.
    """

    group: tuple[str, ...]
    windowed: bool

    @property
    def columns(self) -> int:
        """How many columns it is given: `_window`, if there is a window, and the others."""
        return len(self.group) + self.windowed


@dataclass(frozen=True)
class StateMerge:
    """How partials are merged with a store.

    Attributes:
        lookup: the store, and its state columns in encoded types.
        key: what keys are made of; None: they are given.
        kinds: the state columns in their own types, by their names in the store.
        folds: what two values of each make.
        checked: whether whole numbers that overflow are an error, as in Spark's ANSI mode.
    """

    lookup: StateLookup
    key: StoreKey | None
    kinds: pa.Schema
    folds: tuple[Fold, ...]
    results: tuple[Result, ...]
    checked: bool


def state_merge_stage(context: StageContext, merge: StateMerge) -> Stage:
    """A stage over `_partition`, `_time`, `_records`, `_key` or what it is made of, and the state columns in their own
    types, in this order.

    Partials without a partition, and those that no window takes, are dropped.
    """
    return stage_of(partial(_run, context, merge))


def _run(context: StageContext, merge: StateMerge, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    run, statistics = context.run, EpochStatistics()
    for given in batches:
        for start in range(0, given.num_rows, _ROWS_AT_ONCE):
            batch = taken(_keyed(merge.key, given.slice(start, _ROWS_AT_ONCE)), statistics)
            if batch.num_rows:
                yield _merged(context, merge, batch)
    context.report_left_out(run, statistics)


def _keyed(key: StoreKey | None, partials: pa.RecordBatch) -> pa.RecordBatch:
    """The same with `_key`."""
    if key is None:
        return partials
    end = len(_INTERNAL) + key.columns
    columns, names = partials.columns[len(_INTERNAL) : end], list(key.group)
    starts = columns[0] if key.windowed else None
    if starts is not None:
        columns, names = [window_texts(starts), *columns[1:]], ["window", *names]
    keys = key_objects(names, columns)
    if starts is not None:
        keys = pc.if_else(pc.fill_null(pc.greater(starts, CLOSED), True), keys, LATE)
        keys = pc.if_else(starts.is_valid(), keys, NO_WINDOW)
    names = [*_INTERNAL, KEY, *partials.schema.names[end:]]
    return pa.RecordBatch.from_arrays([*partials.columns[: len(_INTERNAL)], keys, *partials.columns[end:]], names=names)


def _merged(context: StageContext, merge: StateMerge, partials: pa.RecordBatch) -> pa.RecordBatch:
    partitions, keys = partials.column(PARTITION), partials.column(KEY)
    state = [
        column.cast(field.type)
        for column, field in zip(partials.columns[len(_INTERNAL) + 1 :], merge.kinds, strict=True)
    ]
    values = context.rpc.lookup(merge.lookup.store, partitions, keys)
    if values.null_count < len(values):
        prior = _prior_state(merge, values)
        pairs = zip(merge.folds, state, prior, strict=True)
        state = [_folded(merge, fold, column, before) for fold, column, before in pairs]
    columns = [keys.cast(pa.binary()), _values(merge, state), partitions, partials.column(TIMESTAMP)]
    return pa.RecordBatch.from_arrays(columns, schema=MERGED_SCHEMA)


def _prior_state(merge: StateMerge, values: pa.Array) -> list[pa.Array]:
    """The state columns of stored values; nulls where there is no value."""
    found = values.is_valid()
    states = merge.lookup.states(values.drop_null()).flatten()
    there = found.to_numpy(zero_copy_only=False)
    places = pa.array(np.cumsum(there) - 1, mask=~there)
    kinds = merge.kinds.types
    return [decoded_array(column, kind).take(places) for column, kind in zip(states, kinds, strict=True)]


def _folded(merge: StateMerge, fold: Fold, column: pa.Array, before: pa.Array) -> pa.Array:
    match fold:
        case Fold.SUM | Fold.COUNT:
            both = _added(merge, column, before)
            zero = [pa.scalar(0, column.type)] if fold is Fold.COUNT else []
            return pc.coalesce(both, column, before, *zero)
        case Fold.MIN:
            return pc.min_element_wise(column, before)
        case Fold.MAX:
            largest = pc.max_element_wise(column, before)
            if not pa.types.is_floating(column.type):
                return largest
            # In Spark NaN is the largest; Arrow passes over it.
            nan = pc.or_(*(pc.fill_null(pc.is_nan(each), False) for each in (column, before)))
            return pc.if_else(nan, pa.scalar(float("nan"), column.type), largest)


def _added(merge: StateMerge, column: pa.Array, before: pa.Array) -> pa.Array:
    if not merge.checked:
        return pc.add(column, before)
    try:
        return pc.add_checked(column, before)
    except pa.ArrowInvalid as error:
        raise AggregationError(f"aggregate {merge.lookup.store!r}: a sum is too large for its type: {error}") from None


def _values(merge: StateMerge, state: list[pa.Array]) -> pa.Array:
    """The store's values, with the results and the state that they are made of: JSON objects."""
    texts = [number_texts(column) for column in state]
    results: list[tuple[str, Any]] = []
    for result in merge.results:
        column, text = state[result.column], texts[result.column]
        if result.divided_by is not None:
            count = state[result.divided_by]
            some = pc.greater(count, 0)
            column = pc.if_else(some, pc.divide(column, pc.if_else(some, count, 1).cast(column.type)), None)
            text = number_texts(column)
        results.append((result.name, json_numbers(column, text)))
    encoded = [(field.name, pa.types.is_floating(field.type)) for field in merge.kinds]
    fields = [
        (name, pc.binary_join_element_wise('"', text, '"', "") if quoted else text)
        for (name, quoted), text in zip(encoded, texts, strict=True)
    ]
    return json_object([*results, ("state", fields)])
