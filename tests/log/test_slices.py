"""Work in slices, in one go."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from kohort.log.slices import in_one_go


def work(awaited: Any = None) -> Generator[Any, None, str]:
    yield
    yield awaited
    return "done"


def test_it_returns_what_the_work_does() -> None:
    assert in_one_go(work()) == "done"


def test_it_does_not_go_on_past_what_is_awaited() -> None:
    with pytest.raises(RuntimeError, match="it must not wait"):
        in_one_go(work(awaited="a reply"))
