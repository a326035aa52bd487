"""Windows of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kohort.spark.errors import ProgramError
from kohort.spark.program.column_checks import check_names, column_names

__all__ = ["FOREVER", "Duration", "SessionSpec", "WindowSpec", "duration_ms", "window"]

Duration = str | timedelta
"""A length of time: "1 hour", "90 seconds", "1 day 12 hours", or a timedelta."""
FOREVER: Final = "forever"
"""Instead of a length of time where state is kept: nothing ends it, and the program says so on purpose."""

_UNITS: Final = {
    "millisecond": 1,
    "ms": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_TERM: Final = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows over a TIMESTAMP column. They begin at multiples of `slide_ms` since 1970, in UTC.

    Attributes:
        size_ms: how long a window is.
        slide_ms: from the beginning of one to that of the next; equal to `size_ms` for tumbling windows.
        grace_ms: how long after its end a window takes rows; later ones are dropped and counted. None: always.
        retention_ms: how long after its beginning a window stays in the store. None: for ever.
        end: the column of outputs that has the window's end. None: no column has it.
        since_ms: of a window without end, when it begins; the others' lengths don't count then. None: windows end.
        forever: whether the program says that it stays in the store.
    """

    column: str
    size_ms: int
    slide_ms: int
    grace_ms: int | None
    retention_ms: int | None
    end: str | None = None
    since_ms: int | None = None
    forever: bool = False

    @property
    def identity(self) -> list[object]:
        """What makes a store of other windows unreadable."""
        since = [] if self.since_ms is None else [self.since_ms]
        return [self.column, self.size_ms, self.slide_ms, *since]

    @property
    def end_ms(self) -> int:
        """From the start to the end that outputs have."""
        return self.size_ms


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """Sessions over a TIMESTAMP column.

    Attributes:
        gap_ms: how far apart neighbours are at most.
        gap_column: the column that has it, instead.
        grace_ms: how long after the last row and the gap a session takes rows. None: always.
        retention_ms: how long after them a session stays in the store. None: for ever.
        end: the column of outputs that has the last row's time. None: no column has it.
        forever: whether the program says that it stays in the store.
    """

    column: str
    gap_ms: int
    gap_column: str | None
    grace_ms: int | None
    retention_ms: int | None
    end: str | None = None
    forever: bool = False

    @property
    def identity(self) -> list[object]:
        """What makes a store of other windows unreadable."""
        return [self.column, "sessions", self.gap_ms, self.gap_column]


def window(
    column: str,
    size: Duration,
    *,
    slide: Duration | None = None,
    grace: Duration | None = None,
    retention: Duration | None = None,
    end: str | None = None,
) -> WindowSpec:
    """Windows to group by.

        stream.group_by("origin", window("time_hour", "1 hour"))

    Args:
        column: a TIMESTAMP column of the stream.
        size: how long a window is, such as "1 hour".
        slide: for hopping windows: a new one begins so often. A row is in all windows that it falls in.
        grace: how long after its end a window still takes rows, by the stream's own time: the largest until then in
            the row's partition, its own included. Without, rows are never late. Needed for `emit="close"`.
        retention: how long after its beginning a window can be asked for; it is removed then. Without, it stays, and a
            start warns of that; "forever" says that it shall.
        end: a name for a column of outputs that has the window's end, beside its start, `window`. It is when the next
            one begins, so no row's time is as late.

    Raises:
        ProgramError: lengths that can't be.
    """
    check_column("window", column)
    size_ms = duration_ms("size", size)
    slide_ms = size_ms if slide is None else duration_ms("slide", slide)
    grace_ms = None if grace is None else duration_ms("grace", grace, least=0)
    retention_ms = kept_ms("retention", retention)
    if slide_ms > size_ms:
        raise ProgramError(
            f"window({column!r}): slide={slide!r} is longer than the window, {size!r}: rows between would be in none"
        )
    if retention_ms is not None:
        if grace_ms is None:
            raise ProgramError(
                f"window({column!r}): retention={retention!r} needs a grace: "
                f"a window that always takes rows can't be removed"
            )
        if retention_ms < size_ms + grace_ms:
            raise ProgramError(
                f"window({column!r}): retention={retention!r} is shorter than size and grace together, "
                f"{size!r} + {grace!r}: windows would be removed that still take rows"
            )
    check_end(f"window({column!r})", end)
    return WindowSpec(column, size_ms, slide_ms, grace_ms, retention_ms, end, forever=retention == FOREVER)


def check_column(what: str, column: object) -> None:
    """Checks the first argument of a function that makes windows, which is called `what`.

    Raises:
        ProgramError: it isn't a column's name.
    """
    if not isinstance(column, str):
        raise ProgramError(
            f"{what}() takes a column's name, not {column!r}: "
            f'compute the column in a transform, then say {what}("its name", …)'
        )


def check_end(where: str, end: str | None) -> None:
    """Checks the name of a column with the window's end.

    Raises:
        ProgramError: it can't be one.
    """
    if end is not None:
        column_names(f"{where}: end", end)
        check_names(f"{where}: end", ["window", end])


def kept_ms(name: str, value: Duration | None) -> int | None:
    """How long state is kept, in ms; None: nothing says so, or it is for ever.

    Raises:
        ProgramError: as of `duration_ms`.
    """
    return None if value is None or value == FOREVER else duration_ms(name, value)


def duration_ms(name: str, value: Duration, *, least: int = 1) -> int:
    """A length of time in ms.

    Raises:
        ProgramError: it is none, or shorter than `least` ms.
    """
    if isinstance(value, timedelta):
        length = value // timedelta(milliseconds=1)
    elif isinstance(value, str):
        length = _parsed(name, value)
    else:
        raise ProgramError(f'{name}={value!r} is no length of time: write it like "1 hour", or give a timedelta')
    if length < least:
        raise ProgramError(f"{name}={value!r} is too short: it takes {least} ms at least")
    return length


def _parsed(name: str, text: str) -> int:
    total, position = 0, 0
    while match := _TERM.match(text, position):
        unit = match[2].lower()
        scale = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if scale is None:
            break
        total += int(match[1]) * scale
        position = match.end()
    if position == 0 or position < len(text):
        units = ", ".join(unit + "s" for unit in _UNITS if unit != "ms")
        raise ProgramError(f'{name}={text!r} is no length of time: write it like "1 hour"; units are {units}')
    return total
