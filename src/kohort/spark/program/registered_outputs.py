"""Outputs whose schemas a registry has: what they are written with, and that it is registered before any row comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from kohort.spark.errors import ProgramError
from kohort.spark.program.compiled import Program, ToTopic
from kohort.spark.program.registries import subject_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kohort.schema_registry.registry import SchemaRegistry
    from kohort.spark.formats.registry_encoder import RegistryWriting


class Registered(Protocol):
    """What an output says of its schema."""

    topic: str
    format: str
    avro_schema: str | None
    registry: SchemaRegistry | None
    subject: str | None
    auto_register: bool


def written_by_registry(where: str, output: Registered, schema: StructType) -> RegistryWriting | None:
    """Under which schema an output is written; None if no registry has it. Nothing is registered yet.

    Raises:
        ProgramError: the schema doesn't fit the columns, or is to be the subject's newest, which can't be had.
    """
    if output.registry is None:
        return None
    from kohort.schema_registry.client import client_of
    from kohort.schema_registry.registry import KINDS, RegistryError
    from kohort.spark.formats import FormatError, encoder
    from kohort.spark.formats.registry_encoder import RegistryWriting
    from kohort.spark.formats.registry_formats import check_kind, schema_text

    subject = subject_of(output.topic, output.subject)
    text = output.avro_schema
    try:
        if text is None and not output.auto_register:
            newest = client_of(output.registry).latest(subject)
            check_kind(output.format, newest)
            text = newest.text
        elif text is None:
            text = schema_text(output.format, schema, output.topic)
        found = RegistryWriting(output.registry, subject, KINDS[output.format], text, output.auto_register)
        encoder(output.format, schema, registry=found)
    except (FormatError, RegistryError) as error:
        raise ProgramError(f"{where}: {error}") from None
    return found


def register_schemas(program: Program) -> None:
    """Registers the schemas of outputs, or looks them up, so that what a registry refuses shows at the start.

    Raises:
        ProgramError: it refuses one, hasn't one that isn't to be registered, or can't be asked.
    """
    register_outputs(program.outputs)


def register_outputs(outputs: Iterable[ToTopic]) -> None:
    """The same, of outputs.

    Raises:
        ProgramError: as `register_schemas`.
    """
    for output in outputs:
        if output.registry is not None:
            _register(output.topic, output.registry)
        if output.key_written is not None and output.key_written.registry is not None:
            _register(output.topic, output.key_written.registry)


def _register(topic: str, said: RegistryWriting) -> None:
    from kohort.schema_registry.client import client_of
    from kohort.schema_registry.registry import RegistryError

    try:
        client_of(said.registry).id_of(said.subject, said.kind, said.text, register=said.register)
    except RegistryError as error:
        raise ProgramError(f"to({topic!r}): {error}") from None
