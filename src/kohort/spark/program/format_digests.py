"""The formats of a program's stores: what is compared with those that were committed before.

| What | `keys` | a column |
| --- | --- | --- |
| aggregate | groups, window, how partitions are found | an aggregation: parameters, expressions, types of its state |
| aggregate by an Arrow function | the same | a column of the state |
| groups of an aggregate that wait to be written | those of the aggregate | none |
| table | the key | a column of its rows |
| state of a processor | groups, kind, keys of a map, buckets, what the processor does | a column of what is kept |
| rows of a repartition topic | the columns that they are partitioned by | a column |
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from kohort.spark.program.aggregates.identity import identity
from kohort.spark.program.compiled import Aggregate, AggregateSpec, CompiledSubtopology, RowsInput, TableStore
from kohort.spark.program.fingerprint import aggregate_keys, column_expressions, state_keys
from kohort.spark.program.processor_specs import Process, StateSpec
from kohort.spark.program.store_formats import ROWS, StoreFormat, StoreFormats, with_expression

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_KEYS: Final = 8
_COLUMN: Final = 6


def store_formats(subtopology: CompiledSubtopology) -> dict[str, StoreFormats]:
    """The formats of what is made of each topic that a subtopology reads, by the topic's name."""
    found: dict[str, StoreFormats] = {table.source.topic: {table.name: _table(table)} for table in subtopology.tables}
    if subtopology.input is not None:
        stores = {spec.name: _aggregate(spec) for spec in subtopology.aggregates}
        stores |= {state.store: _state(step, state) for step in subtopology.processors for state in step.states}
        stores |= _waiting(subtopology)
        if isinstance(subtopology.input, RowsInput):
            stores[ROWS] = _rows(subtopology.input)
        found |= dict.fromkeys(subtopology.input.topics, stores)
    return found


def _aggregate(spec: AggregateSpec) -> StoreFormat:
    keys: list[Any] = ["arrow" if spec.arrow is not None else "aggregate", aggregate_keys(spec)]
    if spec.arrow is not None:
        return StoreFormat(_digest(keys, _KEYS), {name: _type(kind) for name, kind in spec.state_columns})
    columns = {}
    for name, aggregation in spec.aggregations:
        state = [
            [each.removeprefix(name), kind.simpleString()]
            for each, kind in spec.state_columns
            if each == name or each.startswith(f"{name}.")
        ]
        columns[name] = _digest([identity(aggregation), state], _COLUMN)
    if spec.signed:  # what leaves has to have come in: no column can begin later than the others
        keys.append(["signed", dict(columns)])
    for name, printed in column_expressions(spec).items():
        columns[name] = with_expression(columns[name], printed[:_COLUMN])
    return StoreFormat(_digest(keys, _KEYS), columns)


def _waiting(subtopology: CompiledSubtopology) -> dict[str, StoreFormat]:
    ends = (branch.terminal for branch in subtopology.branches)
    return {
        end.waiting.name: StoreFormat(_digest(["waiting", aggregate_keys(end.spec)], _KEYS), {})
        for end in ends
        if isinstance(end, Aggregate) and end.waiting is not None
    }


def table_format(table: TableStore) -> str:
    """Changes with all that a table's store holds of a record."""
    made = _table(table)
    return _digest([made.keys, dict(made.columns)], _KEYS)


def _table(table: TableStore) -> StoreFormat:
    return StoreFormat(_digest(["table", list(table.source.key)], _KEYS), _columns(table.source.schema))


def _state(step: Process, state: StateSpec) -> StoreFormat:
    return StoreFormat(_digest(["state", state_keys(step, state.store)], _KEYS), _columns(state.columns))


def _rows(read: RowsInput) -> StoreFormat:
    return StoreFormat(_digest(["rows", list(read.key), read.encoded], _KEYS), _columns(read.schema))


def _columns(schema: StructType) -> dict[str, str]:
    return {each.name: _type(each.dataType) for each in schema.fields}


def _type(kind: DataType) -> str:
    return _digest(kind.simpleString(), _COLUMN)


def _digest(said: Any, digits: int) -> str:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
