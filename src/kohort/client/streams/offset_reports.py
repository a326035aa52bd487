"""How far the copies of tasks' state are, and when a heartbeat reports it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskOffset
from kohort.streams.task_offsets import task_offsets
from kohort.streams.tasks import TaskId


class OffsetReports:
    """The task offsets that the application has, and those that the group knows.

    Attributes:
        interval_ms: the group's `task.offset.interval.ms`: how often it wants a report.
        acceptable_lag: its `acceptable.recovery.lag`: records that a warm-up may lack and still take its task over.
    """

    def __init__(self) -> None:
        self.interval_ms = 60_000
        self.acceptable_lag = 0
        self._offsets: dict[TaskId, int] = {}
        self._ends: dict[TaskId, int] = {}
        self._reported: tuple[dict[TaskId, int], dict[TaskId, int]] | None = None
        self._reported_at = 0

    def update(self, offsets: Mapping[TaskId, int], ends: Mapping[TaskId, int]) -> None:
        """Takes the offsets that hold now."""
        self._offsets, self._ends = dict(offsets), dict(ends)

    def forget_reported(self) -> None:
        """The group may know nothing of what was reported."""
        self._reported = None

    def caught_up(self, warmups: Collection[TaskId]) -> bool:
        """Whether one of the warm-ups may take its task over, and the group doesn't know."""
        known = self._known()
        return any(self._near(task, self._offsets, self._ends) and not self._near(task, *known) for task in warmups)

    def restores_changed(self, active: Collection[TaskId]) -> bool:
        """Whether one of the active tasks is being restored and the group doesn't know, or isn't any more."""
        known = self._known()
        return any(_lacks(task, self._offsets, self._ends) != _lacks(task, *known) for task in active)

    def _known(self) -> tuple[Mapping[TaskId, int], Mapping[TaskId, int]]:
        return ({}, {}) if self._reported is None else self._reported

    def _near(self, task: TaskId, offsets: Mapping[TaskId, int], ends: Mapping[TaskId, int]) -> bool:
        offset, end = offsets.get(task), ends.get(task)
        return offset is not None and end is not None and offset >= 0 and end - offset <= self.acceptable_lag

    def report(self) -> tuple[Mapping[TaskId, int], Mapping[TaskId, int]]:
        """Returns the offsets and the ends of changelogs, which count as known to the group then."""
        self._reported = self._offsets, self._ends
        return self._reported

    def add_to(self, request: StreamsGroupHeartbeatRequest, now: int, *, at_once: bool) -> None:
        """Puts the offsets into a heartbeat if they are new to the group, and a report is due or allowed `at_once`."""
        current = self._offsets, self._ends
        if self._reported is not None and (
            self._reported == current or not (at_once or now >= self._reported_at + self.interval_ms)
        ):
            return
        request.task_offsets, request.task_end_offsets = (task_offsets(TaskOffset, each) for each in current)
        self._reported, self._reported_at = current, now


def _lacks(task: TaskId, offsets: Mapping[TaskId, int], ends: Mapping[TaskId, int]) -> bool:
    return task in offsets and task in ends and offsets[task] < ends[task]
