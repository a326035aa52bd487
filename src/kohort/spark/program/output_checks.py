"""Checks what is written to topics, and finds the columns that make values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.column_checks import one_of
from kohort.spark.program.compiled import AggregateSpec, ToTopic
from kohort.spark.program.internal_columns import PARTITION
from kohort.spark.program.transform_checks import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
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
        case "avro":
            try:
                encoder("avro", schema, output.avro_schema)
            except FormatError as error:
                raise ProgramError(f"{where}: {error}") from None
        case _:
            if frame is not None:
                with explained(where):
                    frame.drop(PARTITION).select(F.to_json(F.struct("*")))
    return tuple(schema.names)


def group_output(where: str, output: OutputDef, spec: AggregateSpec, spark: SparkSession) -> ToTopic:
    """What is written of an aggregate's groups.

    Raises:
        ProgramError: they can't be written so.
    """
    from dataclasses import replace

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
    return ToTopic(output.topic, output.key, output.format, columns, output.avro_schema, plain_decimals)


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
