from __future__ import annotations

import pytest

from kohort.cli import terminal


@pytest.fixture(autouse=True)
def wide_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe, whatever the width of the terminal that the tests are run in."""
    monkeypatch.setattr(terminal.out, "width", 160)
    monkeypatch.delenv("COLUMNS", raising=False)
