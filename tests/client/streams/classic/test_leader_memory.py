"""What a leader counts on from one rebalance to the next."""

from __future__ import annotations

from kohort.client.streams.classic.leader_memory import LeaderMemory
from kohort.client.streams.classic.led_group import Memory
from kohort.streams.tasks import TaskId

STATIC = {"i": frozenset({TaskId("0", 0)})}
FIRST = Memory(frozenset({"a"}), STATIC)
SECOND = Memory(frozenset({"c"}), STATIC)


def test_it_starts_with_nothing() -> None:
    assert LeaderMemory().recalled(None) == Memory()


def test_what_the_group_took_is_remembered() -> None:
    memory = LeaderMemory()
    memory.keep(4, FIRST)
    assert memory.recalled(4) == FIRST


def test_nobody_counts_as_told_when_the_group_didnt_take_the_assignments() -> None:
    """Not even who was told in the rebalance before: it may have had tasks again since."""
    memory = LeaderMemory()
    memory.keep(4, FIRST)
    memory.keep(5, SECOND)
    assert memory.recalled(4) == Memory(static=STATIC)


def test_nothing_is_left_when_another_has_led() -> None:
    memory = LeaderMemory()
    memory.keep(4, FIRST)
    assert memory.recalled(None) == Memory()
