"""The fingerprint of a program: what its stores and repartition topics hold, and what that means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kohort.spark.program.aggregates.identity import expressions, identity
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.program.compiled import (
    AggregateSpec,
    CompiledSubtopology,
    Join,
    PartialsInput,
    RowsInput,
    SidesInput,
    TableStore,
    ToPartials,
    TopicInput,
    ToRows,
)
from kohort.spark.program.processor_specs import Process

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def fingerprint(subtopologies: Sequence[CompiledSubtopology]) -> Fingerprint:
    """16 hex digits that change with what stores and repartition topics hold, and with what it means.

    So each aggregation is in it with its parameters, and those of users with their version. Functions over rows aren't,
    nor are outputs, settings and policies: these may change from one start to the next. Nor are expressions, since
    Spark's next version may print them in another way: their digests go beside it. Of Arrow functions only the schema
    of the state is in it: one that was mended goes on with the state that it finds.
    """
    text = json.dumps(list(map(_subtopology, subtopologies)), sort_keys=True, separators=(",", ":"))
    return Fingerprint(_digest(text, 16), tuple(expression_digests(subtopologies).values()))


def expression_digests(subtopologies: Sequence[CompiledSubtopology]) -> dict[str, str]:
    """8 hex digits for each aggregation that has expressions of the user's: by its store and column, `delays.mean`."""
    return {
        f"{spec.name}.{name}": digest
        for subtopology in subtopologies
        for spec in subtopology.aggregates
        for name, digest in column_expressions(spec).items()
    }


def column_expressions(spec: AggregateSpec) -> dict[str, str]:
    """The same of one aggregate, by its columns."""
    found = {name: expressions(aggregation) for name, aggregation in spec.aggregations}
    return {name: _digest(json.dumps(texts), 8) for name, texts in found.items() if texts}


def aggregate_keys(spec: AggregateSpec) -> Any:
    """What in the fingerprint of an aggregate is of its keys, its windows and where they are, not of its columns."""
    return {name: said for name, said in _aggregate(spec).items() if name not in ("name", "state", "by")}


def state_keys(step: Process, store: str) -> Any:
    """What in the fingerprint of a processor is of the keys of a store, and of what the processor does."""
    said = _processor(step)
    (state,) = [[kind, *others] for name, kind, _, *others in said["states"] if name == store]
    return {"state": state, **{name: each for name, each in said.items() if name not in ("name", "states")}}


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _subtopology(subtopology: CompiledSubtopology) -> Any:
    said: dict[str, Any] = {"id": subtopology.id, "tables": [_table(table) for table in subtopology.tables]}
    match subtopology.input:
        case TopicInput(source):
            said["topic"] = list(source.topics) if source.others and not source.pattern else source.topic
        case RowsInput():
            said["rows"] = [subtopology.input.topic, _fields(subtopology.input.schema), list(subtopology.input.key)]
        case PartialsInput():
            said["partials"] = subtopology.input.topic
        case SidesInput():
            said["sides"] = [[side.source.topic for side in subtopology.input.sides], list(subtopology.input.key)]
        case None:
            pass
    said["aggregates"] = [_aggregate(spec) for spec in subtopology.aggregates]
    said["joins"] = sorted(
        {step.table.name for branch in subtopology.branches for step in branch.steps if isinstance(step, Join)}
    )
    if subtopology.processors:
        said["processors"] = [_processor(step) for step in subtopology.processors]
    said["ends"] = [
        branch.terminal.topic for branch in subtopology.branches if isinstance(branch.terminal, (ToRows, ToPartials))
    ]
    return said


def _table(table: TableStore) -> Any:
    return [table.name, table.source.topic, list(table.source.key), _fields(table.source.schema)]


def _aggregate(spec: AggregateSpec) -> Any:
    window = spec.window
    return {
        "name": spec.name,
        "group": [[name, _grouped_by(kind)] for name, kind in spec.group],
        "window": None if window is None else window.identity,
        "state": [[name, kind.simpleString()] for name, kind in spec.state_columns],
        "by": [[name, identity(each)] for name, each in spec.aggregations],
        "routed": [spec.route.value, list(spec.routed_by)],
    }


def _processor(step: Process) -> Any:
    return {
        "name": step.name,
        "group": [[name, _grouped_by(kind)] for name, kind in step.group],
        "states": [
            [state.store, state.kind.value, _fields(state.columns), state.bucket_ms]
            + ([_fields(state.map_key)] if state.map_key is not None else [])
            for state in step.states
        ],
        "is": step.operation.identity,
        "routed": list(step.routed_by),
    }


def _grouped_by(kind: DataType) -> str:
    from pyspark.sql.types import TimestampType

    # Keys once had all times with µs, so stores that have such keys are others.
    return f"{kind.simpleString()}, ms" if isinstance(kind, TimestampType) else kind.simpleString()


def _fields(schema: StructType) -> list[list[str]]:
    return [[field.name, field.dataType.simpleString()] for field in schema.fields]
