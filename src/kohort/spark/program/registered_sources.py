"""Sources whose schemas a registry has: what they are read as, which is settled when the program is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kohort.spark.errors import ProgramError
from kohort.spark.program.registries import subject_of

if TYPE_CHECKING:
    from kohort.schema_registry.registry import RegisteredSchema, SchemaRegistry
    from kohort.spark.formats.registry_formats import RegistryReading


class Registered(Protocol):
    """What a source says of its schema."""

    topic: str
    format: str
    schema: Any
    avro_schema: str | None
    subject: str | None


def read_by_registry(
    where: str, source: Registered, registry: SchemaRegistry, *, nulls: bool
) -> tuple[Any, RegistryReading]:
    """The columns, and how values are read.

    With `schema=` the columns are these, whatever is registered; with `avro_schema=` that is the reader's schema.
    Without them it is the newest of the subject, as it is now.

    Args:
        nulls: whether there are rows of nulls, of records without a value, so that all columns may be null.

    Raises:
        ProgramError: the registry hasn't the subject or can't be asked, or its schema has no columns.
    """
    from pyspark.sql.types import StructField, StructType

    from kohort.schema_registry.client import client_of
    from kohort.schema_registry.registry import AVRO, RegisteredSchema, RegistryError
    from kohort.spark.formats import FormatError
    from kohort.spark.formats.registry_formats import RegistryReading, check_kind, columns_of

    reader: RegisteredSchema | None = None
    if source.avro_schema is not None:
        reader = RegisteredSchema(0, AVRO, source.avro_schema)
    elif source.schema is None:
        try:
            reader = client_of(registry).latest(subject_of(source.topic, source.subject))
        except RegistryError as error:
            raise ProgramError(
                f'{where}: {error}. Say the columns, as schema="origin STRING, dep_delay DOUBLE", or the subject that '
                f"has them"
            ) from None
    try:
        if reader is not None:
            check_kind(source.format, reader)
        columns = columns_of(source.format, reader) if source.schema is None and reader is not None else source.schema
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None
    if nulls and source.schema is None:
        columns = StructType([StructField(each.name, each.dataType) for each in columns.fields])
    return columns, RegistryReading(registry, reader)
