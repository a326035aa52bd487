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
        ranges: what to read, one a task at most; of topics that are read together, one of each.
        tasks: whose these are.
        mergers: tasks of other subtopologies that merge rows at once, by the branch that makes the rows.
    """

    subtopology: str
    input: str
    ranges: tuple[OffsetRange, ...]
    tasks: tuple[TaskId, ...]
    mergers: Mapping[int, tuple[TaskId, ...]] = field(default_factory=dict)

    def task_of(self, read: OffsetRange) -> TaskId:
        """Whose a range is."""
        return TaskId(self.subtopology, read.partition)

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
        together: whether an epoch reads all topics of the stream, as sides of a join, and not one after the other.
        repartitioned: whether its stream is of rows that the application has sent itself, to a repartition topic.
    """

    stream: str | None
    tables: Mapping[str, str]
    others: tuple[str, ...] = ()
    together: bool = False
    repartitioned: bool = False

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
        self._streams = [(name, topics) for name, each in inputs.items() for topics in _epochs_of(each)]
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
            if (plan := self._plan(name, table, (topic,), positions, tasks, limit, until)) is not None:
                return plan
        while self._streams:
            name, topics = self._streams.pop(0)
            plan = self._plan(name, STREAM, topics, positions, tasks, limit, until)
            if plan is not None and not held(plan):
                self._due -= set(plan.tasks)  # they are called in this epoch, whichever topic it reads
                return plan
        return None

    def _plan(
        self,
        subtopology: str,
        name: str,
        topics: Sequence[str],
        positions: Mapping[TopicPartition, int],
        tasks: Sequence[TaskId],
        limit: Callable[[str], int],
        until: Mapping[TopicPartition, int],
    ) -> EpochPlan | None:
        waiting: dict[TaskId, dict[str, int]] = {}
        begun: dict[TaskId, dict[str, int]] = {}
        called: dict[TaskId, dict[str, int]] = {}
        for task in tasks:
            partitions = {topic: TopicPartition(topic, task.partition) for topic in topics}
            if task.subtopology != subtopology or not all(
                at in self._ends and at in positions for at in partitions.values()
            ):
                continue
            left = {topic: max(0, self._ends[at] - positions[at]) for topic, at in partitions.items()}
            if not any(at in until for at in partitions.values()):
                waiting[task] = left
                if name == STREAM and task in self._due:
                    called[task] = dict.fromkeys(topics, 0)
            else:
                size = {topic: until.get(at, positions[at]) - positions[at] for topic, at in partitions.items()}
                if all(size[topic] <= left[topic] for topic in topics):
                    begun[task] = size
        # One record for each at least, so that each gets on.
        totals = {task: sum(left.values()) for task, left in waiting.items()}
        shares = share(max(limit(subtopology), len(waiting)), totals)
        sizes = called | begun | {task: _divided(count, waiting[task]) for task, count in shares.items()}
        if not sizes:
            return None
        ranges = tuple(
            OffsetRange(topic, task.partition, start, start + count)
            for task, counts in sizes.items()
            for topic, count in counts.items()
            for start in (positions[TopicPartition(topic, task.partition)],)
        )
        return EpochPlan(subtopology, name, ranges, tuple(sizes))


def _epochs_of(inputs: SubtopologyInputs) -> list[tuple[str, ...]]:
    """The topics that an epoch of the stream reads, for each epoch of a round."""
    return [inputs.streams] if inputs.together and inputs.streams else [(topic,) for topic in inputs.streams]


def _divided(count: int, waiting: Mapping[str, int]) -> dict[str, int]:
    """How many of a task's records are of each topic: by what waits, so that no side of a join gets far ahead.

    One that has little to read gets on, too.
    """
    given: dict[str, int] = {}
    total = sum(waiting.values())
    for topic, left in sorted(waiting.items(), key=lambda item: item[1]):
        given[topic] = min(count, max(count * left // total, min(left, 1))) if total else 0
        count, total = count - given[topic], total - left
    return {topic: given[topic] for topic in waiting}


def lag(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """Records that are left, over all partitions whose end is known."""
    return sum(max(0, end - positions[partition]) for partition, end in ends.items() if partition in positions)
