"""Windows without a length of their own: sessions, which last as long as rows come, and windows that never end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from kohort.spark.errors import ProgramError
from kohort.spark.program.windows import (
    FOREVER,
    Duration,
    SessionSpec,
    WindowSpec,
    check_column,
    check_end,
    duration_ms,
    kept_ms,
)

__all__ = ["session", "unlimited"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)


def session(
    column: str,
    gap: Duration | None = None,
    *,
    gap_column: str | None = None,
    grace: Duration | None = None,
    retention: Duration | None = None,
    end: str | None = None,
) -> SessionSpec:
    """Sessions to group by: rows of a group whose times are no further apart than a gap.

        clicks.group_by("user", session("at", "30 minutes", grace="5 minutes"))

    A row that is within the gap of two sessions makes one of them. What is read first doesn't matter: a session begins
    at its earliest row, and is called by that time, `window`.

    Args:
        column: a TIMESTAMP column of the stream.
        gap: how far apart the times of neighbours in a session are at most.
        gap_column: instead, the column that says it for each row: how long after it another may come to be in its
            session, as a whole number of milliseconds or an INTERVAL DAY TO SECOND. Rows in which it is null, zero or
            less are in no session, and are counted.
        grace: how long, after the last row and the gap, a session still takes rows, by the stream's own time: the
            largest until then in the row's partition, its own included. A row whose session, with those that it would
            join, was over by then is late. Without, rows are never late. Needed for `emit="close"`.
        retention: how long after the last row and the gap a session can be asked for; it is removed then. Without, it
            stays, and a start warns of that; "forever" says that it shall.
        end: a name for a column of outputs that has the time of the session's last row.

    Raises:
        ProgramError: arguments that can't be.
    """
    check_column("session", column)
    where = f"session({column!r})"
    if (gap is None) == (gap_column is None):
        raise ProgramError(f'{where} needs a gap, as "30 minutes", or gap_column, the column that has each row\'s')
    if gap_column is not None and not isinstance(gap_column, str):
        raise ProgramError(f"{where}: gap_column takes a column's name, not {gap_column!r}")
    grace_ms = None if grace is None else duration_ms("grace", grace, least=0)
    retention_ms = kept_ms("retention", retention)
    if retention_ms is not None:
        if grace_ms is None:
            raise ProgramError(
                f"{where}: retention={retention!r} needs a grace: a session that always takes rows can't be removed"
            )
        if retention_ms < grace_ms:
            raise ProgramError(
                f"{where}: retention={retention!r} is shorter than the grace, {grace!r}: sessions would be removed "
                f"that still take rows"
            )
    check_end(where, end)
    each = duration_ms("gap", gap) if gap is not None else 0
    return SessionSpec(column, each, gap_column, grace_ms, retention_ms, end, forever=retention == FOREVER)


def unlimited(column: str, start: str | datetime) -> WindowSpec:
    """One window from a time on, without an end: rows before it are in none, and are counted as dropped.

        clicks.group_by("user", unlimited("at", start="2013-01-01T00:00:00Z"))

    Args:
        column: a TIMESTAMP column of the stream.
        start: when it begins, with its time zone: a datetime, or a text in ISO 8601.

    Raises:
        ProgramError: arguments that can't be.
    """
    where = f"unlimited({column!r})"
    if not isinstance(column, str):
        raise ProgramError(f"{where}: takes a column's name; compute the column in a transform")
    try:
        begins = datetime.fromisoformat(start) if isinstance(start, str) else start
    except ValueError:
        raise ProgramError(f'{where}: start={start!r} is no time: write it like "2013-01-01T00:00:00Z"') from None
    if not isinstance(begins, datetime) or begins.tzinfo is None or begins < _FIRST:
        raise ProgramError(f'{where}: start={start!r} is no time with a zone: write it like "2013-01-01T00:00:00Z"')
    since = (begins - _EPOCH) // timedelta(milliseconds=1)
    return WindowSpec(column, 1, 1, None, None, since_ms=since)
