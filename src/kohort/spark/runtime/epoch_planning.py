"""What a subtopology reads next: tables before the stream, and of each what was there when the round began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kohort.client.types import TopicPartition
from kohort.spark.epoch import OffsetRange
from kohort.spark.monitoring.events import STREAM
from kohort.spark.runtime.epoch_limit import share
from kohort.streams.tasks import TaskId


@dataclass(frozen=True)
class EpochPlan:
    """An epoch to run.

    Attributes:
        input: `STREAM`, or the name of a table.
        ranges: what to read, one a task at most.
        tasks: whose these are.
    """

    input: str
    ranges: tuple[OffsetRange, ...]
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True)
class SubtopologyInputs:
    """The topics that a subtopology reads.

    Attributes:
        stream: that of its stream; None if it has none.
        tables: those of its tables, by the tables' names.
    """

    stream: str | None
    tables: Mapping[str, str]

    @property
    def topics(self) -> tuple[str, ...]:
        """All of them, tables first."""
        return (*self.tables.values(), *((self.stream,) if self.stream is not None else ()))

    def partitions(self, tasks: Iterable[TaskId]) -> set[TopicPartition]:
        return {TopicPartition(topic, task.partition) for task in tasks for topic in self.topics}


class PollRound:
    """A round of epochs: each table up to where it ended when the round began, then one epoch of the stream.

    So a record of the stream is joined with every record of the tables that was there before its epoch began, and a
    table that never stops growing doesn't keep the stream from being read.

    Args:
        ends: where the partitions ended when the round began; one that isn't in it isn't there.
    """

    def __init__(self, inputs: SubtopologyInputs, ends: Mapping[TopicPartition, int]) -> None:
        self._inputs, self._ends = inputs, ends
        self._streamed = False

    def next(self, positions: Mapping[TopicPartition, int], tasks: Sequence[TaskId], limit: int) -> EpochPlan | None:
        """The next epoch; None when the round is over.

        Args:
            positions: where the tasks read on.
            tasks: those that are ready. One that came after the round began has to wait for the next one.
            limit: records at most.
        """
        for name, topic in self._inputs.tables.items():
            if (plan := self._plan(name, topic, positions, tasks, limit)) is not None:
                return plan
        if self._streamed or self._inputs.stream is None:
            return None
        self._streamed = True
        return self._plan(STREAM, self._inputs.stream, positions, tasks, limit)

    def _plan(
        self, name: str, topic: str, positions: Mapping[TopicPartition, int], tasks: Sequence[TaskId], limit: int
    ) -> EpochPlan | None:
        waiting: dict[TaskId, int] = {}
        for task in tasks:
            partition = TopicPartition(topic, task.partition)
            if partition in self._ends and partition in positions:
                waiting[task] = self._ends[partition] - positions[partition]
        shares = share(max(limit, len(waiting)), waiting)  # one record for each at least, so that each gets on
        if not shares:
            return None
        ranges = tuple(
            OffsetRange(topic, task.partition, start, start + count)
            for task, count in shares.items()
            for start in (positions[TopicPartition(topic, task.partition)],)
        )
        return EpochPlan(name, ranges, tuple(shares))


def lag(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """Records that are left, over all partitions whose end is known."""
    return sum(max(0, end - positions[partition]) for partition, end in ends.items() if partition in positions)
