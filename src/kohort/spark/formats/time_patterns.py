"""Spark's datetime patterns, as far as they say where a time lies in a text, and a loop that reads by them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import kernel
from kohort.spark.formats.interfaces import FormatError
from kohort.spark.formats.text_kernels import days_since_1970

# What is read: each operation is one of these, with two numbers.
_BYTE: Final = 0  # this byte
_OPEN: Final = 1  # the beginning of what may be missing; where its end is
_CLOSE: Final = 2
_MONTH_NAME: Final = 3  # how many letters; 0 for all of them
_HALF: Final = 4  # AM or PM
_OFFSET: Final = 5  # whether Z is one
_FRACTION: Final = 6  # from here on numbers of so many digits at least, and at most
_YEAR: Final = 7
_SHORT_YEAR: Final = 8
_MONTH: Final = 9
_DAY: Final = 10
_HOUR: Final = 11
_HALF_HOUR: Final = 12
_MINUTE: Final = 13
_SECOND: Final = 14

_NUMBERS: Final = {"d": _DAY, "H": _HOUR, "h": _HALF_HOUR, "m": _MINUTE, "s": _SECOND}
_MONTHS: Final = np.frombuffer(
    b"january  february march    april    may      june     july     august   septemberoctober  november december ",
    np.uint8,
).reshape(12, 9)
_LETTERS: Final = "y, M, d, H, h with a, m, s, S, and X, x or Z for an offset; texts in '…', what may be missing in […]"


def compiled_pattern(pattern: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A pattern as operations for `read_by_pattern`.

    Raises:
        FormatError: it has letters that aren't known, or doesn't say year, month and day.
    """
    operations: list[tuple[int, int, int]] = []
    opened: int | None = None
    certain: set[int] = set()
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        run = len(pattern[at:]) - len(pattern[at:].lstrip(letter))
        if letter == "'":
            text, at = _quoted(pattern, at)
            operations += [(_BYTE, byte, 0) for byte in text.encode()]
            continue
        if letter == "[" and opened is None:
            opened, run = len(operations), 1
            operations.append((_OPEN, 0, 0))
        elif letter == "]" and opened is not None:
            operations.append((_CLOSE, 0, 0))
            operations[opened], opened, run = (_OPEN, len(operations), 0), None, 1
        elif letter.isascii() and (letter.isalpha() or letter in "[]{}#"):
            operation = _operation(pattern, letter, run)
            operations.append(operation)
            if opened is None:
                certain.add(operation[0])
        else:
            operations += [(_BYTE, byte, 0) for byte in (letter * run).encode()]
        at += run
    if opened is not None:
        raise _refused(pattern, "a [ isn't closed")
    if not (certain & {_YEAR, _SHORT_YEAR} and certain & {_MONTH, _MONTH_NAME} and _DAY in certain):
        raise _refused(pattern, "it has to have year, month and day (y, M, d), not in brackets")
    there = {operation for operation, _, _ in operations}
    if (_HALF_HOUR in there) != (_HALF in there):
        raise _refused(pattern, "h goes with a (AM or PM), and H is the hour of the day")
    return np.array(operations, np.int64)


def _operation(pattern: str, letter: str, run: int) -> tuple[int, int, int]:
    match letter, run:
        case ("y" | "u", 1 | 4):
            return _YEAR, 4, 4
        case ("y" | "u", 2):
            return _SHORT_YEAR, 2, 2
        case ("M" | "L", 1 | 2):
            return _MONTH, run, 2
        case ("M" | "L", 3):
            return _MONTH_NAME, 3, 0
        case ("M" | "L", 4):
            return _MONTH_NAME, 0, 0
        case ("d" | "H" | "h" | "m" | "s", 1 | 2):
            return _NUMBERS[letter], run, 2
        case ("S", _) if run <= 9:
            return _FRACTION, 1, run
        case ("a", 1):
            return _HALF, 0, 0
        case ("X" | "x" | "Z", _) if run <= 5:
            return _OFFSET, letter == "X" or (letter, run) == ("Z", 5), 0
    raise _refused(pattern, f"{letter * run} isn't read")


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text in quotes that begin at `at`, and where it ends. Two quotes are one, as in SQL."""
    text, begin = "", at
    at += 1
    while at < len(pattern):
        if pattern[at] != "'":
            text += pattern[at]
        elif pattern[at + 1 : at + 2] == "'" and at > begin + 1:
            text, at = f"{text}'", at + 1
        else:
            return text or "'", at + 1
        at += 1
    raise _refused(pattern, "a quote isn't closed")


def _refused(pattern: str, why: str) -> FormatError:
    return FormatError(
        f"timestamp_format {pattern!r}: {why}. Say timestamp_seconds, timestamp_millis or timestamp_micros for numbers "
        f'since 1970, or a pattern such as "yyyy-MM-dd HH:mm:ss" with the letters {_LETTERS}'
    )


@kernel
def _count(data: Any, at: Any, end: Any, least: Any, most: Any) -> Any:
    """(Past so many digits or -1, their number)."""
    number, start = 0, at
    while at < end and at - start < most and 48 <= data[at] <= 57:
        number = number * 10 + (data[at] - 48)
        at += 1
    return (at if at - start >= least else -1), number


@kernel
def _month(data: Any, at: Any, end: Any, letters: Any) -> Any:
    """(Past a month's English name or -1, its number), of any case."""
    for month in range(12):
        size = 0
        while size < 9 and _MONTHS[month, size] != 32 and (letters == 0 or size < letters):
            size += 1
        if at + size > end:
            continue
        same = True
        for index in range(size):
            if (data[at + index] | 32) != _MONTHS[month, index]:
                same = False
        if same:
            return at + size, month + 1
    return -1, 0


@kernel
def _offset(data: Any, at: Any, end: Any, zulu: Any) -> Any:
    """(Past +hh, +hhmm, +hh:mm or, if that is one, Z; or -1; its minutes)."""
    if at < end and zulu and data[at] == 90:
        return at + 1, 0
    if at >= end or (data[at] != 43 and data[at] != 45):
        return -1, 0
    minus = data[at] == 45
    at, hours = _count(data, at + 1, end, 2, 2)
    if at < 0:
        return -1, 0
    after, minutes = _count(data, at + 1 if at < end and data[at] == 58 else at, end, 2, 2)
    if after < 0:
        after, minutes = at, 0
    if hours > 18 or minutes > 59:
        return -1, 0
    return after, -(hours * 60 + minutes) if minus else hours * 60 + minutes


@kernel
def _read(data: Any, at: Any, end: Any, operations: Any) -> Any:
    """(Whether these bytes are a time of this pattern, µs since 1970, whether it has an offset). Without, as of UTC."""
    year, month, day, hour, minute, second, micros = 1970, 1, 1, 0, 0, 0, 0
    half, shift, has_offset = -1, 0, False
    back, skipped = -1, 0  # where to go on if what may be missing is
    number = 0
    while number < len(operations):
        operation, one, two = operations[number]
        number += 1
        before = at
        if operation == _OPEN:
            back, skipped = at, one
            continue
        if operation == _CLOSE:
            back = -1
            continue
        if operation == _BYTE:
            at = at + 1 if at < end and data[at] == one else -1
        elif operation == _MONTH_NAME:
            at, month = _month(data, at, end, one)
        elif operation == _HALF:
            good = at + 2 <= end and (data[at + 1] | 32) == 109 and ((data[at] | 32) == 97 or (data[at] | 32) == 112)
            half = (1 if (data[at] | 32) == 112 else 0) if good else -1
            at = at + 2 if good else -1
        elif operation == _OFFSET:
            at, shift = _offset(data, at, end, one != 0)
            has_offset = at >= 0
        else:
            at, value = _count(data, at, end, one, two)
            if operation == _FRACTION:
                for _ in range(at - before, 6):
                    value *= 10
                for _ in range(6, at - before):
                    value //= 10
                micros = value
            elif operation == _YEAR:
                year = value
            elif operation == _SHORT_YEAR:
                year = 2000 + value
            elif operation == _MONTH:
                month = value
            elif operation == _DAY:
                day = value
            elif operation == _HOUR:
                hour = value
            elif operation == _HALF_HOUR:
                hour = value
                if not 1 <= value <= 12:
                    at = -1
            elif operation == _MINUTE:
                minute = value
            else:
                second = value
        if at < 0:
            if back < 0:
                return False, np.int64(0), False
            at, back, number = back, -1, skipped
    if half >= 0:
        hour = hour % 12 + 12 * half
    good, days = days_since_1970(year, month, day)
    if at != end or not good or hour > 23 or minute > 59 or second > 59:
        return False, np.int64(0), False
    minutes = np.int64((days * 24 + hour) * 60 + minute - shift)
    return True, (minutes * 60 + second) * 1_000_000 + micros, has_offset


@kernel
def read_by_pattern(
    data: Any, starts: Any, sizes: Any, there: Any, operations: Any, micros: Any, has_offset: Any, bad: Any
) -> None:
    """Read texts by a pattern.

    Args:
        data, starts, sizes, there: where each text lies, if there is one.
        operations: of the pattern.
        micros, has_offset, bad: what comes out: µs since 1970, as of UTC where the text has no offset; whether it has
            one; set where the text isn't as the pattern says.
    """
    for row in range(len(starts)):
        if there[row]:
            at = np.int64(starts[row])
            good, time, has = _read(data, at, at + sizes[row], operations)
            micros[row], has_offset[row] = time, has
            if not good:
                bad[row] = True
