"""The stage between what rows make of sessions and what is kept of them: it adds what their parts had before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import window_texts
from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of
from kohort.spark.jobs.stages.state_lookup import StateLookup
from kohort.spark.program.internal_columns import ABSORBED, CHANGE, KEY, PARTITION, RECORDS, TIMESTAMP
from kohort.spark.program.operations import Change

_AFTER_START = len('{"window":"2013-01-01T05:00:00.000Z')
"""What comes after a window's start in a key is the same for all windows of a group."""


def session_lookup_stage(context: StageContext, state_lookup: StateLookup) -> Stage:
    """A stage over `_partition`, `_key`, `_time`, `_records`, `CHANGE`, `ABSORBED` and the state columns, of which each
    session has one row.

    It gives the same without `ABSORBED`: the sessions' partials, prior values of what they are made of under their
    keys, and a row without state for each session that is to be deleted.
    """
    return stage_of(partial(_add, context, state_lookup))


def _add(
    context: StageContext, state_lookup: StateLookup, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for sessions in batches:
        if not sessions.num_rows:
            continue
        change = sessions.column(CHANGE)
        has_rows = pc.less_equal(change, pa.scalar(int(Change.FINAL), change.type))
        forgotten = pc.equal(change, pa.scalar(int(Change.FORGOTTEN), change.type))
        yield _partials(state_lookup, sessions.filter(has_rows))
        yield _deletions(state_lookup, sessions.filter(forgotten), Change.FORGOTTEN)
        closed = sessions.filter(pc.equal(change, pa.scalar(int(Change.CLOSED), change.type)))
        yield from _prior(context, state_lookup, closed, closed.column(KEY))
        parents = pc.list_parent_indices(sessions.column(ABSORBED))
        grown = sessions.take(parents)
        keys = _keys_at(grown.column(KEY), pc.list_flatten(sessions.column(ABSORBED)))
        yield from _prior(context, state_lookup, grown, keys)
        other = pc.not_equal(keys, grown.column(KEY))
        absorbed = grown.set_column(grown.schema.get_field_index(KEY), KEY, keys)
        yield _deletions(state_lookup, absorbed.filter(other), Change.ABSORBED)


def _keys_at(keys: pa.Array, starts: pa.Array) -> pa.Array:
    """Keys of the same groups, of sessions that begin at other times (ms)."""
    rest = pc.utf8_slice_codeunits(keys, _AFTER_START)
    return pc.binary_join_element_wise('{"window":"', window_texts(starts.cast(pa.int64())), rest, "")


def _partials(state_lookup: StateLookup, sessions: pa.RecordBatch) -> pa.RecordBatch:
    columns = [each for name, each in zip(sessions.schema.names, sessions.columns, strict=True) if name != ABSORBED]
    return _batch(state_lookup, columns)


def _deletions(state_lookup: StateLookup, sessions: pa.RecordBatch, change: Change) -> pa.RecordBatch:
    count = sessions.num_rows
    columns = [sessions.column(PARTITION), sessions.column(KEY), sessions.column(TIMESTAMP)]
    columns += [pa.repeat(pa.scalar(0, pa.int64()), count), pa.repeat(pa.scalar(int(change), pa.int32()), count)]
    return _batch(state_lookup, [*columns, *(pa.nulls(count, field.type) for field in state_lookup.state)])


def _prior(
    context: StageContext, state_lookup: StateLookup, sessions: pa.RecordBatch, keys: pa.Array
) -> Iterator[pa.RecordBatch]:
    """The values of keys, as parts of sessions."""
    if not sessions.num_rows:
        return
    values = context.rpc.lookup(state_lookup.store, sessions.column(PARTITION), keys)
    found = values.is_valid()
    of = sessions.filter(found)
    count = of.num_rows
    columns = [of.column(PARTITION), of.column(KEY), of.column(TIMESTAMP)]
    columns += [pa.repeat(pa.scalar(0, pa.int64()), count), of.column(CHANGE)]
    yield _batch(state_lookup, [*columns, *state_lookup.states(values.filter(found)).flatten()])


def _batch(state_lookup: StateLookup, columns: list[pa.Array]) -> pa.RecordBatch:
    schema = session_schema(state_lookup)
    return pa.RecordBatch.from_arrays(
        [each.cast(field.type) for each, field in zip(columns, schema, strict=True)], schema=schema
    )


def session_schema(state_lookup: StateLookup) -> pa.Schema:
    """Of what the stage gives."""
    own, change = state_lookup.schema, pa.field(CHANGE, pa.int32())
    internal = [own.field(name) for name in (PARTITION, KEY, TIMESTAMP, RECORDS)]
    return pa.schema([*internal, change, *list(own)[len(internal) :]])
