"""Flat Avro records read into columns by a compiled loop, which checks every byte and reaches beyond no record."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import kernel

BOOLEAN: Final = 0
INT: Final = 1
LONG: Final = 2
FLOAT: Final = 3
DOUBLE: Final = 4
BYTES: Final = 5
FIXED: Final = 6
ENUM: Final = 7
NOTHING: Final = 8

FAULTS: Final = (
    "",
    "the value ends within it",
    "a number of more bits than its type has",
    "a branch that its union doesn't have",
    "a negative length",
    "neither true nor false",
    "a symbol that its enum doesn't have",
    "bytes after the record's end",
)

_CUT, _LARGE, _BRANCH, _NEGATIVE, _NEITHER, _SYMBOL, _MORE = range(1, 8)


@kernel
def _varint(data: Any, at: Any, end: Any) -> Any:
    """(Where it ends, or -1 if it's cut off, -2 if it's too large; the number)."""
    number, shift = np.uint64(0), 0
    while at < end:
        byte = data[at]
        at += 1
        if shift == 63 and byte > 1:
            return -2, np.int64(0)
        number |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < 0x80:
            return at, np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1))
        shift += 7
        if shift > 63:
            return -2, np.int64(0)
    return -1, np.int64(0)


@kernel
def read_records(
    data: Any, row_starts: Any, row_sizes: Any, wanted: Any, kinds: Any, columns: Any, nulls: Any, widths: Any,
    there: Any, starts: Any, sizes: Any, longs: Any, faults: Any, fault_fields: Any,
) -> None:  # fmt: skip
    """Read rows, each of which should be one record.

    Args:
        data: bytes.
        row_starts, row_sizes, wanted: where each row lies in them; bool: whether it's to be read.
        kinds, columns, nulls, widths: of the fields as they were written: what it is; which column it is for, or -1;
            which branch of a union with null is null, or -1; a FIXED's size, or the number of an ENUM's symbols.
        there, starts, sizes, longs: what is found, as [column, row]; the first of them full of zeros. FLOAT and DOUBLE
            are bits in `longs`.
        faults, fault_fields: what is wrong with a row, as in `FAULTS`, and in which field.
    """
    for row in range(len(row_starts)):
        if not wanted[row]:
            continue
        at = np.int64(row_starts[row])
        end = at + row_sizes[row]
        fault = 0
        field = 0
        while field < len(kinds):
            kind, column = kinds[field], columns[field]
            start, size, number = np.int64(0), np.int64(0), np.int64(0)
            if nulls[field] >= 0:
                at, branch = _varint(data, at, end)
                if at < 0:
                    fault = _CUT if at == -1 else _LARGE
                    break
                if branch == nulls[field]:
                    field += 1
                    continue
                if branch != 1 - nulls[field]:
                    fault = _BRANCH
                    break
            if kind == INT or kind == LONG or kind == ENUM or kind == BYTES:  # noqa: SIM109  # quicker
                at, number = _varint(data, at, end)
                if at < 0:
                    fault = _CUT if at == -1 else _LARGE
                    break
                if kind == INT and not -(2**31) <= number < 2**31:
                    fault = _LARGE
                    break
                if kind == ENUM and not 0 <= number < widths[field]:
                    fault = _SYMBOL
                    break
                if kind == BYTES:
                    start, size = at, number
                    if size < 0:
                        fault = _NEGATIVE
                        break
                    if size > end - at:
                        fault = _CUT
                        break
                    at += size
            elif kind != NOTHING:
                size = np.int64(widths[field])
                start = at
                if size > end - at:
                    fault = _CUT
                    break
                if kind != FIXED:
                    for index in range(size):
                        number |= np.int64(data[at + index]) << (8 * index)
                    if kind == BOOLEAN and number > 1:
                        fault = _NEITHER
                        break
                at += size
            if column >= 0:
                there[column, row] = kind != NOTHING
                starts[column, row] = start
                sizes[column, row] = size
                longs[column, row] = number
            field += 1
        if fault == 0 and at != end:
            fault = _MORE
            field = 0
        faults[row] = fault
        fault_fields[row] = field
