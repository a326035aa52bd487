"""Several outputs of a function: its rows are all of one kind, from which each stream takes its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

OUTPUT: Final = "_output"
"""INT: which output a row is of."""


def output_column(output: int, number: int) -> str:
    """What a column of an output is called among those of all: names may be the same in several."""
    return f"_{output}_{number}"


def united(outputs: Sequence[StructType]) -> StructType:
    """The columns of all outputs beside each other, of which a row has those of one."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    fields = [StructField(OUTPUT, IntegerType())]
    for number, schema in enumerate(outputs):
        fields += [StructField(output_column(number, at), each.dataType) for at, each in enumerate(schema.fields)]
    return StructType(fields)


def rows_of(output: int, schema: StructType) -> Callable[[DataFrame], DataFrame]:
    """The rows of an output, as they were given."""

    def rows(given: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        own = [F.col(output_column(output, at)).alias(name) for at, name in enumerate(schema.names)]
        return given.where(F.col(OUTPUT) == output).select(*own)

    return rows
