"""Flat JSON objects read into columns by a compiled loop, which checks every byte and reaches beyond no value.

It reads what most programs write: objects of strings, numbers, true, false and null. A row that has anything else is
left to those who read all of JSON: a string or a name with an escape, an object or an array within, a value of another
type than its column's, a number that its column can't hold, and whatever isn't JSON.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import kernel, load_word

BOOLEAN: Final = 0
WHOLE: Final = 1
NUMBER: Final = 2
TEXT: Final = 3

_NULL, _TRUE, _FALSE = (np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false"))
_EXPONENT_DIGITS: Final = 2
_NUMBER_BYTES: Final = 100
"""A double of no more than that, both together, is no infinity."""
_TENTH_OF_LARGEST: Final = 922_337_203_685_477_580

_BLANKS: Final = np.zeros(256, np.bool_)
_BLANKS[list(b" \t\r\n")] = True
_ENDS: Final = np.zeros(256, np.bool_)
"""Bytes that a string ends with, or that make it one for others: quotes, backslashes, control characters."""
_ENDS[:32] = True
_ENDS[list(b'"\\')] = True

_ONES: Final = np.uint64(0x0101_0101_0101_0101)
_HIGHS, _SPACES, _QUOTES, _BACKSLASHES = (
    _ONES * np.uint64(0x80),
    _ONES * np.uint64(32),
    _ONES * np.uint64(34),
    _ONES * np.uint64(92),
)

NAMES_SEEN: Final = 256
"""So many of an object's first names are looked for where the object before had them."""
_FNV_START: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


def name_table(names: list[bytes]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Columns by the hashes of their names (FNV-1a), at least half of it empty (-1).

    A column whose place is taken has the next one that is free.
    """
    table = np.full(1 << (2 * len(names)).bit_length(), -1, np.int32)
    for column, name in enumerate(names):
        place = _FNV_START
        for byte in name:
            place = ((place ^ byte) * _FNV_PRIME) & 0xFFFF_FFFF
        while table[place & (len(table) - 1)] >= 0:
            place += 1
        table[place & (len(table) - 1)] = column
    return table


@kernel
def _after_blanks(data: Any, at: Any, end: Any) -> Any:
    while at < end and _BLANKS[data[at]]:
        at += 1
    return at


@kernel
def _same(data: Any, at: Any, end: Any, other: Any, start: Any, size: Any) -> Any:
    """Whether a name of `size` bytes in `other` is what comes here, with the quote at its end."""
    if at + size >= end or data[at + size] != 34:
        return False
    index = 0
    while index + 8 <= size:
        if load_word(data, at + index) != load_word(other, start + index):
            return False
        index += 8
    while index < size:
        if data[at + index] != other[start + index]:
            return False
        index += 1
    return True


@kernel
def _string_end(data: Any, at: Any, end: Any) -> Any:
    """(Where the quote is that ends a string, or -1; whether all of it is ASCII)."""
    high = np.uint8(0)
    highs = np.uint64(0)
    while at + 8 <= end:  # only whether one of eight bytes ends it: which one does is looked for below
        word = load_word(data, at)
        quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
        ends = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash | (word - _SPACES) & ~word
        if ends & _HIGHS:
            break
        highs |= word & _HIGHS
        at += 8
    if highs:
        high = np.uint8(0x80)
    while at < end:
        byte = data[at]
        if _ENDS[byte]:
            return (at if byte == 34 else np.int64(-1)), high < 0x80
        high |= byte
        at += 1
    return np.int64(-1), True


@kernel
def _begins(data: Any, at: Any, end: Any, word: Any) -> Any:
    if at + len(word) > end:
        return False
    for index in range(len(word)):  # noqa: SIM110
        if data[at + index] != word[index]:
            return False
    return True


@kernel
def _number(data: Any, at: Any, end: Any) -> Any:
    """(Where a number ends, or -1; it as an int64; whether it is one)."""
    minus = data[at] == 45
    if minus:
        at += 1
    start = at
    number, whole = np.int64(0), True
    while at < end:
        digit = np.int64(data[at]) - 48
        if digit < 0 or digit > 9:
            break
        if number > _TENTH_OF_LARGEST or (
            number == _TENTH_OF_LARGEST and digit > 7
        ):  # the least int64 is one more, and left to others
            whole = False
        else:
            number = number * 10 + digit
        at += 1
    if at == start or (data[start] == 48 and at - start > 1):
        return np.int64(-1), number, False
    if at < end and data[at] == 46:
        whole = False
        at += 1
        start = at
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == start:
            return np.int64(-1), number, False
    if at < end and (data[at] == 101 or data[at] == 69):
        whole = False
        at += 1
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        start = at
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == start or at - start > _EXPONENT_DIGITS:
            return np.int64(-1), number, False
    return at, -number if minus else number, whole


@kernel
def _column(data: Any, start: Any, end: Any, names: Any, name_starts: Any, table: Any) -> Any:
    """Which column is of this name, or -1; the quote after it is at `end`."""
    hashed = np.uint32(_FNV_START)
    for at in range(start, end):
        hashed = np.uint32((hashed ^ data[at]) * np.uint32(_FNV_PRIME))
    place = np.int64(hashed) & (len(table) - 1)
    while table[place] >= 0:
        column = table[place]
        size = name_starts[column + 1] - name_starts[column]
        if size == end - start and _same(data, start, end + 1, names, name_starts[column], size):
            return np.int64(column)
        place = (place + 1) & (len(table) - 1)
    return np.int64(-1)


@kernel
def _read_object(
    data: Any, at: Any, end: Any, row: Any, names: Any, name_starts: Any, table: Any, kinds: Any, least: Any, most: Any,
    there: Any, numbers: Any, sizes: Any, seen: Any,
) -> Any:  # fmt: skip
    """(Whether the object is read, whether all of it is ASCII)."""
    ascii_only = True
    if at == end or data[at] != 123:
        return False, True
    at = _after_blanks(data, at + 1, end)
    if at < end and data[at] == 125:
        return _after_blanks(data, at + 1, end) == end, True
    field = 0
    while True:
        if at == end or data[at] != 34:
            return False, True
        at += 1
        if field < NAMES_SEEN and _same(data, at, end, data, seen[field, 0], seen[field, 1]):
            column = seen[field, 2]
            ascii_only &= seen[field, 3] == 1
            at += seen[field, 1]
        else:
            start = at
            at, is_ascii = _string_end(data, at, end)
            if at < 0:
                return False, True
            ascii_only &= is_ascii
            column = _column(data, start, at, names, name_starts, table)
            if field < NAMES_SEEN:
                seen[field, 0], seen[field, 1], seen[field, 2], seen[field, 3] = start, at - start, column, is_ascii
        field += 1
        at = _after_blanks(data, at + 1, end)
        if at == end or data[at] != 58:
            return False, True
        at = _after_blanks(data, at + 1, end)
        if at == end:
            return False, True

        byte = data[at]
        start, number = at, np.int64(0)
        if byte == 34:
            start = at + 1
            at, is_ascii = _string_end(data, start, end)
            if at < 0 or (column >= 0 and kinds[column] != TEXT):
                return False, True
            ascii_only &= is_ascii
            if column >= 0:
                there[column, row] = True
                numbers[column, row] = start
                sizes[column, row] = at - start
            at += 1
        elif byte == 45 or 48 <= byte <= 57:
            at, number, whole = _number(data, at, end)
            if at < 0:
                return False, True
            if column >= 0:
                if kinds[column] == WHOLE:
                    if not whole or number < least[column] or number > most[column]:
                        return False, True
                    numbers[column, row] = number
                elif kinds[column] == NUMBER and at - start <= _NUMBER_BYTES:
                    numbers[column, row] = start
                    sizes[column, row] = at - start
                else:
                    return False, True
                there[column, row] = True
        else:
            null, true = _begins(data, at, end, _NULL), _begins(data, at, end, _TRUE)
            if not null and not true and not _begins(data, at, end, _FALSE):
                return False, True
            at += 4 if null or true else 5
            if column >= 0:
                if not null and kinds[column] != BOOLEAN:
                    return False, True
                there[column, row] = not null
                numbers[column, row] = true

        at = _after_blanks(data, at, end)
        if at == end:
            return False, True
        if data[at] == 125:
            return _after_blanks(data, at + 1, end) == end, ascii_only
        if data[at] != 44:
            return False, True
        at = _after_blanks(data, at + 1, end)


@kernel
def read_objects(
    data: Any, row_starts: Any, row_sizes: Any, wanted: Any, names: Any, name_starts: Any, table: Any, kinds: Any,
    least: Any, most: Any, there: Any, numbers: Any, sizes: Any, read: Any, ascii_only: Any,
) -> None:  # fmt: skip
    """Read rows, each of which should be one flat object. Of several fields with one name, the last counts.

    Args:
        data: bytes.
        row_starts, row_sizes, wanted: where each row lies in them; bool: whether it's to be read.
        names, name_starts, table: the columns' names as bytes, one after another; where each begins, and the last ends;
            `name_table` of them.
        kinds, least, most: what a column's values are; the least and the largest that a WHOLE one may have.
        there, numbers, sizes: what is found, as [column, row]; the first of them full of zeros. A number, 1 for true,
            or where a TEXT or a NUMBER begins, and how many bytes it has.
        read, ascii_only: whether a row was read, and is all ASCII. Others' bytes haven't been checked to be UTF-8; in
            rows that weren't read, columns may have values.
    """
    seen = np.zeros((NAMES_SEEN, 4), np.int64)
    seen[:, 1] = len(data)  # no name is so long
    for row in range(len(row_starts)):
        if wanted[row]:
            at = np.int64(row_starts[row])
            read[row], ascii_only[row] = _read_object(
                data, at, at + row_sizes[row], row, names, name_starts, table, kinds, least, most, there, numbers,
                sizes, seen,
            )  # fmt: skip
