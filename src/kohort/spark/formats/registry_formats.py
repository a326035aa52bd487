"""The formats of values whose schemas a registry has: how each is read by a value's id, and what columns it has."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as spark

from kohort.spark.formats.avro_columns import columns_of as avro_columns
from kohort.spark.formats.avro_decoder import AvroDecoder
from kohort.spark.formats.avro_schema import AvroSchema, parse
from kohort.spark.formats.interfaces import Decoder, FormatError
from kohort.spark.formats.registry_client import client_of
from kohort.spark.formats.registry_decoder import RegistryDecoder, WriterFormat
from kohort.spark.formats.schema_registry import KINDS, RegisteredSchema, SchemaRegistry


@dataclass(frozen=True)
class RegistryReading:
    """How values are read by a registry.

    Attributes:
        registry: where the schemas of ids are.
        reader: what they are read as; None: the columns say it.
    """

    registry: SchemaRegistry
    reader: RegisteredSchema | None = None


class AvroFormat:
    """Avro: each value is read by its writer's schema, as the reader's."""

    def __init__(self, columns: spark.StructType, reader: RegisteredSchema | None) -> None:
        self._columns = columns
        self._reader: AvroSchema | None = None if reader is None else parse(reader.text, reader.references)

    def decoder(self, writer: RegisteredSchema) -> Decoder:
        check_kind("avro", writer)
        written = parse(writer.text, writer.references)
        return AvroDecoder(self._columns, written, self._reader, lenient=True)


def registry_decoder(format: str, columns: spark.StructType, reading: RegistryReading) -> Decoder:  # noqa: A002
    """The decoder of values with ids.

    Raises:
        FormatError: the reader's schema doesn't have the columns, or the format has no schemas.
    """
    return RegistryDecoder(columns, client_of(reading.registry), _writer_format(format, columns, reading.reader))


def _writer_format(format: str, columns: spark.StructType, reader: RegisteredSchema | None) -> WriterFormat:  # noqa: A002
    if format == "avro":
        made = AvroFormat(columns, reader)
        if reader is not None:
            made.decoder(reader)  # the columns go with it
        return made
    raise FormatError(f'format="{format}" has no schemas; a registry is for {", ".join(KINDS)}')


def columns_of(format: str, schema: RegisteredSchema) -> spark.StructType:  # noqa: A002
    """The columns of a schema.

    Raises:
        FormatError: it has none, or some that can't be.
    """
    check_kind(format, schema)
    return avro_columns(parse(schema.text, schema.references))


def check_kind(format: str, schema: RegisteredSchema) -> None:  # noqa: A002
    """Refuses a schema of another format. Raises FormatError: it is one."""
    if schema.kind != KINDS[format]:
        raise FormatError(f'schema {schema.id} is {schema.kind}, and format="{format}" reads {KINDS[format]}')
