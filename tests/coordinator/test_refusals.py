"""Who is refused again and again fills no log."""

from __future__ import annotations

from kohort.coordinator.refusals import Refusals


def test_a_line_in_ten_seconds_for_each() -> None:
    refusals = Refusals()
    assert [refusals.is_news(now, "group", "client") for now in (0, 1, 9_999, 10_000, 10_001)] == [
        True, False, False, True, False,
    ]  # fmt: skip
    assert refusals.is_news(10_001, "group", "another")
    assert refusals.is_news(10_001, "another", "client")


def test_names_that_are_made_up_fill_no_log_either() -> None:
    refusals = Refusals()
    assert sum(refusals.is_news(0, "group", str(number)) for number in range(1_000)) == 200
