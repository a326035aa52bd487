"""Windows, and how their lengths are written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kohort.spark.errors import ProgramError
from kohort.spark.program.windows import WindowSpec, duration_ms, window


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1 hour", 3_600_000),
        ("90 seconds", 90_000),
        ("1 day 12 hours", 129_600_000),
        ("2weeks", 1_209_600_000),
        ("250 milliseconds", 250),
        ("250 ms", 250),
        (" 5 MINUTES ", 300_000),
        (timedelta(hours=2), 7_200_000),
    ],
)
def test_lengths_of_time(text: str | timedelta, ms: int) -> None:
    assert duration_ms("size", text) == ms


@pytest.mark.parametrize("text", ["", "hour", "1", "1 fortnight", "1 hour and", "-1 hour", "1.5 hours", 3600, None])
def test_what_is_no_length_of_time(text: Any) -> None:
    with pytest.raises(ProgramError, match=r"^size=.* is no length of time: write it like \"1 hour\""):
        duration_ms("size", text)


def test_windows_tumble_unless_they_slide() -> None:
    assert window("at", "1 hour") == WindowSpec("at", 3_600_000, 3_600_000, None, None)
    hopping = window("at", "1 hour", slide="15 minutes", grace="0 seconds", retention="1 day")
    assert hopping == WindowSpec("at", 3_600_000, 900_000, 0, 86_400_000)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"slide": "2 hours"}, "slide='2 hours' is longer than the window, '1 hour'"),
        ({"slide": "0 hours"}, "slide='0 hours' is too short"),
        ({"retention": "1 day"}, "retention='1 day' needs a grace"),
        ({"grace": "1 hour", "retention": "1 hour"}, "shorter than size and grace together, '1 hour' [+] '1 hour'"),
    ],
)
def test_windows_that_cannot_be(more: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        window("at", "1 hour", **more)


def test_a_window_goes_by_a_columns_name() -> None:
    with pytest.raises(ProgramError, match=r"window\(\) takes a column's name, not \[\]"):
        window([], "1 hour")  # type: ignore[arg-type]
