"""What is kept of groups is bounded, and of those that were looked at last."""

from __future__ import annotations

from kohort.console.last_looked import LastLooked


def look(book: LastLooked[list[int]], at: int, *group_ids: str) -> None:
    for seen in book.looked(group_ids).values():
        seen.append(at)


def test_those_looked_at_last_are_kept() -> None:
    book: LastLooked[list[int]] = LastLooked(list, 2)
    look(book, 1, "a", "b")
    look(book, 2, "a")
    look(book, 3, "c")
    assert [book.of(name) for name in "abc"] == [[1, 2], [], [3]]


def test_a_look_at_more_than_are_kept_forgets_the_first_at_its_end() -> None:
    book: LastLooked[list[int]] = LastLooked(list, 2)
    for at in (1, 2):
        look(book, at, "a", "b", "c")
    assert [book.of(name) for name in "abc"] == [[], [1, 2], [1, 2]]


def test_what_is_asked_for_without_a_look_is_not_kept() -> None:
    book: LastLooked[list[int]] = LastLooked(list, 2)
    book.of("a").append(1)
    assert book.of("a") == []
