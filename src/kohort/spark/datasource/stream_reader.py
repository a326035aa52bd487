"""Reads topics as a stream of Spark: a micro-batch after the other, each an exact range of offsets.

    latestOffset    what is before is done, and goes to the consumer group, if there is one; says how far the next
                    micro-batch goes: to the end, or as far as the limit lets it
    partitions      the ranges of a micro-batch, also when Spark tries it again: same offsets, same records

Spark calls `commit` of a micro-batch only when there is another one, so that a group would always lack the last.

Spark keeps the offsets in the query's checkpoint before it runs a micro-batch, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kohort.client.types import TopicPartition
from kohort.spark.datasource.group_progress import GroupProgress
from kohort.spark.datasource.options import EARLIEST, LATEST
from kohort.spark.datasource.planning import divide_ranges, log_offsets, partitions_to_read, resolve_bound
from kohort.spark.datasource.reader import RangeInputPartition, read_partition
from kohort.spark.datasource.stream_offsets import (
    Offsets,
    batch_ranges,
    check_gone,
    from_json,
    limited_end,
    next_start,
    to_json,
)
from kohort.spark.datasource.stream_options import StreamOptions
from kohort.spark.reading import RangeReader

Kept = Mapping[str, Mapping[str, int]]


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in a Python process beside the driver, and reads them in executors, to which it is sent."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._reader: RangeReader | None = None
        self._progress: GroupProgress | None = None
        self._committed: Offsets | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._end: dict[TopicPartition, int] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return TopicStreamReader, (self._options, self._schema)  # connections stay here

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # as PySpark calls it
        """Where a query without a checkpoint begins.

        Raises:
            ValueError: a topic, partition or offset doesn't exist.
        """
        read, reader = self._options.read, self._ranges()
        existing = partitions_to_read(reader, read)
        first = log_offsets(reader, existing, EARLIEST, read.committed)
        last = log_offsets(reader, existing, LATEST, read.committed)
        return to_json(resolve_bound(reader, read, read.start, "starting", first, last))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of a micro-batch: offsets count as rows, of which there may be fewer."""
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Kept, limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the micro-batch after `start` goes.

        Raises:
            DataLossError: a partition is gone.
        """
        begun = from_json(start)
        self._commit(begun)
        end = self._ends()
        check_gone(begun, end, fail_on_data_loss=self._options.read.fail_on_data_loss)
        self._end = end
        if self._target is not None:
            end = {at: min(offset, self._target[at]) for at, offset in end.items() if at in self._target}
        if isinstance(limit, ReadMaxRows):
            new = [at for at in end if at not in begun]
            first = log_offsets(self._ranges(), new, EARLIEST, self._options.read.committed) if new else {}
            end = limited_end(next_start(begun, end, first), end, limit.max_rows)
        return to_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The ends of the partitions when the last micro-batch was planned, for the query's progress."""
        return None if self._end is None else to_json(self._end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Makes the ends of now those of the query."""
        self._target = self._ends()

    def partitions(self, start: Kept, end: Kept) -> Sequence[InputPartition]:
        """The ranges of a micro-batch, divided.

        Raises:
            DataLossError: records of them are gone.
        """
        read, reader = self._options.read, self._ranges()
        until = from_json(end)
        existing = [at for at in partitions_to_read(reader, read) if at in until]
        first = log_offsets(reader, existing, EARLIEST, read.committed)
        ranges = batch_ranges(from_json(start), until, first, fail_on_data_loss=read.fail_on_data_loss)
        return [RangeInputPartition(each) for each in divide_ranges(ranges, read.min_partitions, read.max_records)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options.read, self._schema)

    def stop(self) -> None:
        """Closes the connections. May be called twice."""
        reader, progress = self._reader, self._progress
        self._reader = self._progress = None
        if reader is not None:
            reader.close()
        if progress is not None:
            progress.close()

    def _commit(self, offsets: Offsets) -> None:
        """Commits where the query is to the group, once."""
        group_id = self._options.group_id
        if group_id is None or offsets == self._committed:
            return
        if self._progress is None:
            self._progress = GroupProgress(self._options.read.config, group_id)
        self._committed = offsets
        self._progress.commit(offsets)

    def _ranges(self) -> RangeReader:
        if self._reader is None:
            self._reader = RangeReader(self._options.read.config)
        return self._reader

    def _ends(self) -> dict[TopicPartition, int]:
        """Where the logs of all partitions that exist now end."""
        read, reader = self._options.read, self._ranges()
        return log_offsets(reader, partitions_to_read(reader, read), LATEST, read.committed)
