"""Reading lines: a record a line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.data.columns import records
from kohort.cli.data.errors import DataError
from kohort.cli.data.source import Source


def read_lines(source: Source, key_separator: bytes | None = None) -> Iterator[pa.RecordBatch]:
    """The bytes of each line as a value; or the part before the first separator as the key, and the rest as the value.

    Raises:
        DataError: a line has no separator. The lines before it were read.
    """
    for first, block in source.line_blocks():
        values = pc.split_pattern(pa.array([block], pa.binary()), pattern=b"\n").values
        if key_separator is None:
            yield records(value=values)
            continue
        halves = pc.split_pattern(values, pattern=key_separator, max_splits=1)
        single = np.flatnonzero(pc.list_value_length(halves).to_numpy() == 1)
        rows = int(single[0]) if len(single) else len(values)
        pieces = halves.slice(0, rows).flatten()
        evens = np.arange(0, 2 * rows, 2)
        if rows:
            yield records(key=pieces.take(pa.array(evens)), value=pieces.take(pa.array(evens + 1)))
        if len(single):
            shown = key_separator.decode(errors="replace")
            raise DataError(f"{source.name}, line {first + rows}: there is no key separator {shown!r} in it")
