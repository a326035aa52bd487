"""Whose transactions are ended."""

from __future__ import annotations

from kohort.spark.runtime.dangling_transactions import dangling, transactional_id


def test_whose_transactions_are_left() -> None:
    one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    mine, theirs = transactional_id("app", one, "0"), transactional_id("app", two, "1")
    others = [f"app-more-{one}-0", "app-0", transactional_id("other", two, "0"), f"app-{one}"]
    assert dangling("app", [mine, theirs, *others], [one]) == [theirs]
    assert dangling("app", [mine, theirs, *others], [one, two]) == []
    assert dangling("a.p", [transactional_id("axp", two, "0")], []) == []
