"""`make bench-console` fails where an aim is missed."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.console.__main__ import AIM_S, check


def test_a_page_that_takes_longer_than_the_aim_fails_the_run() -> None:
    said = io.StringIO()
    assert check({"the first page": AIM_S, "a topic": 0.01}, Console(file=said)) == 0
    assert said.getvalue() == ""
    assert check({"the first page": AIM_S + 0.2, "a topic": 0.01}, Console(file=said)) == 1
    assert said.getvalue() == "missed: the first page 1.20 s (aim: 1 s)\n"
