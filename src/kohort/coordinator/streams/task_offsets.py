"""How far members say that their copies of tasks have got; soft state, which members tell anew after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final

from kohort.coordinator.placement.model import Task
from kohort.protocol.messages.streams_group_heartbeat import TaskOffset

__all__ = ["TaskOffsets"]

_LATEST: Final = -2
_OVERFLOWN: Final = 2**63 - 1


class TaskOffsets:
    """What the members of a group report of their tasks' changelogs, summed over a task's changelog partitions.

    An offset of -2 is Kafka Streams' way of saying that the copy is at the end of its changelog; other negative
    numbers, and the largest there is, say nothing.
    """

    def __init__(self) -> None:
        self._processes: dict[str, str] = {}
        self._offsets: dict[str, dict[Task, int]] = {}
        self._ends: dict[str, dict[Task, int]] = {}
        self._with_offset: dict[Task, set[str]] = {}
        self._with_end: dict[Task, set[str]] = {}

    def report(
        self, member: str, process: str, offsets: Iterable[TaskOffset] | None, ends: Iterable[TaskOffset] | None
    ) -> None:
        """Take a member's report in place of what it reported before; None for what is as before, or never told."""
        if offsets is None and ends is None:
            return
        self._processes[member] = process
        if offsets is not None:
            _replace(self._offsets, self._with_offset, member, offsets, _LATEST)
        if ends is not None:
            _replace(self._ends, self._with_end, member, ends, 0)

    def forget(self, member: str) -> None:
        """A member isn't in the group any more."""
        if self._processes.pop(member, None) is not None:
            _replace(self._offsets, self._with_offset, member, (), _LATEST)
            _replace(self._ends, self._with_end, member, (), 0)
            del self._offsets[member], self._ends[member]

    def reports(self, member: str) -> bool:
        """Whether the member ever reported, be it that it has nothing. Kafka Streams before 4.4 doesn't."""
        return member in self._processes

    def members(self) -> Set[str]:
        """Who ever reported."""
        return self._processes.keys()

    def offsets_of(self, member: str) -> Mapping[Task, int]:
        """What a member reported of its copies, by task."""
        return self._offsets.get(member, {})

    def ends_of(self, member: str) -> Mapping[Task, int]:
        """What a member reported of the ends of changelogs, by task."""
        return self._ends.get(member, {})

    def end(self, task: Task) -> int | None:
        """Records of the task's whole changelog: the largest number that anybody reports; None if nobody does."""
        return max((self._ends[member][task] for member in self._with_end.get(task, ())), default=None)

    def lag(self, task: Task, process: str, tails: Callable[[str, Task], bool]) -> int | None:
        """Records that the state of the task on a process's disk lags behind; None where that isn't known.

        Members of a process share its disk: the one that is furthest counts. A copy that a member tails is compared
        with the end that the member itself reports, since both numbers are of one moment: against what others have
        seen since, a copy that is on the heels of a busy changelog would never look caught up. The end that was seen
        by one who only has the state on disk is worth nothing, so there the largest end counts that anybody reports.

        Args:
            task: which task.
            process: whose copy.
            tails: whether a member has the task now, in whatever role.
        """
        lags = []
        for member in self._with_offset.get(task, ()):
            if self._processes[member] != process:
                continue
            offset = self._offsets[member][task]
            end = self._ends.get(member, {}).get(task) if tails(member, task) else None
            if end is None:
                end = self.end(task)
            if offset == _LATEST:
                lags.append(0)
            elif end is not None:
                lags.append(max(end - offset, 0))
        return min(lags, default=None)

    def lags(self, tails: Callable[[str, Task], bool]) -> dict[tuple[str, Task], int]:
        """All lags that are known, by process and task; `tails` as in `lag`."""
        known = {}
        for task, members in self._with_offset.items():
            for process in {self._processes[member] for member in members}:
                lag = self.lag(task, process, tails)
                if lag is not None:
                    known[process, task] = lag
        return known

    def ends(self) -> dict[Task, int]:
        """The ends of all changelogs, where they are known."""
        return {task: end for task in self._with_end if (end := self.end(task)) is not None}


def _replace(
    numbers: dict[str, dict[Task, int]],
    members: dict[Task, set[str]],
    member: str,
    report: Iterable[TaskOffset],
    least: int,
) -> None:
    """Store a member's numbers, and who has one for a task."""
    new = {
        Task(told.subtopology_id, told.partition): told.offset
        for told in report
        if told.offset >= 0 or told.offset == least
        if told.offset != _OVERFLOWN
    }
    for task in numbers.get(member, {}).keys() - new.keys():
        members[task].discard(member)
        if not members[task]:
            del members[task]
    for task in new:
        members.setdefault(task, set()).add(member)
    numbers[member] = new
