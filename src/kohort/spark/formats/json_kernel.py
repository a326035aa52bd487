"""JSON objects read into columns by compiled loops, which check every byte and reach beyond no record.

What is plain is read here. Whatever is not (an escaped name, a number with a fraction where a whole one is wanted, bad
bytes) marks its record, which `json_values` then looks at in Python, and decides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import kernel
from kohort.spark.formats.text_kernels import read_date, read_timestamp

# What is wanted of a field.
LONG: Final = 0
DOUBLE: Final = 1
BOOLEAN: Final = 2
TEXT: Final = 3  # a string's place
DECIMAL: Final = 4  # a number, or a string with one, as so many units of its scale
TIMESTAMP: Final = 5  # µs
WALL_CLOCK: Final = 6  # µs, without a zone
DATE: Final = 7  # days
EPOCH: Final = 8  # a number, or a string with one, as so many units of its scale, rounded towards 0
SPAN: Final = 9  # the place of an object or array
OBJECT: Final = 10  # the place of an object

# What was found.
THERE: Final = 1
ROUGH: Final = 2  # a string with escapes, or a double that takes more than a multiplication

_DEPTH: Final = 500
_KEYS: Final = 128

_POWERS: Final = np.array([10.0**power for power in range(23)])
_EXACT: Final = 2**53
_MOST: Final = np.uint64(2**63 - 1)

_special = np.zeros(256, np.bool_)  # what ends a run of plain characters within a string
_special[:32] = True
_special[[34, 92]] = True
_SPECIAL: Final = _special


@kernel
def _space(data: Any, at: Any, end: Any) -> Any:
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@kernel
def _string(data: Any, at: Any, end: Any) -> Any:
    """Where the string whose first character is at `at` ends (its quote), or -1; and whether it has escapes."""
    escaped = False
    while True:
        while at < end and not _SPECIAL[data[at]]:
            at += 1
        if at >= end:
            return -1, escaped
        if data[at] == 34:
            return at, escaped
        if data[at] != 92 or at + 1 >= end:
            return -1, escaped
        escaped = True
        kind = data[at + 1]
        if kind == 117:  # u
            if at + 6 > end:
                return -1, escaped
            for digit in data[at + 2 : at + 6]:
                if not (48 <= digit <= 57 or 65 <= digit <= 70 or 97 <= digit <= 102):
                    return -1, escaped
            at += 6
        elif kind in (34, 92, 47, 98, 102, 110, 114, 116):  # "\/bfnrt
            at += 2
        else:
            return -1, escaped


@kernel
def _number(data: Any, at: Any, end: Any) -> Any:
    """(where it ends or -1, its digits as a number, how many they are, the power of ten to multiply by, if whole)."""
    digits = np.uint64(0)
    count, power, whole = 0, 0, True
    if at < end and data[at] == 45:
        at += 1
    if at >= end or not 48 <= data[at] <= 57:
        return -1, digits, 0, 0, False
    if data[at] == 48:
        at += 1
        if at < end and 48 <= data[at] <= 57:
            return -1, digits, 0, 0, False
    while at < end and 48 <= data[at] <= 57:
        digits = digits * np.uint64(10) + np.uint64(data[at] - 48)
        count += 1
        at += 1
    if at < end and data[at] == 46:
        at += 1
        whole = False
        start = at
        while at < end and 48 <= data[at] <= 57:
            digits = digits * np.uint64(10) + np.uint64(data[at] - 48)
            count += 1
            at += 1
        if at == start:
            return -1, digits, 0, 0, False
        power = start - at
    if at < end and (data[at] == 101 or data[at] == 69):
        at += 1
        whole = False
        minus = at < end and data[at] == 45
        if at < end and (data[at] == 45 or data[at] == 43):
            at += 1
        start, exponent = at, 0
        while at < end and 48 <= data[at] <= 57:
            exponent = min(10_000, exponent * 10 + (data[at] - 48))
            at += 1
        if at == start:
            return -1, digits, 0, 0, False
        power += -exponent if minus else exponent
    return at, digits, count, power, whole


@kernel
def _word(data: Any, at: Any, end: Any, word: Any) -> Any:
    """Where it ends, or -1 if it isn't there."""
    size = len(word)
    if at + size > end:
        return -1
    for index in range(size):
        if data[at + index] != word[index]:
            return -1
    return at + size


_TRUE: Final = np.frombuffer(b"true", np.uint8)
_FALSE: Final = np.frombuffer(b"false", np.uint8)
_NULL: Final = np.frombuffer(b"null", np.uint8)
_NAN: Final = np.frombuffer(b"NaN", np.uint8)
_INFINITY: Final = np.frombuffer(b"Infinity", np.uint8)
_MINUS_INFINITY: Final = np.frombuffer(b"-Infinity", np.uint8)


@kernel
def _plain(data: Any, at: Any, end: Any) -> Any:
    """Where a value that is no object, array or string ends, or -1."""
    if at >= end:
        return -1
    first = data[at]
    if first == 116:
        return _word(data, at, end, _TRUE)
    if first == 102:
        return _word(data, at, end, _FALSE)
    if first == 110:
        return _word(data, at, end, _NULL)
    if first == 78:
        return _word(data, at, end, _NAN)
    if first == 73:
        return _word(data, at, end, _INFINITY)
    if first == 45 and at + 1 < end and data[at + 1] == 73:
        return _word(data, at, end, _MINUS_INFINITY)
    return _number(data, at, end)[0]


@kernel
def _name(data: Any, at: Any, end: Any) -> Any:
    """Past a name and its colon, to where its value begins; -1 if they aren't there."""
    if at >= end or data[at] != 34:
        return -1
    quote, _ = _string(data, at + 1, end)
    if quote < 0:
        return -1
    at = _space(data, quote + 1, end)
    if at >= end or data[at] != 58:
        return -1
    return _space(data, at + 1, end)


@kernel
def _skip(data: Any, at: Any, end: Any, nesting: Any) -> Any:
    """Where the value that begins at `at` ends, or -1."""
    depth = 0
    while True:
        if at >= end:
            return -1
        first = data[at]
        opened = False
        if first == 34:
            at, _ = _string(data, at + 1, end)
            if at < 0:
                return -1
            at += 1
        elif first == 123 or first == 91:
            if depth == len(nesting):
                return -1
            nesting[depth] = first
            depth += 1
            at = _space(data, at + 1, end)
            if at >= end:
                return -1
            if data[at] != first + 2:  # its closing bracket
                opened = True
                if first == 123:
                    at = _name(data, at, end)
                    if at < 0:
                        return -1
        else:
            at = _plain(data, at, end)
            if at < 0:
                return -1
        while not opened:
            if depth == 0:
                return at
            at = _space(data, at, end)
            if at >= end:
                return -1
            if data[at] == nesting[depth - 1] + 2:
                depth -= 1
                at += 1
            elif data[at] == 44:
                at = _space(data, at + 1, end)
                if nesting[depth - 1] == 123:
                    at = _name(data, at, end)
                    if at < 0:
                        return -1
                opened = True
            else:
                return -1


@kernel
def _same(data: Any, at: Any, size: Any, other: Any, other_at: Any) -> Any:
    for index in range(size):  # noqa: SIM110
        if data[at + index] != other[other_at + index]:
            return False
    return True


@kernel
def _field(data: Any, at: Any, size: Any, names: Any, name_ends: Any) -> Any:
    """The number of the field of this name, or -1."""
    for field in range(len(name_ends) - 1):
        if name_ends[field + 1] - name_ends[field] == size and _same(data, at, size, names, name_ends[field]):
            return field
    return -1


@kernel
def _decimal(data: Any, at: Any, end: Any, scale: Any, most: Any, exact: Any) -> Any:
    """(Whether these bytes are a number of at most `most` units of 10^-scale, if `exact` exactly so many; how many)."""
    after, digits, count, power, _ = _number(data, at, end)
    if after < 0 or after != end or count > (18 if exact else 19) or digits > _MOST:
        return False, np.int64(0)
    number, power = np.int64(digits), power + scale
    while number != 0 and power > 0:
        if number > most // 10:
            return False, np.int64(0)
        number *= 10
        power -= 1
    while number != 0 and power < 0:
        if exact and number % 10 != 0:
            return False, np.int64(0)
        number //= 10
        power += 1
    return number <= most, -number if data[at] == 45 else number


@kernel
def _value(data: Any, at: Any, end: Any, kind: Any, least: Any, most: Any, nesting: Any) -> Any:
    """A wanted value: (where it ends or -1 if it isn't what is wanted, what was found, start, size, long, double)."""
    if at >= end:
        return -1, 0, 0, 0, 0, 0.0
    first = data[at]
    if first == 110:
        return _word(data, at, end, _NULL), 0, 0, 0, 0, 0.0
    if first == 34:
        if kind < TEXT or kind >= SPAN:
            return -1, 0, 0, 0, 0, 0.0
        quote, escaped = _string(data, at + 1, end)
        if quote < 0:
            return -1, 0, 0, 0, 0, 0.0
        if kind == TEXT:
            return quote + 1, ROUGH if escaped else THERE, at + 1, quote - at - 1, 0, 0.0
        if kind == DECIMAL:
            good, number = _decimal(data, at + 1, quote, least, most, True)
        elif kind == EPOCH:
            good, number = _decimal(data, at + 1, quote, least, most, False)
        elif kind == DATE:
            good, number = read_date(data, at + 1, quote)
        else:
            good, number = read_timestamp(data, at + 1, quote, kind == TIMESTAMP)
        return quote + 1 if good else -1, THERE, 0, 0, number, 0.0
    if first == 123 or first == 91:
        if kind < SPAN or (kind == OBJECT and first != 123):
            return -1, 0, 0, 0, 0, 0.0
        after = _skip(data, at, end, nesting)
        return after, THERE, at, after - at, 0, 0.0
    if kind == BOOLEAN:
        after = _word(data, at, end, _TRUE)
        if after >= 0:
            return after, THERE, 0, 0, 1, 0.0
        return _word(data, at, end, _FALSE), THERE, 0, 0, 0, 0.0
    if kind != LONG and kind != DOUBLE and kind != DECIMAL and kind != EPOCH:
        return -1, 0, 0, 0, 0, 0.0
    after, digits, count, power, whole = _number(data, at, end)
    if kind in (DECIMAL, EPOCH):
        good, number = _decimal(data, at, after, least, most, kind == DECIMAL)
        return after if good else -1, THERE, 0, 0, number, 0.0
    if after < 0:
        if kind != DOUBLE:
            return -1, 0, 0, 0, 0, 0.0
        if first == 78:
            return _word(data, at, end, _NAN), THERE, 0, 0, 0, np.nan
        if first == 73:
            return _word(data, at, end, _INFINITY), THERE, 0, 0, 0, np.inf
        return _word(data, at, end, _MINUS_INFINITY), THERE, 0, 0, 0, -np.inf
    if kind == LONG:
        if not whole or count > 18:
            return -1, 0, 0, 0, 0, 0.0
        number = np.int64(digits)
        if first == 45:
            number = -number
        return after if least <= number <= most else -1, THERE, 0, 0, number, 0.0
    if count <= 18 and digits <= np.uint64(_EXACT) and -22 <= power <= 22:
        double = np.float64(digits)
        double = double / _POWERS[-power] if power < 0 else double * _POWERS[power]
        return after, THERE, 0, 0, 0, -double if first == 45 else double
    return after, ROUGH, at, after - at, 0, 0.0


@kernel
def read_objects(
    data: Any, row_starts: Any, row_sizes: Any, wanted: Any, names: Any, name_ends: Any, kinds: Any, leasts: Any,
    mosts: Any, found: Any, starts: Any, sizes: Any, longs: Any, doubles: Any, doubtful: Any,
) -> None:  # fmt: skip
    """Read rows, each of which should be one JSON object.

    Args:
        data: bytes, in UTF-8.
        row_starts, row_sizes, wanted: where each row lies in them; bool: whether it's to be read.
        names, name_ends: the fields' names.
        kinds, leasts, mosts: what is wanted of them; the range of a LONG; of a DECIMAL or an EPOCH the scale,
            and the most units.
        found, starts, sizes, longs, doubles: what is found, as [field, row]; the first of them full of zeros.
        doubtful: bool: set for rows that have to be looked at otherwise; what is found of them means nothing.
    """
    nesting = np.empty(_DEPTH, np.uint8)
    # Objects in a row mostly have the same names in the same order: compares with the one before.
    key_at, key_size, key_field = np.zeros(_KEYS, np.int64), np.full(_KEYS, -1, np.int64), np.zeros(_KEYS, np.int64)
    for row in range(len(row_starts)):
        if not wanted[row]:
            continue
        at = np.int64(row_starts[row])
        end = at + row_sizes[row]
        at = _space(data, at, end)
        if at >= end or data[at] != 123:
            doubtful[row] = True
            continue
        at = _space(data, at + 1, end)
        good = at < end
        if good and data[at] == 125:
            at += 1
        else:
            key = 0
            while good:
                good = False
                if at >= end or data[at] != 34:
                    break
                name_at = at + 1
                size = key_size[key] if key < _KEYS else -1
                if (
                    size >= 0
                    and name_at + size < end
                    and data[name_at + size] == 34
                    and _same(data, name_at, size, data, key_at[key])
                ):
                    field = key_field[key]
                    at = name_at + size + 1
                else:
                    quote, escaped = _string(data, name_at, end)
                    if quote < 0 or escaped:
                        break
                    size = quote - name_at
                    field = _field(data, name_at, size, names, name_ends)
                    at = quote + 1
                    if key < _KEYS:
                        key_at[key], key_size[key], key_field[key] = name_at, size, field
                key += 1
                at = _space(data, at, end)
                if at >= end or data[at] != 58:
                    break
                at = _space(data, at + 1, end)
                if field >= 0:
                    at, what, start, size, long, double = _value(
                        data, at, end, kinds[field], leasts[field], mosts[field], nesting
                    )
                    found[field, row] = what
                    starts[field, row] = start
                    sizes[field, row] = size
                    longs[field, row] = long
                    doubles[field, row] = double
                elif at < end and 48 <= data[at] <= 57:
                    at = _number(data, at, end)[0]
                else:
                    at = _skip(data, at, end, nesting)
                if at < 0:
                    break
                at = _space(data, at, end)
                if at >= end:
                    break
                if data[at] == 44:
                    at = _space(data, at + 1, end)
                    good = True
                elif data[at] == 125:
                    at += 1
                    good = True
                    break
                else:
                    break
        if not good or _space(data, at, end) != end:
            doubtful[row] = True
