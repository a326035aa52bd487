from __future__ import annotations

import pytest

from kohort.coordinator.regex import full_matches


def test_names_are_matched_as_a_whole() -> None:
    assert full_matches("a|b.*", ["a", "aa", "b", "bc", "cb", ""]) == [True, False, True, True, False, False]
    assert full_matches(".*", []) == []


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "(?=a)a", r"(a)\1"])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        full_matches(pattern, ["a"])
