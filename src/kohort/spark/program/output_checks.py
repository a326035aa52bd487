"""Checks what is written to topics, and finds the columns that make values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import label, type_of
from kohort.spark.program.column_checks import one_of
from kohort.spark.program.compiled import AggregateSpec, ToTopic
from kohort.spark.program.error_policies import ErrorPolicy
from kohort.spark.program.internal_columns import DELETED, PARTITION
from kohort.spark.program.record_keys import KeyWriting, key_writing
from kohort.spark.program.registered_outputs import written_by_registry
from kohort.spark.program.transform_checks import explained

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kohort.spark.program.streams import OutputDef


def written_columns(
    where: str, output: OutputDef, schema: StructType, frame: DataFrame | None = None
) -> tuple[str, ...]:
    """The columns that make the value.

    Args:
        frame: of rows that Spark is to write as JSON.

    Raises:
        ProgramError: they can't be written in the format.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from kohort.spark.formats import FormatError, encoder

    match output.format:
        case "string" | "raw":
            return (_lone_column(where, output, schema),)
        case "avro" | "csv" if output.registry is None:
            try:
                encoder(output.format, schema, output.avro_schema, delimiter=output.delimiter)
            except FormatError as error:
                raise ProgramError(f"{where}: {error}") from None
        case "json":
            if frame is not None:
                with explained(where):
                    frame.drop(PARTITION).select(F.to_json(F.struct("*")))
    return tuple(schema.names)


def row_output(where: str, output: OutputDef, schema: StructType, frame: DataFrame, on_error: ErrorPolicy) -> ToTopic:
    """What is written of a stream's rows.

    Args:
        schema: of the rows, without internal columns.
        frame: of such rows, with them.
        on_error: the stream's.

    Raises:
        ProgramError: they can't be written so.
    """
    from pyspark.sql.types import StringType, StructType

    column = output.topic_column
    there = f"{where}: to({output.topic!r})" if column is None else f"{where}: to(column={column!r})"
    for name in output.key or ():
        one_of(f"{there}: key {name!r}", name, schema)
    if column is not None and not isinstance(kind := one_of(there, column, schema), StringType):
        raise ProgramError(f"{there}: names of topics are STRING, but {column!r} is {kind.simpleString().upper()}")
    if output.headers is not None:
        _check_headers(f"{there}: headers={output.headers!r}", output.headers, schema)
    if output.tombstone is not None:
        _check_tombstone(f"{there}: tombstone={label(output.tombstone)}", output.tombstone, frame)
    value = StructType([each for each in schema.fields if each.name not in (column, output.headers, DELETED)])
    if not value.fields:
        raise ProgramError(f"{there}: there is no column left to write")
    columns = written_columns(there, output, value, frame)
    return ToTopic(
        output.topic, output.key, output.format, columns, output.avro_schema, headers=output.headers,
        topic_column=column, on_error=None if column is None else on_error, tombstone=output.tombstone,
        registry=written_by_registry(there, output, value), delimiter=output.delimiter,
        key_written=_written_key(there, output, schema),
    )  # fmt: skip


def _written_key(where: str, output: OutputDef, schema: StructType) -> KeyWriting | None:
    from pyspark.sql.types import StructType

    if output.key_format is None or (output.key_format == "string" and len(output.key or ()) == 1):
        return None  # of one column it is the text, anyhow
    columns = StructType([schema[name] for name in output.key or ()])
    return key_writing(
        where, output.key_format, columns, output.key_schema, output.key_registry, output.topic, output.key_subject
    )


def _check_headers(where: str, name: str, schema: StructType) -> None:
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

    kind = one_of(where, name, schema)
    key = value = None
    if isinstance(kind, MapType):
        key, value = kind.keyType, kind.valueType
    elif isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        fields = {field.name: field.dataType for field in kind.elementType.fields}
        key, value = fields.get("key"), fields.get("value")
    if not isinstance(key, StringType) or not isinstance(value, (StringType, BinaryType)):
        raise ProgramError(
            f"{where}: {name!r} is {kind.simpleString().upper()}; headers are a MAP<STRING, BINARY>, or an "
            f"ARRAY<STRUCT<key: STRING, value: BINARY>>. Values may be STRING, too"
        )


def _check_tombstone(where: str, condition: str | Column, frame: DataFrame) -> None:
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import BooleanType

    if not isinstance(condition, (str, Column)):
        raise ProgramError(f'{where}: give a condition as text or Column, as "deleted" or "n = 0"')
    with explained(where):
        kind = type_of(frame, F.expr(condition) if isinstance(condition, str) else condition)
    if not isinstance(kind, BooleanType):
        raise ProgramError(f"{where}: this takes a condition, but it is {kind.simpleString().upper()}")


def group_output(where: str, output: OutputDef, spec: AggregateSpec, spark: SparkSession) -> ToTopic:
    """What is written of an aggregate's groups.

    Raises:
        ProgramError: they can't be written so.
    """
    there = f"{where}.to({output.topic!r})"
    schema = spec.shown_columns
    results = {name for name, _ in spec.output_columns}
    grouped = tuple(name for name in schema.names if name not in results)
    for name in output.key or ():
        one_of(f"{there}: key {name!r}", name, schema)
        if name not in grouped:
            raise ProgramError(
                f"{there}: key {name!r}: that is a result, which changes; a key takes what is grouped by: "
                f"{', '.join(grouped)}"
            )
    if output.format == "json":
        columns: tuple[str, ...] = ()
    else:
        columns = written_columns(there, replace(output, key=output.key or grouped), schema)
    plain_decimals = spark.conf.get("spark.sql.ansi.enabled") == "true"
    return ToTopic(
        output.topic, output.key, output.format, columns, output.avro_schema, plain_decimals,
        registry=written_by_registry(there, output, schema), delimiter=output.delimiter,
    )  # fmt: skip


def _lone_column(where: str, output: OutputDef, schema: StructType) -> str:
    kind = {"string": "string", "raw": "binary"}[output.format]
    names = [name for name in schema.names if name not in (output.key or ())]
    chosen = "value" if "value" in schema.names else names[0] if len(names) == 1 else None
    if chosen is None:
        raise ProgramError(
            f'{where}: format="{output.format}" writes one column, but there are {", ".join(names)}. '
            f"Make a column `value` in a transform, or select the one that is wanted"
        )
    found = schema[chosen].dataType.simpleString()
    if found != kind:
        raise ProgramError(
            f'{where}: format="{output.format}" writes {kind.upper()}, but {chosen!r} is {found.upper()}'
        )
    return chosen
