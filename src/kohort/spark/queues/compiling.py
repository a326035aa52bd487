"""Compiles a queue that a user wrote: checks it over DataFrames of no rows, as far as that goes without brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T  # noqa: N812

from kohort.spark.errors import ProgramError
from kohort.spark.internals import empty_frame
from kohort.spark.program.column_checks import check_names, check_types, one_of
from kohort.spark.program.column_propagation import propagated
from kohort.spark.program.compiled import SourceSpec, ToTopic
from kohort.spark.program.error_policies import Drop
from kohort.spark.program.internal_columns import OFFSET, PARTITION
from kohort.spark.program.output_checks import row_output
from kohort.spark.program.queues import DELIVERY_COUNT, QueueDef, QueueSettings, WorkDef
from kohort.spark.program.shortcuts import Shortcut
from kohort.spark.program.sources import resolved
from kohort.spark.program.transform_checks import called, over_several_rows
from kohort.spark.queues.settlement import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_IDENTITY: Final = (PARTITION, OFFSET)

Transform = Callable[["DataFrame"], "DataFrame"]


@dataclass(frozen=True)
class CompiledQueue:
    """A queue, checked.

    Attributes:
        source: how its records are read.
        steps: transforms, in order.
        rows: what they begin with: the source's columns, then `_delivery_count`, `_partition`, `_offset`.
        result: what they make, the last two included.
        outputs: topics that get the rows of accepted records.
        functions: those that get them.
    """

    source: SourceSpec
    settings: QueueSettings
    rules: Rules
    steps: tuple[Transform, ...]
    rows: T.StructType
    result: T.StructType
    outputs: tuple[ToTopic, ...]
    functions: tuple[Callable[[DataFrame, str], object], ...]

    @property
    def topic(self) -> str:
        """The queue's topic."""
        return self.source.topic

    @property
    def written(self) -> tuple[str, ...]:
        """The topics that it writes to: the outputs', then that of dead letters."""
        letters = self.settings.dead_letters
        return (*(each.topic for each in self.outputs), *([] if letters is None else [letters]))

    def applied(self, rows: DataFrame) -> DataFrame:
        """What the transforms make of rows."""
        for step in self.steps:
            rows = propagated(step(rows), rows, _IDENTITY)
        return rows


def compile_queues(queues: Sequence[QueueDef], spark: SparkSession) -> tuple[CompiledQueue, ...]:
    """The queues of an application.

    Raises:
        ProgramError: one can't run as it is written; says what is wrong, and what to write instead.
    """
    return tuple(_compiled(each, spark) for each in queues)


def _compiled(queue: QueueDef, spark: SparkSession) -> CompiledQueue:
    where = f"queue {queue.source.topic!r}"
    work = queue.work
    if work is None:
        raise ProgramError(f"{where}: nothing is done with it; say .process(outcome=…)")
    source = resolved(queue.source, "queue")
    rows = T.StructType(
        [
            *source.schema.fields,
            T.StructField(DELIVERY_COUNT, T.IntegerType()),
            T.StructField(PARTITION, T.IntegerType()),
            T.StructField(OFFSET, T.LongType()),
        ]
    )
    check_names(where, [name for name in rows.names if name not in _IDENTITY])
    frame = empty_frame(spark, rows)
    for step in work.steps:
        frame = empty_frame(spark, _transformed(f"{where}: {_label(step)}", step, frame))
    shown = T.StructType([each for each in frame.schema.fields if each.name not in _IDENTITY])
    check_types(f"{where}: process", shown)
    for name, column in (("outcome", work.outcome), ("reason", work.reason)):
        _check_text(f"{where}: process({name}={column!r})", column, shown)
    return CompiledQueue(
        source,
        queue.settings,
        Rules(work.outcome, work.reason, work.missing, queue.settings.max_deliveries),
        work.steps,
        rows,
        frame.schema,
        _outputs(where, work, shown, frame),
        tuple(work.functions),
    )


def _transformed(where: str, step: Transform, frame: DataFrame) -> T.StructType:
    made = called(where, step, frame)
    if several := over_several_rows(made, frame):
        raise ProgramError(f"{where}: {several.split('. ')[0]}; a transform of a queue treats each row by itself")
    check_names(where, [name for name in made.columns if name not in _IDENTITY])
    made = propagated(made, frame, _IDENTITY)
    if lost := [name for name in _IDENTITY if name not in made.columns]:
        raise ProgramError(
            f"{where} loses the column {lost[0]}, by which records are acknowledged. It goes with rows through select, "
            f"where, explode, joins and UDFs; what goes through mapInPandas, mapInArrow or unpivot has to keep "
            f"{PARTITION} and {OFFSET} as they are"
        )
    return made.schema


def _outputs(where: str, work: WorkDef, shown: T.StructType, frame: DataFrame) -> tuple[ToTopic, ...]:
    """What is written: all columns but those that say what becomes of the record."""
    own = {work.outcome, work.reason, DELIVERY_COUNT}
    schema = T.StructType([each for each in shown.fields if each.name not in own])
    rows = frame.select(*[frame[f"`{name}`"] for name in schema.names], PARTITION)
    return tuple(row_output(where, each, schema, rows, Drop()) for each in work.outputs)


def _check_text(where: str, name: str | None, schema: T.StructType) -> None:
    if name is not None and not isinstance(kind := one_of(where, name, schema), T.StringType):
        raise ProgramError(f"{where}: this is STRING, but {name!r} is {kind.simpleString().upper()}")


def _label(step: Transform) -> str:
    return step.label if isinstance(step, Shortcut) else f"transform {getattr(step, '__name__', step)}"


def describe_queues(application_id: str, queues: Sequence[CompiledQueue]) -> str:
    """The queues as text: their topics, steps, and where results and dead letters go."""
    lines = [f"Share group: {application_id}"]
    for each in queues:
        settings = each.settings
        lines.append(f"   Queue: {each.topic} (format: {each.source.format}, max records: {settings.max_records})")
        lines += [f"      --> {_label(step)}" for step in each.steps]
        said = "accepted" if each.rules.outcome is None else f"as column {each.rules.outcome} says"
        lines.append(
            f"      --> {said}, at most {settings.max_deliveries} deliveries; without a row: {each.rules.missing}"
        )
        lines += [f"      --> Sink: {output.topic} (format: {output.format})" for output in each.outputs]
        lines += [f"      --> Function: {getattr(one, '__name__', one)}" for one in each.functions]
        if settings.dead_letters is not None:
            lines.append(f"      --> Dead letters: {settings.dead_letters}")
    return "\n".join(lines) + "\n"
