"""Each handler has tests under its name."""

from __future__ import annotations

from pathlib import Path

from kohort.broker import handlers


def test_each_handler_has_tests_under_its_name() -> None:
    names = {path.stem for path in Path(handlers.__path__[0]).glob("[a-z]*.py")}
    tested = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert names <= tested
