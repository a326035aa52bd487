"""Values with the id of the schema that they were written by, to columns."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from kohort.schema_registry.registry import RegisteredSchema, UnknownSchemaError
from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.byte_columns import ByteColumn, Ints, byte_column
from kohort.spark.formats.interfaces import Decoded, Decoder, FormatError
from kohort.spark.formats.wire_format import NO_ID, schema_ids, without_header


class Schemas(Protocol):
    """What knows the schemas of ids."""

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises UnknownSchemaError: there is none. RegistryError: that can't be known."""


class WriterFormat(Protocol):
    """Makes decoders of writers' schemas."""

    def decoder(self, writer: RegisteredSchema) -> Decoder:
        """What reads values that a schema wrote, without the id before them.

        Raises:
            FormatError: it can't be read as what is wanted.
        """


class RegistryDecoder:
    """Reads values each of which has its schema's id first. Rows of several schemas stay in their order.

    A value without an id, of an id that the registry doesn't know, or of a schema that can't be read as what is wanted,
    is a bad row. If the registry can't be asked, no row is to blame: `decode` raises `RegistryError`, as no other
    decoder does.
    """

    def __init__(self, schema: spark.StructType, schemas: Schemas, format: WriterFormat) -> None:  # noqa: A002
        self.schema = arrow_schema(schema)
        self._schemas, self._format = schemas, format
        self._decoders: dict[int, Decoder | str] = {}

    def decode(self, values: pa.Array) -> Decoded:
        at = byte_column(values)
        ids, errors = schema_ids(at)
        rows, batches = self._nulls(at, errors)
        for schema_id in np.unique(ids[ids != NO_ID]).tolist():
            of_schema = np.flatnonzero(ids == schema_id)
            found = self._decoder(schema_id)
            if isinstance(found, str):
                errors |= dict.fromkeys(of_schema.tolist(), found)
                continue
            decoded = found.decode(without_header(at, of_schema))
            errors |= {int(of_schema[row]): f"schema {schema_id}: {why}" for row, why in decoded.errors}
            batches.append(decoded.columns)
            rows.append(of_schema if decoded.good is None else of_schema[decoded.good.to_numpy()])
        good = np.concatenate(rows) if rows else np.empty(0, np.int64)
        columns = batches[0] if len(batches) == 1 else pa.concat_batches(batches) if batches else self._empty(0)
        if len(batches) > 1:
            columns = columns.take(pa.array(np.argsort(good, kind="stable")))
        if not errors:
            return Decoded(columns, None, [])
        return Decoded(columns, pa.array(np.sort(good), pa.int64()), sorted(errors.items()))

    def _nulls(self, at: ByteColumn, errors: dict[int, str]) -> tuple[list[Ints], list[pa.RecordBatch]]:
        if at.there.all():
            return [], []
        rows = np.flatnonzero(~at.there)
        if lacking := [field.name for field in self.schema if not field.nullable]:
            errors |= dict.fromkeys(rows.tolist(), f"{lacking[0]}: there is none, and null isn't allowed")
            return [], []
        return [rows], [self._empty(len(rows))]

    def _empty(self, rows: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in self.schema], schema=self.schema)

    def _decoder(self, schema_id: int) -> Decoder | str:
        """What reads a schema's values, or why nothing does."""
        if (known := self._decoders.get(schema_id)) is not None:
            return known
        try:
            writer = self._schemas.by_id(schema_id)
        except UnknownSchemaError as error:
            return _unicode(str(error))  # a later batch asks again
        made: Decoder | str
        try:
            made = self._format.decoder(writer)
        except (FormatError, RecursionError) as error:
            made = _unicode(f"schema {schema_id} can't be read as what is wanted: {error}")
        self._decoders[schema_id] = made
        return made


def _unicode(why: str) -> str:
    """The same, as text that can be reported: a schema's JSON can have halves of surrogate pairs."""
    return why.encode(errors="backslashreplace").decode()
