"""What Hypothesis draws, and how long it looks for less. See tests/conftest.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine


def drawn() -> list[int]:
    result: list[int] = []

    @given(st.integers())
    def draw(number: int) -> None:
        result.append(number)

    draw()
    return result


def test_examples_do_not_depend_on_which_modules_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    (tmp_path / "of_many_constants.py").write_text(f"NUMBERS = {[1_234_567 * n for n in range(1, 500)]}")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("of_many_constants")
    try:
        assert drawn() == before
    finally:
        del sys.modules["of_many_constants"]


def test_what_fails_is_told_before_the_time_limit_strikes(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("timeout")) > 2 * engine.MAX_SHRINKING_SECONDS
