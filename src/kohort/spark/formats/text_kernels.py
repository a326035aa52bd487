"""Texts read and copied by compiled loops: dates, times, and the bytes of a column."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import copy_bytes, kernel

_MONTH_DAYS: Final = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@kernel
def _digits(data: Any, at: Any, count: Any) -> Any:
    """The number in so many digits, or -1."""
    number = 0
    for index in range(at, at + count):
        if not 48 <= data[index] <= 57:
            return -1
        number = number * 10 + (data[index] - 48)
    return number


@kernel
def days_since_1970(year: Any, month: Any, day: Any) -> Any:
    """(Whether there is such a day, its number)."""
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1]:
        return False, 0
    if month == 2 and day == 29 and (year % 4 != 0 or (year % 100 == 0 and year % 400 != 0)):
        return False, 0
    # Years begin in March here, so that the leap day comes last.
    if month <= 2:
        year -= 1
    in_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return True, year * 365 + year // 4 - year // 100 + year // 400 + in_year - 719_468


@kernel
def read_date(data: Any, at: Any, end: Any) -> Any:
    """(Whether these bytes are YYYY-MM-DD, days since 1970)."""
    if end - at != 10 or data[at + 4] != 45 or data[at + 7] != 45:
        return False, 0
    return days_since_1970(_digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2))


@kernel
def read_timestamp(data: Any, at: Any, end: Any, zoned: Any) -> Any:
    """(Whether these bytes are a time in one of ISO 8601's usual forms, µs since 1970).

    Without a zone it is UTC; unless `zoned`, it must have none.
    """
    if end - at < 19:
        return False, 0
    good, days = read_date(data, at, at + 10)
    between = data[at + 10]
    if not good or (between != 84 and between != 32) or data[at + 13] != 58 or data[at + 16] != 58:
        return False, 0
    hour, minute, second = _digits(data, at + 11, 2), _digits(data, at + 14, 2), _digits(data, at + 17, 2)
    if not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59:
        return False, 0
    micros = np.int64(((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000
    at += 19
    if at < end and data[at] == 46:
        at += 1
        scale, start = 100_000, at
        while at < end and 48 <= data[at] <= 57:
            micros += scale * (data[at] - 48)
            scale //= 10
            at += 1
        if at == start or at - start > 6:
            return False, 0
    if at == end:
        return True, micros
    if not zoned:
        return False, 0
    if data[at] == 90:
        return at + 1 == end, micros
    if data[at] != 43 and data[at] != 45:
        return False, 0
    minus = data[at] == 45
    if end - at == 6 and data[at + 3] == 58:
        offset, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
    elif end - at == 5:
        offset, minutes = _digits(data, at + 1, 2), _digits(data, at + 3, 2)
    elif end - at == 3:
        offset, minutes = _digits(data, at + 1, 2), 0
    else:
        return False, 0
    if not 0 <= offset <= 23 or not 0 <= minutes <= 59:
        return False, 0
    shift = np.int64(offset * 60 + minutes) * 60_000_000
    return True, micros + shift if minus else micros - shift


@kernel
def read_timestamps(data: Any, starts: Any, sizes: Any, there: Any, micros: Any, has_offset: Any, bad: Any) -> None:
    """Read texts as `read_timestamp` does; say which have an offset, and which are no times."""
    for row in range(len(starts)):
        if there[row]:
            at = np.int64(starts[row])
            good, micros[row] = read_timestamp(data, at, at + sizes[row], False)
            if not good:
                has_offset[row], micros[row] = read_timestamp(data, at, at + sizes[row], True)
                bad[row] = not has_offset[row]


@kernel
def gather(data: Any, starts: Any, sizes: Any, there: Any, ends: Any, out: Any) -> None:
    """Copy pieces of `data` one after another, and say where they end; nothing where there's nothing."""
    at = 0
    ends[0] = 0
    for row in range(len(starts)):
        if there[row]:
            size = sizes[row]
            if size <= 16:  # quicker than a call
                for index in range(size):
                    out[at + index] = data[starts[row] + index]
            else:
                copy_bytes(out, at, data, starts[row], size)
            at += size
        ends[row + 1] = at


@kernel
def _follows(data: Any, at: Any, end: Any, count: Any) -> Any:
    if at + count > end:
        return False
    for index in range(at, at + count):  # noqa: SIM110
        if data[index] & 0xC0 != 0x80:
            return False
    return True


@kernel
def is_text(data: Any, starts: Any, sizes: Any, good: Any) -> None:
    """Clear `good` for the pieces of `data` that aren't UTF-8."""
    for row in range(len(starts)):
        at = np.int64(starts[row])
        end = at + sizes[row]
        while at < end:
            byte = data[at]
            if byte < 0x80:
                at += 1
            elif 0xC2 <= byte < 0xE0 and _follows(data, at + 1, end, 1):
                at += 2
            elif 0xE0 <= byte < 0xF0 and _follows(data, at + 1, end, 2):
                second = data[at + 1]
                if (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second >= 0xA0):
                    good[row] = False
                    break
                at += 3
            elif 0xF0 <= byte < 0xF5 and _follows(data, at + 1, end, 3):
                second = data[at + 1]
                if (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second >= 0x90):
                    good[row] = False
                    break
                at += 4
            else:
                good[row] = False
                break
