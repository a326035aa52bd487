"""What a leader counts on from one rebalance to the next."""

from __future__ import annotations

from kohort.client.streams.classic.leader_memory import LeaderMemory
from kohort.streams.tasks import TaskId

STATIC = {"i": frozenset({TaskId("0", 0)})}


def test_it_starts_with_nothing() -> None:
    assert LeaderMemory().recalled(1) == {}


def test_it_remembers_the_rebalance_before() -> None:
    memory = LeaderMemory()
    memory.keep(4, STATIC)
    assert memory.recalled(5) == STATIC


def test_nothing_is_left_when_another_has_led() -> None:
    memory = LeaderMemory()
    memory.keep(4, STATIC)
    assert memory.recalled(6) == {}
