from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kohort.spark import ProgramError, session, unlimited
from kohort.spark.program.windows import SessionSpec, WindowSpec


def test_lengths_are_in_ms() -> None:
    found = session("at", timedelta(minutes=30), grace="5 minutes", retention="1 day", end="ended")
    assert found == SessionSpec("at", 1_800_000, None, 300_000, 86_400_000, "ended")
    assert session("at", gap_column="gap") == SessionSpec("at", 0, "gap", None, None, None)


@pytest.mark.parametrize("start", ["2013-01-01T00:00:00Z", datetime(2013, 1, 1, tzinfo=UTC)])
def test_a_window_without_end_has_a_beginning(start: str | datetime) -> None:
    assert unlimited("at", start) == WindowSpec("at", 1, 1, None, None, since_ms=1_356_998_400_000)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no gap": (lambda: session("at"), "needs a gap"),
    "two gaps": (lambda: session("at", "1 minute", gap_column="gap"), "needs a gap"),
    "a gap of nothing": (lambda: session("at", "0 seconds"), "too short"),
    "a column of a number": (lambda: session(5, "1 minute"), "takes a column's name"),  # type: ignore[arg-type]
    "a retention alone": (lambda: session("at", "1 minute", retention="1 day"), "needs a grace"),
    "a short retention": (lambda: session("at", "1 minute", grace="1 hour", retention="1 minute"), "still take rows"),
    "two windows": (lambda: session("at", "1 minute", end="window"), "there twice"),
    "no time": (lambda: unlimited("at", "yesterday"), "is no time"),
    "a time of no zone": (lambda: unlimited("at", datetime(2013, 1, 1)), "no time with a zone"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_can_t_be_is_told(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(ProgramError, match=message):
        make()
