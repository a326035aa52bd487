"""What a leader of a classic streams group remembers from one rebalance to the next."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.streams.tasks import TaskId


class LeaderMemory:
    """The active tasks of static members, as of the last rebalance that this member led.

    Another leader knows nothing of them, and can do without.
    """

    def __init__(self) -> None:
        self._static: Mapping[str, frozenset[TaskId]] = {}
        self._generation = 0

    def recalled(self, generation: int) -> Mapping[str, frozenset[TaskId]]:
        """Returns what to hand to `leader.lead` in a generation: nothing if another led one since."""
        return self._static if generation == self._generation + 1 else {}

    def keep(self, generation: int, static: Mapping[str, frozenset[TaskId]]) -> None:
        """Keeps what `leader.lead` says in a generation."""
        self._static, self._generation = static, generation
