"""The stage that has a row for each task of an epoch, so that a processor is called for those without rows, too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow as pa

from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of

OF_THE_TASK: Final = -1
"""The offset of such a row, which no record has."""


def task_rows_stage(context: StageContext) -> Stage:
    """A stage over one row: gives the partition of each of the epoch's tasks."""
    return stage_of(partial(_task_rows, context))


def _task_rows(context: StageContext, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        positions = context.request_input(0).positions
        yield pa.RecordBatch.from_arrays([pa.array(sorted(positions), pa.int32())], names=["_partition"])
