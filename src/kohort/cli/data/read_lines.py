"""Reading lines into columns: a record a line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.data.column_block import ColumnBlock, column_block
from kohort.cli.data.errors import no_separator
from kohort.cli.data.source import Source


def read_lines(source: Source, key_separator: bytes | None) -> Iterator[ColumnBlock]:
    for first, block in source.line_blocks():
        values = pc.split_pattern(pa.array([block], pa.binary()), pattern=b"\n").values
        if key_separator is None:
            yield column_block(value=values)
            continue
        halves = pc.split_pattern(values, pattern=key_separator, max_splits=1)
        single = np.flatnonzero(pc.list_value_length(halves).to_numpy() == 1)
        rows = int(single[0]) if len(single) else len(values)
        pieces = halves.slice(0, rows).flatten()
        evens = np.arange(0, 2 * rows, 2)
        if rows:
            yield column_block(key=pieces.take(pa.array(evens)), value=pieces.take(pa.array(evens + 1)))
        if len(single):
            raise no_separator(source.name, first + rows, key_separator)
