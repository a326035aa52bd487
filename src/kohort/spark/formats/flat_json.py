"""Columns of flat JSON objects, by the compiled loop of `json_kernel`."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kohort.spark.formats import json_kernel as kernels
from kohort.spark.formats.byte_columns import Bools, booleans, byte_column, fixed, gathered
from kohort.spark.formats.text_kernels import is_text

_KINDS: Final = {pa.bool_(): kernels.BOOLEAN, pa.float64(): kernels.NUMBER, pa.string(): kernels.TEXT}


class FlatJson:
    """Reads objects whose fields are strings, numbers, booleans and nulls.

    Args:
        columns: booleans, integers, doubles and strings, by the fields' names.
    """

    def __init__(self, columns: pa.StructType) -> None:
        self._columns = columns
        encoded = [each.name.encode() for each in columns]
        self._names = np.frombuffer(b"".join(encoded), np.uint8)
        self._name_starts = np.cumsum([0, *map(len, encoded)])
        self._table = kernels.name_table(encoded)
        self._kinds = np.array([_KINDS.get(each.type, kernels.WHOLE) for each in columns])
        most = [2 ** (each.type.bit_width - 1) - 1 if pa.types.is_integer(each.type) else 0 for each in columns]
        self._most = np.array(most, np.int64)

    def read(self, values: pa.Array) -> tuple[pa.StructArray, Bools]:
        """A row for each value, and which rows were read: what is in the others says nothing. A null has nulls."""
        rows, text = len(values), byte_column(values)
        shape = len(self._kinds), rows
        there, numbers, sizes = np.zeros(shape, np.bool_), np.empty(shape, np.int64), np.empty(shape, np.int32)
        read, ascii_only = np.ones(rows, np.bool_), np.ones(rows, np.bool_)
        kernels.read_objects(
            text.data, text.starts, text.sizes, text.there, self._names, self._name_starts, self._table, self._kinds,
            -self._most - 1, self._most, there, numbers, sizes, read, ascii_only,
        )  # fmt: skip
        if not ascii_only.all():
            looked = np.flatnonzero(~ascii_only)
            good = np.ones(len(looked), np.bool_)
            is_text(text.data, text.starts[looked], text.sizes[looked], good)
            read[looked[~good]] = False
        if not read.all():
            there &= read
        columns = []
        for field, kind, found, number, size in zip(self._columns, self._kinds, there, numbers, sizes, strict=True):
            if kind == kernels.BOOLEAN:
                column = booleans((number != 0) & found, found)
            elif kind == kernels.WHOLE:
                # A copy of int64, too: a view of `numbers` would keep all of it.
                column = fixed(field.type, number.astype(field.type.to_pandas_dtype()), found)
            else:
                column = gathered(pa.string(), text.data, number.astype(np.int32), size, found).cast(field.type)
            columns.append(column)
        return pa.StructArray.from_arrays(columns, fields=list(self._columns)), read


def flat_json(columns: pa.StructType) -> FlatJson | None:
    """A reader of these columns; None if some aren't of types that it reads."""
    if all(each.type in _KINDS or pa.types.is_integer(each.type) for each in columns):
        return FlatJson(columns)
    return None
