"""What the task manager wants done, as data.

An effect that has an outcome has a number, its operation, which comes back with the outcome. An outcome
whose operation is over (a pause that nobody waits for any more, a job that was aborted) changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.epoch import EpochInput, EpochStatistics
from kohort.spark.runtime.epoch_planning import EpochPlan
from kohort.spark.runtime.epoch_states import EpochEffect
from kohort.spark.runtime.task_states import TaskEffect
from kohort.streams.tasks import TaskId


@dataclass
class Epoch:
    """An epoch, from its plan to its commit.

    Attributes:
        plan: what it reads, of which tasks.
        epoch_input: the same, as its job wants it.
        table: whose records these are; None: the stream's.
        stream_times: of its tasks (ms), by partition: before the job, then with what it read.
        merger_times: of tasks that have merged rows at once, with those (ms), by branch and partition.
        begun: what is committed before its job, if functions of the user's get its rows: see `Committed.until`.
        statistics: of the job, once it is done.
        offsets: what is committed, once the job is done.
    """

    plan: EpochPlan
    epoch_input: EpochInput
    table: str | None
    stream_times: dict[int, int | None]
    merger_times: dict[int, dict[int, int | None]] = field(default_factory=dict)
    begun: Mapping[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    statistics: EpochStatistics | None = None
    offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None

    @property
    def done_by(self) -> tuple[TaskId, ...]:
        """The tasks whose records were read, and those that merged some at once."""
        times, mergers = self.merger_times, self.plan.mergers.items()
        merged = (task for number, tasks in mergers for task in tasks if task.partition in times.get(number, {}))
        return (*self.plan.tasks, *merged)


@dataclass(frozen=True)
class ForTask:
    """To be done with a task; `seconds` says how long a pause is."""

    effect: TaskEffect
    task: TaskId
    operation: int
    seconds: float = 0.0


@dataclass(frozen=True)
class ForEpochs:
    """To be done for a chain's epochs.

    Attributes:
        chain: its id.
        seconds: how long a pause is; of PAUSE, 0 is the usual one.
        epoch: what JOB, SEND, STORE and REPORT are about.
        why: of STOP.
    """

    effect: EpochEffect
    chain: str
    operation: int
    seconds: float = 0.0
    epoch: Epoch | None = None
    why: str = ""


Effect: TypeAlias = ForTask | ForEpochs
