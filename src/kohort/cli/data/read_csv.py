"""Reading CSV: a record a row, as a JSON object."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kohort.cli.data.column_block import ColumnBlock, column_block
from kohort.cli.data.columns import as_bytes
from kohort.cli.data.errors import DataError, no_key
from kohort.cli.data.json_columns import as_json_text, json_objects
from kohort.cli.data.pipes import Interrupted
from kohort.cli.data.source import BLOCK, Source

_RAGGED: Final = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)(.*)", re.DOTALL)


def read_csv(
    source: Source, key: str | None = None, *, delimiter: str = ",", typed: bool = False, null_keys: bool = False
) -> Iterator[ColumnBlock]:
    """Each row as a JSON object by the names in the first row; the field `key` as the key.

    Args:
        delimiter: a character between fields.
        typed: whether numbers and flags are written as such, where a whole column looks so in the first mebibyte;
            otherwise all fields are strings, exactly as in the file.
        null_keys: whether the field `key` may be empty; the key is null then.

    Raises:
        DataError: a row has too many or too few fields, or isn't UTF-8; two fields have one name; `key` is no field, or
            has no value where it must have one.
    """
    file = _Input(source)
    names = file.names(delimiter)
    if not names:
        return
    if again := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(f"{source.name}: two fields are called {again[0]!r}")
    if key is not None and key not in names:
        raise DataError(f"{source.name}: there is no field {key!r}; there are {', '.join(names)}")
    convert = pa.csv.ConvertOptions(
        column_types=None if typed else dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    try:
        with pa.csv.open_csv(
            pa.PythonFile(file, "r"),
            pa.csv.ReadOptions(use_threads=False, block_size=BLOCK),
            pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert,
        ) as reader:
            first = 2  # the names are row 1
            for rows in reader:
                keys = None if key is None else _keys(rows.column(key))
                keyed = rows.num_rows if null_keys or keys is None else before_null(keys)
                if keyed:
                    yield rows_as_json(rows.slice(0, keyed), None if keys is None else keys.slice(0, keyed))
                if keyed < rows.num_rows:
                    raise no_key(f"{source.name}, row {first + keyed}", str(key), "empty")
                first += rows.num_rows
    except pa.ArrowInvalid as error:
        if file.problem is not None:
            raise file.problem from None
        if "Empty CSV" in str(error):  # a header without rows
            return
        raise DataError(f"{source.name}, {_explained(str(error))}") from None


def before_null(values: pa.Array) -> int:
    """How many values there are before the first null."""
    return pc.index(values.is_null(), True).as_py() if values.null_count else len(values)


def rows_as_json(rows: pa.RecordBatch, keys: pa.Array | None) -> ColumnBlock:
    """Each row as a JSON object, with a key of `keys`."""
    members = {name: as_json_text(rows.column(name)) for name in rows.schema.names}
    return column_block(key=None if keys is None else as_bytes(keys), value=json_objects(members).cast(pa.binary()))


def _keys(fields: pa.Array) -> pa.Array:
    """A column as keys: CSV has no other way to say that there is no value than a field that is empty."""
    if not (pa.types.is_string(fields.type) or pa.types.is_binary(fields.type)):
        return fields
    return pc.if_else(pc.equal(pc.binary_length(fields), 0), pa.scalar(None, fields.type), fields)


def _explained(problem: str) -> str:
    if found := _RAGGED.search(problem):
        row, expected, actual, rest = found.groups()
        return f"row {row}: {expected} fields wanted, as in the first row, and there are {actual}{rest[:80]}"
    return problem.removeprefix("CSV conversion error to ")


class _Input(io.RawIOBase):
    """The source as a file for pyarrow; it keeps an error, which pyarrow would replace by another."""

    def __init__(self, source: Source) -> None:
        self.problem: Exception | None = None
        self._source = source
        self._begun = b""

    def names(self, delimiter: str) -> list[str]:
        """The fields of the first row, which will be read again."""
        while b"\n" not in self._begun and (data := self._source.read()):
            self._begun += data
        text = io.StringIO(self._begun.decode("utf-8-sig", errors="replace"), newline="")
        return next(csv.reader(text, delimiter=delimiter), [])

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._begun:
            begun, self._begun = self._begun[:size], self._begun[size:]
            return begun
        try:
            return self._source.read(size)
        except (DataError, Interrupted) as error:
            self.problem = error
            raise
