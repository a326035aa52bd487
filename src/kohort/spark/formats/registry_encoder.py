"""Values written with the id of their registered schema first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from kohort.schema_registry.registry import SchemaRegistry
from kohort.spark.formats.interfaces import Encoder
from kohort.spark.formats.wire_format import with_header


@dataclass(frozen=True)
class RegistryWriting:
    """Under which schema values are written.

    Attributes:
        registry: where it is registered.
        subject: in which subject.
        kind: the registry's name of its format.
        text: the schema.
        register: whether it is registered where it isn't.
    """

    registry: SchemaRegistry
    subject: str
    kind: str
    text: str
    register: bool = True


class SchemaIds(Protocol):
    """What knows the ids of schemas."""

    def id_of(self, subject: str, kind: str, text: str, *, register: bool) -> int:
        """Raises RegistryError: the registry can't be asked, refuses the schema, or hasn't got it."""


class RegistryEncoder:
    """Writes values by another encoder, and the id of their schema before each.

    The schema is registered, or looked up, when the first rows come. `encode` raises `RegistryError` if it can't be.
    """

    def __init__(self, ids: SchemaIds, writing: RegistryWriting, values: Encoder, indexes: bytes = b"") -> None:
        self._ids, self._writing, self._values, self._indexes = ids, writing, values, indexes

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        said = self._writing
        schema_id = self._ids.id_of(said.subject, said.kind, said.text, register=said.register)
        return with_header(schema_id, self._values.encode(table), self._indexes)
