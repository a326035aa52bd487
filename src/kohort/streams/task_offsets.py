"""How far copies of tasks are, as members report it. Soft state: after a restart, members report again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final, Protocol, TypeVar

from kohort.streams.tasks import TaskId

T = TypeVar("T")

_LATEST: Final = -2
_OVERFLOWN: Final = 2**63 - 1


class TaskOffset(Protocol):
    """The offset of a task, as messages have it."""

    subtopology_id: str
    partition: int
    offset: int


def offsets_by_task(listed: Iterable[TaskOffset]) -> dict[TaskId, int]:
    """Returns the offsets that a message lists."""
    return {TaskId(each.subtopology_id, each.partition): each.offset for each in listed}


def task_offsets(kind: Callable[..., T], offsets: Mapping[TaskId, int]) -> list[T]:
    """Returns offsets as messages list them, sorted; `kind` is the message's class for `TaskOffset`."""
    return [
        kind(subtopology_id=task.subtopology, partition=task.partition, offset=offsets[task])
        for task in sorted(offsets)
    ]


class TaskOffsets:
    """What the members of a group report of their tasks' changelogs, summed over a task's changelog partitions.

    An offset of -2 is Kafka Streams' way of saying that the copy is at the end of its changelog; other negative
    numbers, and the largest int64, mean that the offset isn't known.
    """

    def __init__(self) -> None:
        self._processes: dict[str, str] = {}
        self._offsets: dict[str, dict[TaskId, int]] = {}
        self._ends: dict[str, dict[TaskId, int]] = {}
        self._with_offset: dict[TaskId, set[str]] = {}
        self._with_end: dict[TaskId, set[str]] = {}

    def report(
        self, member: str, process: str, offsets: Mapping[TaskId, int] | None, ends: Mapping[TaskId, int] | None
    ) -> None:
        """Takes a member's report in place of its last one; None for what is as before, or was never reported."""
        if offsets is None and ends is None:
            return
        self._processes[member] = process
        if offsets is not None:
            _replace(self._offsets, self._with_offset, member, offsets, _LATEST)
        if ends is not None:
            _replace(self._ends, self._with_end, member, ends, 0)

    def forget(self, member: str) -> None:
        """Forgets a member, which isn't in the group any more."""
        if self._processes.pop(member, None) is not None:
            _replace(self._offsets, self._with_offset, member, {}, _LATEST)
            _replace(self._ends, self._with_end, member, {}, 0)
            del self._offsets[member], self._ends[member]

    def reports(self, member: str) -> bool:
        """Whether the member ever reported, even if only that it has nothing. Kafka Streams before 4.4 doesn't."""
        return member in self._processes

    def members(self) -> Set[str]:
        """The members that ever reported."""
        return self._processes.keys()

    def offsets_of(self, member: str) -> Mapping[TaskId, int]:
        """What a member reported of its copies, by task."""
        return self._offsets.get(member, {})

    def ends_of(self, member: str) -> Mapping[TaskId, int]:
        """What a member reported of the ends of changelogs, by task."""
        return self._ends.get(member, {})

    def end(self, task: TaskId) -> int | None:
        """Records of the task's whole changelog: the largest number that is reported; None if none is."""
        return max((self._ends[member][task] for member in self._with_end.get(task, ())), default=None)

    def lag(self, task: TaskId, process: str, tails: Callable[[str, TaskId], bool]) -> int | None:
        """Records that the state of the task on a process's disk lags behind; None where that isn't known.

        Members of a process share its disk: the one that is furthest counts. A copy that a member tails is compared
        with the end that the member itself reports, since both numbers are of one moment: against what others have
        seen since, a copy that is on the heels of a busy changelog would never look caught up. The end that a member
        saw that only has the state on disk is worth nothing, so there the largest reported end counts.

        Args:
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

    def lags(self, tails: Callable[[str, TaskId], bool]) -> dict[tuple[str, TaskId], int]:
        """All lags that are known, by process and task; `tails` as in `lag`."""
        known = {}
        for task, members in self._with_offset.items():
            for process in {self._processes[member] for member in members}:
                lag = self.lag(task, process, tails)
                if lag is not None:
                    known[process, task] = lag
        return known

    def ends(self) -> dict[TaskId, int]:
        """The ends of all changelogs, where they are known."""
        return {task: end for task in self._with_end if (end := self.end(task)) is not None}


def _replace(
    numbers: dict[str, dict[TaskId, int]],
    members: dict[TaskId, set[str]],
    member: str,
    report: Mapping[TaskId, int],
    least: int,
) -> None:
    """Stores a member's numbers, and which members have one for a task."""
    new = {task: offset for task, offset in report.items() if offset >= 0 or offset == least if offset != _OVERFLOWN}
    for task in numbers.get(member, {}).keys() - new.keys():
        members[task].discard(member)
        if not members[task]:
            del members[task]
    for task in new:
        members.setdefault(task, set()).add(member)
    numbers[member] = new
