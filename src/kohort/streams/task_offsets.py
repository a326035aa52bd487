"""How far copies of tasks are, as members report it. Soft state: after a restart, members report again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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


def records_left(offset: int | None, end: int | None) -> int | None:
    """Records that a copy has yet to restore, by what its member reported; None where that isn't known.

    Args:
        offset: of the copy, summed over its changelog's partitions; -2 says that it is at their end.
        end: of the changelog, as the same member saw it.
    """
    if offset == _LATEST:
        return 0
    if offset is None or end is None or not (0 <= offset < _OVERFLOWN and 0 <= end < _OVERFLOWN):
        return None
    return max(0, end - offset)


@dataclass(frozen=True, slots=True)
class _Report:
    """What a member reported last; only numbers that mean an offset."""

    process: str
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    ends: Mapping[TaskId, int] = field(default_factory=dict)


class TaskOffsets:
    """What the members of a group report of their tasks' changelogs, summed over a task's changelog partitions.

    An immutable value. An offset of -2 is Kafka Streams' way of saying that the copy is at the end of its changelog;
    other negative numbers, and the largest int64, mean that the offset isn't known.
    """

    def __init__(self, reports: Mapping[str, _Report] | None = None) -> None:
        self._reports: Mapping[str, _Report] = {} if reports is None else reports

    @classmethod
    def of_processes(cls, processes: Mapping[str, str]) -> TaskOffsets:
        """Returns those of members that have reported that they have nothing, by member with its process."""
        return cls({member: _Report(process) for member, process in processes.items()})

    def report(
        self, member: str, process: str, offsets: Mapping[TaskId, int] | None, ends: Mapping[TaskId, int] | None
    ) -> TaskOffsets:
        """Takes a member's report in place of its last one; None for what is as before, or was never reported."""
        if offsets is None and ends is None:
            return self
        report = replace(self._reports.get(member, _Report(process)), process=process)
        if offsets is not None:
            report = replace(report, offsets=_known(offsets, least=_LATEST))
        if ends is not None:
            report = replace(report, ends=_known(ends, least=0))
        return TaskOffsets({**self._reports, member: report})

    def forget(self, *members: str) -> TaskOffsets:
        """Forgets members, which aren't in the group any more."""
        if self._reports.keys().isdisjoint(members):
            return self
        return TaskOffsets({member: report for member, report in self._reports.items() if member not in members})

    def reports(self, member: str) -> bool:
        """Whether the member ever reported, even if only that it has nothing. Kafka Streams before 4.4 doesn't."""
        return member in self._reports

    def offsets_of(self, member: str) -> Mapping[TaskId, int]:
        """What a member reported of its copies, by task."""
        return self._reports[member].offsets if member in self._reports else {}

    def ends_of(self, member: str) -> Mapping[TaskId, int]:
        """What a member reported of the ends of changelogs, by task."""
        return self._reports[member].ends if member in self._reports else {}

    @cached_property
    def ends(self) -> Mapping[TaskId, int]:
        """Records of each task's whole changelog: the largest number that is reported."""
        largest: dict[TaskId, int] = {}
        for report in self._reports.values():
            for task, end in report.ends.items():
                largest[task] = max(end, largest.get(task, 0))
        return largest

    @cached_property
    def _with_offset(self) -> Mapping[TaskId, list[str]]:
        """The members that reported an offset, by task."""
        members: dict[TaskId, list[str]] = {}
        for member, report in self._reports.items():
            for task in report.offsets:
                members.setdefault(task, []).append(member)
        return members

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
            report = self._reports[member]
            if report.process != process:
                continue
            offset = report.offsets[task]
            end = report.ends.get(task) if tails(member, task) else None
            if end is None:
                end = self.ends.get(task)
            if offset == _LATEST:
                lags.append(0)
            elif end is not None:
                lags.append(max(end - offset, 0))
        return min(lags, default=None)

    def lags(self, tails: Callable[[str, TaskId], bool]) -> dict[tuple[str, TaskId], int]:
        """All lags that are known, by process and task; `tails` as in `lag`."""
        known = {}
        for task, members in self._with_offset.items():
            for process in {self._reports[member].process for member in members}:
                lag = self.lag(task, process, tails)
                if lag is not None:
                    known[process, task] = lag
        return known


def _known(report: Mapping[TaskId, int], least: int) -> dict[TaskId, int]:
    """Returns the numbers that mean an offset."""
    return {task: offset for task, offset in report.items() if offset == least or 0 <= offset < _OVERFLOWN}
