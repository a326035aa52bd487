from __future__ import annotations

import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from kohort.regex import full_matches

LITERALS = st.sampled_from(["a", "b", "é", r"\.", "-", ".", "[ab]", "[^a]", "[a-c.]", r"\Aa", r"\d", ""])
QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?"])
PATTERNS = st.recursive(
    LITERALS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.tuples(inner, QUANTIFIERS).map(lambda of: f"(?:{of[0]}){of[1]}"),
        inner.map(lambda of: f"({of})"),
    ),
    max_leaves=6,
)


def test_names_are_matched_as_a_whole() -> None:
    assert full_matches("a|b.*", ["a", "aa", "b", "bc", "cb", ""]) == [True, False, True, True, False, False]
    assert full_matches("a|ab", ["ab", "ab\n"]) == [True, False]
    assert full_matches("a.", ["aé", "a\n"]) == [True, False]
    assert full_matches(".*", []) == []


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "(?=a)a", r"(a)\1", "a{1001}", "((a{100}){100}){100}", "\ud800"])
def test_what_is_no_pattern(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"^invalid regular expression: .|surrogates not allowed"):
        full_matches(pattern, ["a"])
    assert capfd.readouterr() == ("", ""), "RE2 logs nothing of its own"


def test_a_pattern_that_is_slow_elsewhere() -> None:
    assert full_matches("(a+)+b", ["a" * 30_000] * 50) == [False] * 50


def test_a_pattern_that_is_slow_here_is_refused() -> None:
    with pytest.raises(ValueError, match="pattern too large"):
        full_matches("(" + "a?" * 1000 + "){100}", [])


def test_memory_of_patterns_is_not_kept() -> None:
    for length in range(50):
        full_matches("a" * length, ["a"])
    assert re2._Regexp._make.cache_info().currsize == 0


@given(PATTERNS, st.lists(st.text("abcé.-1\n", max_size=8), max_size=5))
def test_it_finds_what_python_finds(pattern: str, names: list[str]) -> None:
    assert full_matches(pattern, names) == [re.fullmatch(pattern, name) is not None for name in names]
