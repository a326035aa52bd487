from __future__ import annotations

import pytest

from kohort.plurals import several


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1_234_567, "1,234,567 records")]
)
def test_one_is_no_plural(count: int, text: str) -> None:
    assert several(count, "record") == text


@pytest.mark.parametrize(("count", "text"), [(1, "1 whole batch"), (30, "30 whole batches")])
def test_some_things_take_another_ending(count: int, text: str) -> None:
    assert several(count, "whole batch", "es") == text
