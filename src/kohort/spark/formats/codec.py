"""The choice of a decoder and an encoder by format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.spark.formats.interfaces import Decoder, Encoder, FormatError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kohort.spark.formats.csv_format import CsvFields
    from kohort.spark.formats.registry_encoder import RegistryWriting
    from kohort.spark.formats.registry_formats import RegistryReading
    from kohort.spark.formats.times import TimeFormats


def decoder(
    format: str,  # noqa: A002
    schema: StructType,
    avro_schema: str | None = None,
    times: TimeFormats | None = None,
    registry: RegistryReading | None = None,
    csv: CsvFields | None = None,
) -> Decoder:
    """The decoder of a format.

    Args:
        format: "json" (one object a value), "avro" (one datum a value, in Avro's binary encoding without any header),
            "csv" (one record a value), "string" (the value is text; the schema has one column of strings) or "raw" (one
            column of bytes). With a registry: "avro", "json_schema" or "protobuf".
        schema: the columns wanted, by their names in the values. Fields that aren't wanted are passed over.
        avro_schema: the schema that the values were written with, as JSON; by default what Spark's `to_avro` writes for
            `schema`.
        times: how the TIMESTAMP columns of JSON are written; by default in ISO 8601, in UTC.
        registry: of values with the id of a registered schema; instead of `avro_schema`.
        csv: what is in a record of CSV; by default the columns, with commas.

    Raises:
        FormatError: an unknown format, a schema that it can't have, or times that can't be.
    """
    if registry is not None:
        from kohort.spark.formats.registry_formats import registry_decoder

        return registry_decoder(format, schema, registry)
    match format:
        case "json":
            from kohort.spark.formats.json_decoder import JsonDecoder
            from kohort.spark.formats.times import ISO

            return JsonDecoder(schema, times or ISO)
        case "avro":
            from kohort.spark.formats.avro_decoder import AvroDecoder

            return AvroDecoder(schema, avro_schema)
        case "csv":
            from kohort.spark.formats.csv_format import CsvDecoder

            return CsvDecoder(schema, csv)
        case "string" | "raw":
            from kohort.spark.formats.string_and_raw import PlainDecoder

            return PlainDecoder(format, schema)
    raise _unknown(format)


def encoder(
    format: str,  # noqa: A002
    schema: StructType,
    avro_schema: str | None = None,
    registry: RegistryWriting | None = None,
    delimiter: str = ",",
) -> Encoder:
    """The encoder of a format.

    Args:
        format: as for `decoder`.
        schema: the columns to write.
        avro_schema: the schema to write with, as JSON; by default what Spark's `to_avro` writes with.
        registry: the registered schema to write with, whose id each value begins with; instead of `avro_schema`.
        delimiter: between the fields of CSV.

    Raises:
        FormatError: an unknown format, a schema that it can't have.
    """
    if registry is not None:
        from kohort.spark.formats.registry_formats import registry_encoder

        return registry_encoder(format, schema, registry)
    match format:
        case "json":
            from kohort.spark.formats.json_encoder import JsonEncoder

            return JsonEncoder(schema)
        case "avro":
            from kohort.spark.formats.avro_encoder import AvroEncoder

            return AvroEncoder(schema, avro_schema)
        case "csv":
            from kohort.spark.formats.csv_format import CsvEncoder

            return CsvEncoder(schema, delimiter)
        case "string" | "raw":
            from kohort.spark.formats.string_and_raw import PlainEncoder

            return PlainEncoder(format, schema)
    raise _unknown(format)


def _unknown(name: str) -> FormatError:
    from kohort.spark.formats import FORMATS

    return FormatError(f"format {name!r} isn't known; there are {', '.join(FORMATS)}")
