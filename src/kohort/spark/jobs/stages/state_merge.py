"""The stages that merge partials with prior values, and write the store's records.

For aggregates that merge value by value (`Columnwise`). Others take Spark's grouping: see `state_lookup` and `merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics
from kohort.spark.formats.base64_columns import base64_texts
from kohort.spark.jobs.arrow_encoding import decoded_array
from kohort.spark.jobs.arrow_key_encoding import group_keys, quoted_texts, window_texts
from kohort.spark.jobs.arrow_values import Fields, json_array, json_numbers, json_object, number_texts
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.errors import AggregationError, StoredValueError
from kohort.spark.jobs.kll_sketches import merged as merged_sketches
from kohort.spark.jobs.kll_sketches import quantiles
from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of
from kohort.spark.jobs.stages.late_partials import CLOSED, LATE
from kohort.spark.jobs.stages.row_groups import random_seed
from kohort.spark.jobs.stages.state_lookup import StateLookup, taken
from kohort.spark.program.aggregates.columnwise import Fold, Sketch
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP

MERGED_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field(TIMESTAMP, pa.int64()),
    ]
)
"""What the stages give: records of the store, or of a topic of partials."""
_ROWS_AT_ONCE: Final = 16_384
"""Texts of states are several times as large as what Spark gives: more at once take more memory, and no less time."""
_BYTES_AT_ONCE: Final = 128 * 1024 * 1024
"""What sketches may take, if all are full: a column of their texts has room for 2 GiB, and there are several."""
_FULL_SKETCH: Final = 24  # bytes for each of k: its levels have room for k values, two thirds of k, and so on
_INTERNAL: Final = (PARTITION, TIMESTAMP, RECORDS)

Gather = Callable[[Iterator[pa.RecordBatch]], pa.RecordBatch | None]
"""Makes one partial a key of all that a stage is given: a method of `RowGroups`."""


@dataclass(frozen=True)
class Result:
    """A field of the output.

    Attributes:
        column: the number of the state column that it is.
        divided_by: the number of the one that it is divided by, where that isn't 0.
        quantiles: what it is of a sketch: one number, or an array of several.
    """

    name: str
    column: int
    divided_by: int | None = None
    quantiles: float | tuple[float, ...] | None = None


@dataclass(frozen=True)
class StoreKey:
    """What the stage makes keys of, as `kohort.spark.jobs.key_encoding.store_key` does in Spark.

    Attributes:
        group: the names of the columns that are grouped by.
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
    folds: tuple[Fold | Sketch, ...]
    results: tuple[Result, ...]
    checked: bool


def state_merge_stage(context: StageContext, merge: StateMerge, gather: Gather | None = None) -> Stage:
    """A stage over `_partition`, `_time`, `_records`, `_key` or what it is made of, and the state columns in their own
    types, in this order; or over what `gather` makes partials of.

    Partials without a partition, and those that no window takes, are dropped.
    """
    return stage_of(partial(_run, context, merge, gather))


def _run(
    context: StageContext, merge: StateMerge, gather: Gather | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    run, statistics = context.run, EpochStatistics()
    for given in gathered(gather, batches):
        yield from merged_records(context, merge, taken(keyed(merge.key, given), statistics))
    context.report_left_out(run, statistics)


def gathered(gather: Gather | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches as they are; or what is made of them all, with the internal columns that there are first."""
    if gather is None:
        yield from batches
    elif (made := gather(batches)) is not None:
        internal = [name for name in _INTERNAL if name in made.schema.names]
        yield made.select([*internal, *(name for name in made.schema.names if name not in internal)])


def keyed(key: StoreKey | None, partials: pa.RecordBatch) -> pa.RecordBatch:
    """The same, with `_key` instead of what it is made of."""
    if key is None:
        return partials
    end = len(_INTERNAL) + key.columns
    columns, names = partials.columns[len(_INTERNAL) : end], list(key.group)
    starts = columns[0] if key.windowed else None
    if starts is not None:
        columns, names = [window_texts(starts), *columns[1:]], ["window", *names]
    keys = group_keys(names, columns)
    if starts is not None:
        keys = pc.if_else(pc.fill_null(pc.greater(starts, CLOSED), True), keys, LATE)
        keys = pc.if_else(starts.is_valid(), keys, NO_WINDOW)
    names = [*_INTERNAL, KEY, *partials.schema.names[end:]]
    return pa.RecordBatch.from_arrays([*partials.columns[: len(_INTERNAL)], keys, *partials.columns[end:]], names=names)


def merged_records(context: StageContext, merge: StateMerge, partials: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Partials, of which each key has one, merged with the store, as its records (`MERGED_SCHEMA`)."""
    return (_merged(context, merge, some) for some in _some_at_once(merge, partials))


def partial_records(merge: StateMerge, partials: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Partials as they are written to a repartition topic (`MERGED_SCHEMA`)."""
    return (_partial_records(merge, some) for some in _some_at_once(merge, partials))


def _some_at_once(merge: StateMerge, partials: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    state_bytes = sum(_FULL_SKETCH * fold.k for fold in merge.folds if isinstance(fold, Sketch))
    rows = max(min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(state_bytes, 1)), 1)
    return (partials.slice(start, rows) for start in range(0, partials.num_rows, rows))


def _partial_records(merge: StateMerge, partials: pa.RecordBatch) -> pa.RecordBatch:
    texts = [_encoded(column) for column in _state(merge, partials)]
    records = partials.column(RECORDS).cast(pa.string())
    values = json_object([("records", records), ("state", _state_fields(merge, texts))])
    columns = [partials.column(KEY).cast(pa.binary()), values, partials.column(PARTITION), partials.column(TIMESTAMP)]
    return pa.RecordBatch.from_arrays(columns, schema=MERGED_SCHEMA)


def _state(merge: StateMerge, partials: pa.RecordBatch) -> list[pa.Array]:
    columns = partials.columns[len(_INTERNAL) + 1 :]
    return [column.cast(field.type) for column, field in zip(columns, merge.kinds, strict=True)]


def _merged(context: StageContext, merge: StateMerge, partials: pa.RecordBatch) -> pa.RecordBatch:
    partitions, keys, state = partials.column(PARTITION), partials.column(KEY), _state(merge, partials)
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


def _folded(merge: StateMerge, fold: Fold | Sketch, column: pa.Array, before: pa.Array) -> pa.Array:
    match fold:
        case Sketch(k, whole):
            rows = np.arange(len(column))
            both = pa.concat_arrays([column, before])
            try:
                return merged_sketches(both, np.concatenate([rows, rows]), len(rows), k, whole, random_seed())
            except ValueError as error:
                raise StoredValueError(f"store {merge.lookup.store}: {error}") from None
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
    texts = [_encoded(column) for column in state]
    results: list[tuple[str, Any]] = [(each.name, _result(merge, each, state, texts)) for each in merge.results]
    return json_object([*results, ("state", _state_fields(merge, texts))])


def _result(merge: StateMerge, result: Result, state: list[pa.Array], texts: list[pa.Array]) -> pa.Array:
    column, text = state[result.column], texts[result.column]
    if result.quantiles is not None:
        return _quantiles(merge, result, column)
    if result.divided_by is not None:
        count = state[result.divided_by]
        some = pc.greater(count, 0)
        column = pc.if_else(some, pc.divide(column, pc.if_else(some, count, 1).cast(column.type)), None)
        text = number_texts(column)
    return json_numbers(column, text)


def _quantiles(merge: StateMerge, result: Result, column: pa.Array) -> pa.Array:
    sketch, wanted = merge.folds[result.column], result.quantiles
    assert isinstance(sketch, Sketch) and wanted is not None
    found = quantiles(column, wanted if isinstance(wanted, tuple) else [wanted], sketch.whole)
    texts = [json_numbers(each, number_texts(each)) for each in found]
    return json_array(texts) if isinstance(wanted, tuple) else texts[0]


def _encoded(column: pa.Array) -> pa.Array:
    return base64_texts(column) if pa.types.is_binary(column.type) else number_texts(column)


def _state_fields(merge: StateMerge, texts: list[pa.Array]) -> Fields:
    return [
        (field.name, text if pa.types.is_integer(field.type) else quoted_texts(text))
        for field, text in zip(merge.kinds, texts, strict=True)
    ]
