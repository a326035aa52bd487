"""`make bench-console` fails where an aim is missed."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.console.__main__ import AIM_S, check


def test_a_page_that_takes_longer_than_the_aim_fails_the_run() -> None:
    said = io.StringIO()
    figures = {"first page, s": {"Kohort": AIM_S}, "page a topic, ms": {"Kohort": 10.0}}
    assert check(figures, Console(file=said)) == 0
    assert said.getvalue() == ""
    assert check(figures | {"page a topic, ms": {"Kohort": 1_200.0}}, Console(file=said)) == 1
    assert said.getvalue() == "missed: page a topic 1.20 s (aim: 1 s)\n"
