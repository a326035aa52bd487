"""What a chain reads next: tables before streams, and of each what was there when the round began."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kohort.client.types import TopicPartition
from kohort.spark.epoch import OffsetRange
from kohort.spark.monitoring.events import STREAM
from kohort.spark.runtime.epoch_limit import share
from kohort.streams.tasks import TaskId


@dataclass(frozen=True)
class EpochPlan:
    """An epoch to run.

    Attributes:
        subtopology: whose it is.
        input: `STREAM`, or the name of a table.
        ranges: what to read, one a task at most.
        tasks: whose these are.
        mergers: tasks of other subtopologies that merge rows at once, by the branch that makes the rows.
    """

    subtopology: str
    input: str
    ranges: tuple[OffsetRange, ...]
    tasks: tuple[TaskId, ...]
    mergers: Mapping[int, tuple[TaskId, ...]] = field(default_factory=dict)

    @property
    def all_tasks(self) -> tuple[TaskId, ...]:
        """The tasks that are in the epoch, mergers too."""
        return (*self.tasks, *(task for tasks in self.mergers.values() for task in tasks))


@dataclass(frozen=True)
class SubtopologyInputs:
    """The topics that a subtopology reads.

    Attributes:
        stream: that of its stream, or the first one; None if it has none.
        tables: those of its tables, by the tables' names.
        others: of the stream, too. A task reads its partition of each, if there is one.
    """

    stream: str | None
    tables: Mapping[str, str]
    others: tuple[str, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """All topics of its stream."""
        return () if self.stream is None else (self.stream, *self.others)

    @property
    def topics(self) -> tuple[str, ...]:
        """All of them, tables first."""
        return (*self.tables.values(), *self.streams)


class PollRound:
    """A round of epochs: each table up to where it ended when the round began, then one epoch of each stream's topic.

    So a record of a stream is joined with every record of the tables that was there before its epoch began, and a
    table that never stops growing doesn't keep streams from being read.

    Args:
        inputs: by subtopology, in the order in which streams are read.
        ends: where the partitions ended when the round began; one that isn't in it isn't there.
        due: tasks with timers that the clock has reached: they are in an epoch even if they have nothing to read.
    """

    def __init__(
        self,
        inputs: Mapping[str, SubtopologyInputs],
        ends: Mapping[TopicPartition, int],
        due: Collection[TaskId] = (),
    ) -> None:
        self._tables = [(name, table, topic) for name, each in inputs.items() for table, topic in each.tables.items()]
        self._streams = [(name, topic) for name, each in inputs.items() for topic in each.streams]
        self._ends, self._due = ends, set(due)

    def next(
        self,
        positions: Mapping[TopicPartition, int],
        tasks: Sequence[TaskId],
        limit: Callable[[str], int],
        *,
        until: Mapping[TopicPartition, int] = MappingProxyType({}),
        held: Callable[[EpochPlan], bool] = lambda _: False,
    ) -> EpochPlan | None:
        """The next epoch; None when the round is over.

        Args:
            positions: where the tasks read on.
            tasks: those that are ready. One that came after the round began has to wait for the next one.
            limit: how many records at most an epoch of a subtopology reads.
            until: where batches end that were begun before, whatever the limit: they are to be the same again.
            held: whether such an epoch of a stream isn't to be in this round.
        """
        for name, table, topic in self._tables:
            if (plan := self._plan(name, table, topic, positions, tasks, limit, until)) is not None:
                return plan
        while self._streams:
            name, topic = self._streams.pop(0)
            plan = self._plan(name, STREAM, topic, positions, tasks, limit, until)
            if plan is not None and not held(plan):
                self._due -= set(plan.tasks)  # they are called in this epoch, whichever topic it reads
                return plan
        return None

    def _plan(
        self,
        subtopology: str,
        name: str,
        topic: str,
        positions: Mapping[TopicPartition, int],
        tasks: Sequence[TaskId],
        limit: Callable[[str], int],
        until: Mapping[TopicPartition, int],
    ) -> EpochPlan | None:
        waiting: dict[TaskId, int] = {}
        begun: dict[TaskId, int] = {}
        called: dict[TaskId, int] = {}
        for task in tasks:
            partition = TopicPartition(topic, task.partition)
            if task.subtopology == subtopology and partition in self._ends and partition in positions:
                left = self._ends[partition] - positions[partition]
                if partition not in until:
                    waiting[task] = left
                    if name == STREAM and task in self._due:
                        called[task] = 0
                elif (size := until[partition] - positions[partition]) <= left:
                    begun[task] = size
        # One record for each at least, so that each gets on.
        shares = called | begun | share(max(limit(subtopology), len(waiting)), waiting)
        if not shares:
            return None
        ranges = tuple(
            OffsetRange(topic, task.partition, start, start + count)
            for task, count in shares.items()
            for start in (positions[TopicPartition(topic, task.partition)],)
        )
        return EpochPlan(subtopology, name, ranges, tuple(shares))


def lag(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """Records that are left, over all partitions whose end is known."""
    return sum(max(0, end - positions[partition]) for partition, end in ends.items() if partition in positions)
