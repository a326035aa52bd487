"""Which schema registry a source or an output goes by: its own, or the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kohort.spark.errors import ProgramError

if TYPE_CHECKING:
    from kohort.schema_registry.registry import SchemaRegistry


def registry_of(where: str, given: object) -> SchemaRegistry | None:
    """The registry that a user gives, checked.

    Raises:
        ProgramError: it is something else.
    """
    from kohort.schema_registry.registry import SchemaRegistry

    if given is not None and not isinstance(given, SchemaRegistry):
        raise ProgramError(f'{where}: schema_registry={given!r}: give SchemaRegistry("http://…") of kohort.spark')
    return given


def used_registry(
    where: str,
    format: str,  # noqa: A002
    own: SchemaRegistry | None,
    others: SchemaRegistry | None,
) -> SchemaRegistry | None:
    """The one that a source or an output uses; None if it uses none.

    Args:
        own: the one that it names.
        others: the one that all use which name none, if their format has schemas.

    Raises:
        ProgramError: it names one, though its format has no schemas; or there is none for a format that needs one.
    """
    from kohort.schema_registry.registry import KINDS

    if registry_of(where, own) is not None and format not in KINDS:
        raise ProgramError(
            f'{where}: schema_registry is for formats with registered schemas, {", ".join(KINDS)}, not "{format}"'
        )
    found = (own or others) if format in KINDS else None
    if found is None and format in KINDS and format != "avro":
        raise ProgramError(
            f'{where}: format="{format}" needs a registry: say schema_registry=SchemaRegistry("http://…")'
        )
    return found


def output_registry(
    where: str,
    format: str,  # noqa: A002
    own: SchemaRegistry | Literal[False] | None,
    others: SchemaRegistry | None,
    subject: str | None,
    *,
    auto_register: bool,
) -> SchemaRegistry | None:
    """The one that has an output's schema; None if none has.

    Args:
        own: the one that the output names; False for none, whatever others use.

    Raises:
        ProgramError: as `used_registry`; or it says of a registry what it has none for.
    """
    found = used_registry(where, format, None, None) if own is False else used_registry(where, format, own, others)
    if found is None and (subject is not None or not auto_register):
        raise ProgramError(f'{where}: a subject is of a registry: say schema_registry=…, and format="avro"')
    return found


def subject_of(topic: str, subject: str | None) -> str:
    """The subject of a topic's values: the one that is said, or the topic's, as serializers have it."""
    return f"{topic}-value" if subject is None else subject
