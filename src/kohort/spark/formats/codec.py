"""The interfaces of decoders and encoders, and the choice of one by format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kohort.spark.formats.times import TimeFormats


class FormatError(ValueError):
    """A format, or a schema in it, that can't be: says which, and what may be."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came of a column of values.

    Attributes:
        columns: the rows that could be read, in order.
        good: which rows they are of those given (int64, ascending); None if they are all of them.
        errors: the others, in order: (row, why it can't be read).
    """

    columns: pa.RecordBatch
    good: pa.Array | None
    errors: list[tuple[int, str]]


class Decoder(Protocol):
    """Makes columns of values.

    Attributes:
        schema: of the columns.
    """

    schema: pa.Schema

    def decode(self, values: pa.Array) -> Decoded:
        """Read a column of bytes (binary). A null becomes a row of nulls; whatever the bytes are, nothing is raised."""


class Encoder(Protocol):
    """Makes values of columns."""

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        """A column of bytes (binary), one value a row.

        Raises:
            ValueError: a column is missing, or a row can't be written in the format.
        """


def decoder(
    format: str,  # noqa: A002
    schema: StructType,
    avro_schema: str | None = None,
    times: TimeFormats | None = None,
) -> Decoder:
    """The decoder of a format.

    Args:
        format: "json" (one object a value), "avro" (one datum a value, in Avro's binary encoding without any header),
            "string" (the value is text; the schema has one column of strings) or "raw" (one column of bytes).
        schema: the columns wanted, by their names in the values. Fields that aren't wanted are passed over.
        avro_schema: the schema that the values were written with, as JSON; by default what Spark's `to_avro` writes for
            `schema`.
        times: how the TIMESTAMP columns of JSON are written; by default in ISO 8601, in UTC.

    Raises:
        FormatError: an unknown format, a schema that it can't have, or times that can't be.
    """
    match format:
        case "json":
            from kohort.spark.formats.json_decoder import JsonDecoder
            from kohort.spark.formats.times import ISO

            return JsonDecoder(schema, times or ISO)
        case "avro":
            from kohort.spark.formats.avro_decoder import AvroDecoder

            return AvroDecoder(schema, avro_schema)
        case "string" | "raw":
            from kohort.spark.formats.string_and_raw import PlainDecoder

            return PlainDecoder(format, schema)
    raise _unknown(format)


def encoder(format: str, schema: StructType, avro_schema: str | None = None) -> Encoder:  # noqa: A002
    """The encoder of a format.

    Args:
        format: as for `decoder`.
        schema: the columns to write.
        avro_schema: the schema to write with, as JSON; by default what Spark's `to_avro` writes with.

    Raises:
        FormatError: an unknown format, a schema that it can't have.
    """
    match format:
        case "json":
            from kohort.spark.formats.json_encoder import JsonEncoder

            return JsonEncoder(schema)
        case "avro":
            from kohort.spark.formats.avro_encoder import AvroEncoder

            return AvroEncoder(schema, avro_schema)
        case "string" | "raw":
            from kohort.spark.formats.string_and_raw import PlainEncoder

            return PlainEncoder(format, schema)
    raise _unknown(format)


def _unknown(name: str) -> FormatError:
    from kohort.spark.formats import FORMATS

    return FormatError(f"format {name!r} isn't known; there are {', '.join(FORMATS)}")
