"""Records' keys in formats: which columns they make, and are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kohort.schema_registry.registry import RegisteredSchema, SchemaRegistry
    from kohort.spark.formats.registry_encoder import RegistryWriting
    from kohort.spark.formats.registry_formats import RegistryReading

    Schema = str | StructType

_ALONE: Final = {"string": "key STRING", "raw": "key BINARY"}
"""The columns of keys of formats that have one."""


@dataclass(frozen=True)
class KeyReading:
    """How records' keys are read.

    Attributes:
        columns: their names.
        schema: the columns, as Spark's JSON. All may be null, since a record needn't have a key.
        avro_schema: the writer's, as JSON; None if the format isn't plain Avro.
        registry: of keys with the id of a registered schema.
    """

    format: str
    columns: tuple[str, ...]
    schema: str
    avro_schema: str | None = None
    registry: RegistryReading | None = None


@dataclass(frozen=True)
class KeyWriting:
    """How records' keys are written.

    Attributes:
        schema: the columns, as Spark's JSON.
        avro_schema: to write with, as JSON; None if the format isn't plain Avro.
        registry: the registered schema, whose id each key begins with.
    """

    format: str
    schema: str
    avro_schema: str | None = None
    registry: RegistryWriting | None = None


def key_reading(
    where: str,
    format: str,  # noqa: A002
    given: Schema | None,
    registry: SchemaRegistry | None,
    subject: str,
    parsed: Callable[[str, Schema], StructType],
) -> KeyReading:
    """How keys of a format are read.

    Args:
        given: the user's schema; None for that of the subject, or the format's one column `key`.
        parsed: makes a checked StructType of a schema.

    Raises:
        ProgramError: they can't be, or it isn't known which columns they have.
    """
    from pyspark.sql.types import StructField, StructType

    from kohort.spark.formats import FormatError, decoder
    from kohort.spark.formats.registry_formats import RegistryReading

    where = f"{where}: key_format={format!r}"
    given = _ALONE.get(format) if given is None else given
    reader = None
    if given is None and registry is not None:
        reader, given = _newest(where, format, registry, subject)
    if given is None:
        raise ProgramError(f'{where}: say the columns of the keys, as key_schema="id BIGINT"')
    columns = parsed(where, given)
    columns = StructType([StructField(each.name, each.dataType) for each in columns.fields])
    avro = _avro_schema(where, columns) if format == "avro" and registry is None else None
    alone = columns.names[0] if len(columns.names) == 1 else None
    reading = None if registry is None else RegistryReading(registry, reader, alone)
    try:
        decoder(format, columns, avro, registry=reading)
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None
    return KeyReading(format, tuple(columns.names), columns.json(), avro, reading)


def key_writing(
    where: str,
    format: str,  # noqa: A002
    columns: StructType,
    given: str | None,
    registry: SchemaRegistry | None,
    topic: str,
    subject: str | None,
) -> KeyWriting:
    """How keys of a format are written.

    Args:
        columns: the key's.
        given: the Avro schema, as JSON; None for the one that follows from the columns.

    Raises:
        ProgramError: they can't be.
    """
    from pyspark.sql.types import StructField, StructType

    from kohort.schema_registry.registry import KINDS
    from kohort.spark.formats import FormatError, encoder
    from kohort.spark.formats.avro_schema import unwrapped
    from kohort.spark.formats.registry_encoder import RegistryWriting
    from kohort.spark.formats.registry_formats import schema_text

    where = f"{where}: key_format={format!r}"
    alone = len(columns.fields) == 1
    if alone:  # without a value there is no key
        columns = StructType([StructField(columns.names[0], columns.fields[0].dataType, nullable=False)])
    avro = writing = None
    try:
        if registry is not None:
            text = schema_text(format, columns, f"{topic}_key") if given is None else given
            if alone and given is None and format == "avro":
                text = unwrapped(text)
            writing = RegistryWriting(registry, subject or f"{topic}-key", KINDS[format], text)
        elif format == "avro":
            avro = _avro_schema(where, columns) if given is None else given
        encoder(format, columns, avro, registry=writing)
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None
    return KeyWriting(format, columns.json(), avro, writing)


def _newest(
    where: str,
    format: str,  # noqa: A002
    registry: SchemaRegistry,
    subject: str,
) -> tuple[RegisteredSchema | None, StructType]:
    """The subject's newest schema, and its columns; of a schema that is no record's the column `key`."""
    from kohort.schema_registry.client import client_of
    from kohort.schema_registry.registry import RegistryError
    from kohort.spark.formats import FormatError
    from kohort.spark.formats.registry_formats import columns_of

    try:
        newest = client_of(registry).latest(subject)
        return newest, columns_of(format, newest, alone="key")
    except RegistryError as error:
        raise ProgramError(f'{where}: {error}. Say the columns, as key_schema="id BIGINT"') from None
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None


def _avro_schema(where: str, columns: StructType) -> str:
    """The schema of plain Avro: of one column its own, without null, as serializers of one value write it."""
    from pyspark.sql.types import StructField, StructType

    from kohort.spark.formats import FormatError
    from kohort.spark.formats.avro_schema import spark_schema

    if len(columns.fields) == 1:
        columns = StructType([StructField(columns.names[0], columns.fields[0].dataType, nullable=False)])
    try:
        return json.dumps(spark_schema(columns))
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None
