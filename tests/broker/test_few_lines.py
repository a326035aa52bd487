from __future__ import annotations

from kohort.broker.few_lines import WINDOW_SECONDS, FewLines


def test_each_kind_once_in_a_while_with_how_many_were_left_out() -> None:
    now = 5.0
    lines = FewLines(10, 100, lambda: now)
    assert [lines.take("a", kind) for kind in ("x", "x", "y", "x", "y")] == [0, None, 1, None, None]
    now += WINDOW_SECONDS
    assert [lines.take("a", kind) for kind in ("x", "y", "x")] == [2, 0, None]


def test_some_of_each_address_and_some_in_all() -> None:
    lines = FewLines(3, 10, lambda: 0.0)
    asked = [(str(host), kind) for host in range(100) for kind in range(100)]
    told = [each for each in asked if lines.take(each[0], each) is not None]
    assert told == [("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1), ("1", 2), ("2", 0), ("2", 1), ("2", 2), ("3", 0)]


def test_nobody_is_silenced_by_another_address() -> None:
    lines = FewLines(3, 10, lambda: 0.0)
    for kind in range(1000):
        lines.take("loud", ("loud", kind))
    assert lines.take("quiet", "once") == 997
