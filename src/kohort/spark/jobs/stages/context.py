"""What all stages have in common: where they belong, their input, their reports."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from kohort.spark.epoch import EpochStatistics
from kohort.spark.executor_rpc.client import RpcAddress, SplitInput

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

READING: Final = "rows"
STATE_LOOKUP: Final = "state lookup"
JOINING: Final = "join"
PROCESSING: Final = "process"
"""What stages are called in reports: those that read records, those that bring in what the store has, and those that
join a table, with a number, or run a processor, with its name."""

_FREEZING_TASKS: Final = (1, 3, 10)
_tasks = 0


@dataclass(frozen=True)
class StageContext:
    """Where a stage belongs.

    Attributes:
        rpc: the driver's address.
        subtopology: its id; "id/table" in an epoch of a table.
        branch: the number of the subtopology's branch.
    """

    rpc: RpcAddress
    subtopology: str
    branch: int
    splits: int

    @property
    def run(self) -> int:
        """The number of the run of the epoch, which reports name."""
        return self.rpc.request_input(self.subtopology, 0, 1).run

    def request_input(self, split: int, *, whole_partitions: bool = False, topic: str = "") -> SplitInput:
        """What a split reads of the epoch that runs; of a topic, if it is named."""
        return self.rpc.request_input(
            self.subtopology, split, self.splits, whole_partitions=whole_partitions, topic=topic
        )

    def report(self, run: int, split: int, stage: str, statistics: EpochStatistics) -> None:
        self.rpc.report(self.subtopology, run, self.branch, split, stage, statistics)

    def report_left_out(self, run: int, statistics: EpochStatistics) -> None:
        """Reports what a stage that brings in what the store has leaves out, if it does."""
        if statistics.late or statistics.dropped:
            self.report(run, task_number(), STATE_LOOKUP, statistics)


def numbered(number: int) -> str:
    """What a column of the user's is called on its way into a stage: `mapInArrow` can't take names with dots."""
    return f"_{number}"


def splits_of(batches: Iterator[pa.RecordBatch]) -> list[int]:
    """The splits that a reading stage is given: rows of `Plans._splits`.

    Spark's task number isn't it: a transform may unite a stream with itself, or coalesce it, so that a task has another
    number, or several splits.
    """
    return [split for batch in batches for split in batch.column(0).to_pylist()]


def task_number() -> int:
    """Which of the Spark stage's tasks this is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def stage_of(run: Stage) -> Stage:
    """A function over batches as a stage."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _then_freeze_garbage(run(batches))

    return stage


def _then_freeze_garbage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; after them, gives memory back, and takes what is left out of garbage collection.

    Arrow keeps what it has freed, which is most of what a worker has after a large epoch, and so does malloc with what
    the first tasks have needed once, such as for compiled code that is loaded. Spark's worker collects
    garbage after each task. That walks over all objects, modules and compiled code too: most of what a small task
    costs. What is there after the first tasks stays, so collections needn't look at it.
    """
    global _tasks
    yield from batches
    pa.default_memory_pool().release_unused()
    _tasks += 1
    if _tasks in _FREEZING_TASKS:
        gc.collect()
        gc.freeze()
        _trim_heap()


def _trim_heap() -> None:
    """Gives free memory of malloc's back, with glibc."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
