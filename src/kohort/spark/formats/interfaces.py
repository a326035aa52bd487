"""The interfaces of decoders and encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


class FormatError(ValueError):
    """A format, or a schema in it, that can't be: says which, and what may be."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came of a column of values.

    Attributes:
        columns: the rows that could be read, in order.
        good: which rows they are of those given (int64, ascending); None if they are all of them.
        errors: the others, in order: (row, why it can't be read).
    """

    columns: pa.RecordBatch
    good: pa.Array | None
    errors: list[tuple[int, str]]


class Decoder(Protocol):
    """Makes columns of values.

    Attributes:
        schema: of the columns.
    """

    schema: pa.Schema

    def decode(self, values: pa.Array) -> Decoded:
        """Read a column of bytes (binary). A null becomes a row of nulls; whatever the bytes are, nothing is raised."""


class Encoder(Protocol):
    """Makes values of columns."""

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        """A column of bytes (binary), one value a row.

        Raises:
            ValueError: a column is missing, or a row can't be written in the format.
        """
