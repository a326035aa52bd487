"""What a leader of a classic streams group remembers, once its group has got to know it."""

from __future__ import annotations

from kohort.client.streams.classic.led_group import Memory


class LeaderMemory:
    """The memory of the last rebalance.

    Assignments that the group didn't take tell nobody anything. Then nobody counts as told: the last memory may be of
    members that had tasks again since.
    """

    def __init__(self) -> None:
        self._memory, self._generation = Memory(), 0

    def recalled(self, told: int | None) -> Memory:
        """Returns what to hand to `leader.lead`.

        Args:
            told: the last generation whose assignments the group took from this member, all since led by it
                (`ClassicMembership.told`); None if another may have led.
        """
        if told is None:
            return Memory()
        return self._memory if told == self._generation else Memory(static=self._memory.static)

    def keep(self, generation: int, memory: Memory) -> None:
        """Keeps what a placement says, which is to be sent in a generation."""
        self._memory, self._generation = memory, generation
