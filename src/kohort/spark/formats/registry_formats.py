"""The formats of values whose schemas a registry has: how each is read by a value's id, and what columns it has."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pyspark.sql import types as spark

from kohort.schema_registry.client import client_of
from kohort.schema_registry.registry import KINDS, RegisteredSchema, SchemaRegistry
from kohort.spark.formats import json_schema
from kohort.spark.formats.avro_columns import columns_of as avro_columns
from kohort.spark.formats.avro_decoder import AvroDecoder
from kohort.spark.formats.avro_encoder import AvroEncoder
from kohort.spark.formats.avro_schema import AvroSchema, evolving_schema, parse, wrapped
from kohort.spark.formats.interfaces import Decoder, Encoder, FormatError
from kohort.spark.formats.json_decoder import JsonDecoder
from kohort.spark.formats.json_encoder import JsonEncoder
from kohort.spark.formats.protobuf_columns import columns_of as protobuf_columns
from kohort.spark.formats.protobuf_decoder import ProtobufDecoder
from kohort.spark.formats.protobuf_encoder import ProtobufEncoder, proto_of
from kohort.spark.formats.protobuf_schema import compiled
from kohort.spark.formats.registry_decoder import RegistryDecoder, WriterFormat
from kohort.spark.formats.registry_encoder import RegistryEncoder, RegistryWriting
from kohort.spark.formats.wire_format import FIRST_MESSAGE


@dataclass(frozen=True)
class RegistryReading:
    """How values are read by a registry.

    Attributes:
        registry: where the schemas of ids are.
        reader: what they are read as; None: the columns say it.
        alone: the column that a value is whose Avro schema is no record's; None: it can't be read.
    """

    registry: SchemaRegistry
    reader: RegisteredSchema | None = None
    alone: str | None = None


class AvroFormat:
    """Avro: each value is read by its writer's schema, as the reader's. That of the column `alone` may be no record's.

    It isn't for the columns to say: one may be all that is read of many.
    """

    def __init__(self, columns: spark.StructType, reader: RegisteredSchema | None, alone: str | None = None) -> None:
        self._columns, self._alone = columns, alone
        self._reader: AvroSchema | None = None if reader is None else self._parsed(reader)

    def decoder(self, writer: RegisteredSchema) -> Decoder:
        check_kind("avro", writer)
        return AvroDecoder(self._columns, self._parsed(writer), self._reader, lenient=True)

    def _parsed(self, schema: RegisteredSchema) -> AvroSchema:
        return parse(schema.text if self._alone is None else wrapped(schema.text, self._alone), schema.references)


class JsonFormat:
    """JSON Schema: each value is read by its columns."""

    def __init__(self, columns: spark.StructType) -> None:
        self._decoder = JsonDecoder(columns)

    def decoder(self, writer: RegisteredSchema) -> Decoder:
        check_kind("json_schema", writer)
        return self._decoder


class ProtobufFormat:
    """Protocol Buffers: each value is read as the first message of the reader's schema, if it is one."""

    def __init__(self, columns: spark.StructType, reader: RegisteredSchema | None) -> None:
        self._columns = columns
        self._reader = None if reader is None else compiled(reader.text, reader.references).message()

    def decoder(self, writer: RegisteredSchema) -> Decoder:
        check_kind("protobuf", writer)
        return ProtobufDecoder(self._columns, compiled(writer.text, writer.references), self._reader)


def registry_decoder(format: str, columns: spark.StructType, reading: RegistryReading) -> Decoder:  # noqa: A002
    """The decoder of values with ids.

    Raises:
        FormatError: the reader's schema doesn't have the columns, or the format has no schemas.
    """
    return RegistryDecoder(columns, client_of(reading.registry), _writer_format(format, columns, reading))


def _writer_format(format: str, columns: spark.StructType, reading: RegistryReading) -> WriterFormat:  # noqa: A002
    reader = reading.reader
    if format in ("avro", "protobuf"):
        made = AvroFormat(columns, reader, reading.alone) if format == "avro" else ProtobufFormat(columns, reader)
        if reader is not None:
            made.decoder(reader)  # the columns go with it
        return made
    if format == "json_schema":
        return JsonFormat(columns)
    raise _without_schemas(format)


def _without_schemas(format: str) -> FormatError:  # noqa: A002
    return FormatError(f'format="{format}" has no schemas; a registry is for {", ".join(KINDS)}')


def registry_encoder(format: str, columns: spark.StructType, writing: RegistryWriting) -> Encoder:  # noqa: A002
    """The encoder of values with ids.

    Raises:
        FormatError: the schema doesn't fit the columns, or the format has no schemas.
    """
    ids = client_of(writing.registry)
    if format == "avro":
        names = columns.names
        text = wrapped(writing.text, names[0]) if len(names) == 1 else writing.text
        return RegistryEncoder(ids, writing, AvroEncoder(columns, text))
    if format == "json_schema":
        return RegistryEncoder(ids, writing, JsonEncoder(columns))
    if format == "protobuf":
        return RegistryEncoder(ids, writing, ProtobufEncoder(columns, compiled(writing.text)), FIRST_MESSAGE)
    raise _without_schemas(format)


def schema_text(format: str, columns: spark.StructType, name: str) -> str:  # noqa: A002
    """The schema of columns, to be registered; `name` is that of a topic.

    Raises:
        FormatError: the format hasn't a column's type, or has no schemas.
    """
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    name = f"_{name}" if name[:1].isdigit() else name
    if format == "avro":
        return json.dumps(evolving_schema(columns, name))
    if format == "json_schema":
        return json_schema.schema_of(columns, name)
    if format == "protobuf":
        return proto_of(columns, name)
    raise _without_schemas(format)


def columns_of(format: str, schema: RegisteredSchema, *, alone: str | None = None) -> spark.StructType:  # noqa: A002
    """The columns of a schema.

    Args:
        alone: what the column is called of an Avro schema that is no record's.

    Raises:
        FormatError: it has none, or some that can't be.
    """
    check_kind(format, schema)
    if format == "json_schema":
        return json_schema.columns_of(schema.text)
    if format == "protobuf":
        return protobuf_columns(compiled(schema.text, schema.references).message())
    return avro_columns(parse(schema.text if alone is None else wrapped(schema.text, alone), schema.references))


def check_kind(format: str, schema: RegisteredSchema) -> None:  # noqa: A002
    """Refuses a schema of another format. Raises FormatError: it is one."""
    if schema.kind != KINDS[format]:
        raise FormatError(f'schema {schema.id} is {schema.kind}, and format="{format}" reads {KINDS[format]}')
