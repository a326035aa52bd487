"""The topics that a program reads: as the user defines them, and as they are compiled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError
from kohort.spark.formats import FORMATS
from kohort.spark.internals import error_sentence
from kohort.spark.program.column_checks import check_names, check_types, one_of
from kohort.spark.program.compiled import SourceSpec
from kohort.spark.program.error_policies import DeadLetter, ErrorPolicy
from kohort.spark.program.internal_columns import HEADERS, TOPIC, VALUELESS
from kohort.spark.program.record_keys import key_reading
from kohort.spark.program.registered_sources import read_by_registry
from kohort.spark.program.source_times import RECORD_TIME, check_time_formats, to_millis, with_times
from kohort.spark.program.written_at import Written

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

    from kohort.protocol.records.partitioner import Partitioner
    from kohort.schema_registry.registry import SchemaRegistry
    from kohort.spark.formats.csv_format import CsvFields
    from kohort.spark.formats.derived_times import DerivedTime
    from kohort.spark.formats.registry_formats import RegistryReading
    from kohort.spark.formats.times import TimeFormats

_ALONE: Final = {"string": "STRING", "raw": "BINARY"}  # formats of one column, and its type

if TYPE_CHECKING:
    Schema = str | StructType
else:
    Schema = str
    """Columns: DDL as "origin STRING, dep_delay DOUBLE", or a StructType."""


@dataclass(eq=False)
class SourceDef(Written):
    """A topic that is read, as the user defines it, or with `others` several, or a pattern of such.

    `schema` isn't parsed yet, since that takes a Spark session. `topics_shown`: whether rows have `_topic`.
    `table_key`: of a topic whose keys are in a format and that becomes a table, its key.
    """

    topic: str
    schema: Schema | None
    format: str
    key: tuple[str, ...]
    event_time: str | None
    offset_reset: str
    on_error: ErrorPolicy
    avro_schema: str | None
    times: TimeFormats | None = None
    derived: DerivedTime | None = None
    partitioner: Partitioner = "murmur2"
    tombstones: bool = False
    headers: bool = False
    registry: SchemaRegistry | None = None
    subject: str | None = None
    delimiter: str | None = None
    others: tuple[str, ...] = ()
    pattern: bool = False
    topics_shown: bool = False
    key_format: str | None = None
    key_schema: Schema | None = None
    key_subject: str | None = None
    key_registry: SchemaRegistry | None = None
    table_key: tuple[str, ...] = ()


@dataclass(eq=False)
class TableDef(Written):
    """A table, as the user defines it.

    Raises:
        ProgramError: it is a global one with dead letters, of its own or the application's. Every instance reads all of
            it, outside of transactions, so each would write them: the program has to say another policy.
    """

    name: str
    source: SourceDef
    is_global: bool

    def __post_init__(self) -> None:
        """Check."""
        if self.is_global and isinstance(self.source.on_error, DeadLetter):
            raise ProgramError(
                f"global_table {self.source.topic!r}: it can't have dead letters, nor go by the application's: every "
                f"instance reads it, so each would write them. Say on_error=Drop() or on_error=Fail() for it"
            )


def resolved(definition: SourceDef, what: str) -> SourceSpec:
    """The source with its schema parsed and checked. Needs a Spark session.

    Args:
        what: how messages call it: "stream", "table", ….

    Raises:
        ProgramError: the schema can't be, or it lacks a column that is named elsewhere.
    """
    from pyspark.sql.types import ArrayType, BinaryType, BooleanType, MapType, StringType, StructField, StructType

    where = f"{what} {definition.topic!r}"
    given = definition.schema
    alone = _ALONE.get(definition.format)
    registry = None
    if definition.registry is not None:
        nulls = what != "stream" or definition.tombstones
        given, registry = read_by_registry(where, definition, definition.registry, nulls=nulls)
    if given is None:
        given = f"value {alone}"
    schema, rows, derived = with_times(where, parsed_schema(where, given), definition.derived)
    if registry is not None and len(schema.names) == 1:
        registry = replace(registry, alone=schema.names[0])
    if alone is not None and [field.dataType.simpleString().upper() for field in schema.fields] != [alone]:
        raise ProgramError(
            f'{where}: format="{definition.format}" has one column, of type {alone}, as "value {alone}"; '
            f"the schema is {_ddl(schema)}"
        )
    if definition.headers:
        header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
        rows = _with_columns(where, rows, [StructField(HEADERS, ArrayType(header))])
    if definition.topics_shown:
        rows = _with_columns(where, rows, [StructField(TOPIC, StringType())])
    keys, key = None, definition.key
    if definition.key_format is not None:
        keys = key_reading(
            where, definition.key_format, definition.key_schema, definition.key_registry,
            definition.key_subject or f"{definition.topic}-key", parsed_schema,
        )  # fmt: skip
        rows = _with_columns(where, rows, StructType.fromJson(json.loads(keys.schema)).fields)
        key = key or (keys.columns if keys.format == "string" else ())
        if definition.table_key and set(definition.table_key) != set(keys.columns):
            raise ProgramError(
                f"{where}: key={definition.table_key!r}, but with key_format={keys.format!r} the records' keys have "
                f"{', '.join(keys.columns)}: a table's key is all that is in them"
            )
        if definition.table_key:
            rows = _with_columns(where, rows, [StructField(VALUELESS, BooleanType())])
    for name in key:
        if isinstance(kind := one_of(f"{where}: key {name!r}", name, rows), (ArrayType, MapType, StructType)):
            raise ProgramError(f"{where}: key {name!r} is {kind.simpleString().upper()}, which no record's key holds")
    avro_schema = definition.avro_schema
    if definition.format == "avro" and avro_schema is None and registry is None:
        avro_schema = _avro_schema(where, schema)
    csv = _csv(definition, schema)
    _check_format(where, definition.format, schema, avro_schema, registry, csv)
    if definition.times is not None:
        check_time_formats(where, definition.times, schema)
    event_time = definition.event_time
    if event_time is not None:
        _check_event_time(where, event_time, rows)
    elif RECORD_TIME in rows.names:
        event_time = RECORD_TIME  # which it is without, too
    return SourceSpec(
        topic=definition.topic,
        schema=rows,
        format=definition.format,
        key=key,
        event_time=event_time,
        offset_reset=definition.offset_reset,
        on_error=definition.on_error,
        avro_schema=avro_schema,
        times=definition.times,
        derived=derived,
        partitioner=definition.partitioner,
        tombstones=definition.tombstones,
        headers=definition.headers,
        registry=registry,
        csv=csv,
        others=definition.others,
        pattern=definition.pattern,
        topics_shown=definition.topics_shown,
        key_read=keys,
        valueless=bool(definition.table_key),
    )


def _with_columns(where: str, rows: StructType, more: Sequence[StructField]) -> StructType:
    from pyspark.sql.types import StructType

    schema = StructType([*rows.fields, *more])
    check_names(where, schema.names)
    return schema


def parsed_schema(where: str, given: Schema) -> StructType:
    """A schema of DDL or a StructType, checked. DDL needs a Spark session.

    Raises:
        ProgramError: it is neither, has no columns, one twice, or one of a name that is taken.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(given, str):
        try:
            schema = StructType.fromDDL(given)
        except PySparkException as error:
            raise ProgramError(
                f'{where}: schema={given!r} can\'t be read as columns like "origin STRING, dep_delay DOUBLE": '
                f"{error_sentence(error)}"
            ) from None
        if not isinstance(schema, StructType):  # Spark reads a lone type as a type
            raise ProgramError(f'{where}: schema={given!r} is a type without a name; write "value {given}"')
    elif isinstance(given, StructType):
        schema = given
    else:
        raise ProgramError(
            f'{where}: schema={given!r} must be DDL, as "origin STRING, dep_delay DOUBLE", or a StructType'
        )
    if not schema.fields:
        raise ProgramError(f"{where}: the schema has no columns")
    check_names(where, schema.names)
    check_types(where, schema)
    return schema


def known_format(where: str, given: str) -> str:
    """A format that Kohort reads and writes.

    Raises:
        ProgramError: it doesn't.
    """
    if given not in FORMATS:
        raise ProgramError(f"{where}: unknown format {given!r}; Kohort knows {', '.join(FORMATS)}")
    return given


def _avro_schema(where: str, schema: StructType) -> str:
    """The schema that Spark writes all the columns with. The columns that are read may be fewer, so it is made here."""
    from kohort.spark.formats import FormatError
    from kohort.spark.formats.avro_schema import spark_schema

    try:
        return json.dumps(spark_schema(schema))
    except FormatError as error:
        raise ProgramError(f'{where}: format="avro": {error}') from None


def _csv(definition: SourceDef, schema: StructType) -> CsvFields | None:
    """What is in a record, however few of its columns are read."""
    from kohort.spark.formats.csv_format import CsvFields

    return CsvFields(tuple(schema.names), definition.delimiter or ",") if definition.format == "csv" else None


def _check_format(
    where: str,
    format: str,  # noqa: A002
    schema: StructType,
    avro_schema: str | None,
    registry: RegistryReading | None,
    csv: CsvFields | None,
) -> None:
    from kohort.spark.formats import FormatError, decoder

    try:
        decoder(format, schema, avro_schema, registry=registry, csv=csv)
    except FormatError as error:
        raise ProgramError(f'{where}: format="{format}": {error}') from None


def _check_event_time(where: str, name: str, schema: StructType) -> None:
    from pyspark.sql.types import IntegralType, TimestampType

    found = one_of(f"{where}: event_time={name!r}", name, schema)
    if not isinstance(found, TimestampType):
        remedy = "Say TIMESTAMP in the schema: JSON's texts and Avro's times are read as such"
        if isinstance(found, IntegralType):
            remedy = f'{to_millis(name)}, or event_time=F.timestamp_millis("{name}").alias("at")'
        raise ProgramError(
            f"{where}: event_time={name!r} must be a TIMESTAMP, but it is {found.simpleString().upper()}. {remedy}"
        )


def _ddl(schema: StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString().upper()}" for field in schema.fields)
