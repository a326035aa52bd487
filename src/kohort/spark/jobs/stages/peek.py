"""The stage in which a function of the user's sees rows go by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa

from kohort.spark.jobs.stages.context import Stage, stage_of


def peek_stage(function: Callable[[Any], object], hidden: Collection[str]) -> Stage:
    """A stage that passes rows on as they are. The function gets each batch as a table, without `hidden` columns."""

    def peek(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                function(table.select([name for name in table.column_names if name not in hidden]))
            yield batch

    return stage_of(peek)
