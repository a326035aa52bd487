from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.streams.patterns import MAX_PATTERN, MAX_PATTERNS, check_pattern, matching, why_not
from kohort.streams.topology import Subtopology, Topology


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("in", ["in"]),
        ("in-.*", ["in-1", "in-2"]),
        ("in|out", ["in", "out"]),
        ("(?i)IN", ["in"]),
        (r"in-\d", ["in-1", "in-2"]),
        (r"\Qin-1\E", ["in-1"]),
        ("[]in]+", ["in"]),
        ("^in$", ["in"]),
        ("x", []),
    ],
)
def test_a_pattern_matches_names_as_a_whole(pattern: str, found: list[str]) -> None:
    check_pattern(pattern)
    assert matching(pattern, ["out", "in-2", "in-1", "in"]) == found


@pytest.mark.parametrize(
    "pattern", ["", "(", "a)|(b", "(?=x)", r"(a)\1", "a*+", "[a[b]]", "[a&&b]", "[^[a]", "a" * (MAX_PATTERN + 1), "\\"]
)
def test_what_is_no_pattern_or_another_in_java_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"[\[a]", r"\[a&&b", r"\Q[a&&b\E", "[a]b&&c", "[&]&"])
def test_brackets_and_ampersands_that_combine_nothing_are_accepted(pattern: str) -> None:
    check_pattern(pattern)


def test_a_pattern_that_is_hostile_to_others_is_quick() -> None:
    check_pattern("(a|a?)+(a*)*b")
    assert matching("(a|a?)+(a*)*b", ["a" * 249] * 1000) == []


@given(st.text("ab[]&\\^-QE().*", max_size=12))
def test_a_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        check_pattern(text)
    except ValueError:
        return
    matching(text, ["a", "b"])


@given(st.from_regex(r"[abc.*+?()|]{1,8}", fullmatch=True), st.lists(st.text("abc", max_size=5), unique=True))
def test_plain_patterns_mean_what_they_mean_elsewhere(pattern: str, names: list[str]) -> None:
    try:
        expected = re.compile(pattern)
        check_pattern(pattern)
    except (re.error, ValueError):
        return
    assert matching(pattern, names) == sorted(name for name in names if expected.fullmatch(name))


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        ([], None),
        (["in-.*", "out"], None),
        (["in-.*", "("], "source pattern '(' can't be used: invalid regular expression: missing ): ("),
        (["a"] * MAX_PATTERNS, None),
        (["a"] * (MAX_PATTERNS + 1), "it has more than 100 source patterns"),
    ],
)
def test_the_patterns_of_a_topology_are_checked(patterns: list[str], problem: str | None) -> None:
    parts = {"0": Subtopology(source_patterns=patterns[:1]), "1": Subtopology(source_patterns=patterns[1:])}
    assert why_not(Topology(parts)) == problem
