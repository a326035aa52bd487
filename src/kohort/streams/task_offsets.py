"""How far the copies of tasks' state are, and when the group is to hear of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskOffset
from kohort.streams.tasks import TaskId

__all__ = ["TaskOffsets"]


class TaskOffsets:
    """What the application reported, and what of that the group knows.

    Attributes:
        interval_ms: how often the group wants to hear.
        acceptable_lag: records that a warm-up may lack and still take its task over.
    """

    def __init__(self) -> None:
        self.interval_ms = 60_000
        self.acceptable_lag = 0
        self._offsets: dict[TaskId, int] = {}
        self._ends: dict[TaskId, int] = {}
        self._said: tuple[dict[TaskId, int], dict[TaskId, int]] | None = None
        self._said_at = 0

    def report(self, offsets: Mapping[TaskId, int], ends: Mapping[TaskId, int]) -> None:
        """What holds now."""
        self._offsets, self._ends = dict(offsets), dict(ends)

    def forget_said(self) -> None:
        """The group may know nothing of what was said."""
        self._said = None

    def caught_up(self, warmups: Collection[TaskId]) -> bool:
        """Whether one of the warm-ups may take its task over, and the group doesn't know."""
        said = ({}, {}) if self._said is None else self._said
        return any(self._near(task, self._offsets, self._ends) and not self._near(task, *said) for task in warmups)

    def _near(self, task: TaskId, offsets: Mapping[TaskId, int], ends: Mapping[TaskId, int]) -> bool:
        offset, end = offsets.get(task), ends.get(task)
        return offset is not None and end is not None and offset >= 0 and end - offset <= self.acceptable_lag

    def say(self, request: StreamsGroupHeartbeatRequest, now: int, *, at_once: bool) -> None:
        """Put it into a heartbeat, if the group doesn't know it and its time has come, or may hear it `at_once`."""
        current = self._offsets, self._ends
        if self._said is not None and (
            self._said == current or not (at_once or now >= self._said_at + self.interval_ms)
        ):
            return
        request.task_offsets, request.task_end_offsets = map(_listed, current)
        self._said, self._said_at = current, now


def _listed(offsets: Mapping[TaskId, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=task.subtopology, partition=task.partition, offset=offset)
        for task, offset in sorted(offsets.items())
    ]
