"""A task that an instance has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kohort.client.types import TopicPartition
from kohort.spark.monitoring.events import TasksNow
from kohort.spark.program.committed_metadata import NotedFormats
from kohort.spark.runtime.task_states import TaskEvent, TaskState
from kohort.streams.tasks import Role, TaskId

_TO_RUN = frozenset({TaskState.CREATED, TaskState.SUSPENDED, TaskState.RESTORING, TaskState.RETRYING})
_GIVEN_UP = frozenset({TaskState.SUSPENDING, TaskState.ABORTING, TaskState.CANCELLING, TaskState.CLOSING})


@dataclass
class LocalTask:
    """A task, what the group wants of it, and how far it is.

    Attributes:
        id: which.
        wanted: the role that the group wants it in; None: none, it is revoked or lost.
        lost: whether others may have it already.
        owes_acknowledgement: whether the group waits to hear that it is given up.
        state: see `task_states`.
        operation: the number of the effect that is under way, or was last.
        positions: the next offset of each partition that it reads, while it runs.
        until: where the batch ends that was begun before it came here, by partition: it is to be the same again.
        formats: what its stores hold, as it is committed beside the offsets of each partition. None: nothing.
        merges_from: how far its stream must have been read before rows may be merged at once that were made after what
            is in the topic; None: that isn't known.
        stream_time: the largest event time in what it has read of its stream (ms); None: nothing yet.
        failures: how many of its epochs failed in a row.
        why, why_since: why opening or restoring it failed last, and the number of the event that said so.
    """

    id: TaskId
    wanted: Role | None
    lost: bool = False
    owes_acknowledgement: bool = False
    state: TaskState = TaskState.CREATED
    operation: int = 0
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    until: dict[TopicPartition, int] = field(default_factory=dict)
    formats: Mapping[TopicPartition, NotedFormats | None] = field(default_factory=dict)
    merges_from: int | None = None
    stream_time: int | None = None
    failures: int = 0
    why: str | None = None
    why_since: int = 0

    @property
    def wish(self) -> TaskEvent:
        """What the group wants, as an event."""
        if self.wanted is None:
            return TaskEvent.LOST if self.lost else TaskEvent.REVOKED
        return TaskEvent.WANT_ACTIVE if self.wanted is Role.ACTIVE else TaskEvent.WANT_COPY

    @property
    def is_to_run(self) -> bool:
        """Whether it will run once it is restored."""
        return self.wanted is Role.ACTIVE and self.state in _TO_RUN | _GIVEN_UP

    @property
    def reason(self) -> str | None:
        """Why it doesn't get on; None if it does."""
        if self.why is None or self.wanted is None:
            return None
        what = "can't be restored yet" if self.wanted is Role.ACTIVE else "can't follow its changelogs yet"
        return f"task {self.id} {what}: {self.why}"


def tasks_now(at: float, tasks: Iterable[LocalTask], stopped: Mapping[str, str]) -> TasksNow:
    """All tasks, for listeners."""
    tasks = sorted(tasks, key=lambda task: task.id)
    closing = [task for task in tasks if task.wanted is None or (task.owes_acknowledgement and task.state in _GIVEN_UP)]

    def those(role: Role) -> tuple[str, ...]:
        return tuple(str(task.id) for task in tasks if task.wanted is role and task not in closing)

    return TasksNow(
        at=at,
        active=those(Role.ACTIVE),
        standby=those(Role.STANDBY),
        warmup=those(Role.WARMUP),
        restoring=tuple(str(task.id) for task in tasks if task.is_to_run),
        closing=tuple(str(task.id) for task in closing),
        stopped=dict(stopped),
    )
