"""The benchmark of functions that keep state says when its aim is missed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.processors.__main__ import AIM, MISSED, verdict


@pytest.mark.parametrize(
    ("ratio", "quick", "code", "said"),
    [
        (AIM, False, 0, "is met"),
        (AIM - 0.1, False, MISSED, "is MISSED"),
        (AIM - 0.1, True, 0, "is not asked of so few keys"),
    ],
)
def test_a_missed_aim_is_said_and_an_exit_code(ratio: float, quick: bool, code: int, said: str) -> None:
    output = io.StringIO()
    assert verdict(ratio, Console(file=output, width=200), quick=quick) == code
    assert output.getvalue().rstrip().endswith(said)
