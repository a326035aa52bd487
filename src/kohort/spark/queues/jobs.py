"""A queue's epochs as Spark jobs: rows of Arrow in, the result's rows out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column

from kohort.spark.jobs.column_encoding import shown_object
from kohort.spark.jobs.key_encoding import key_text
from kohort.spark.program.compiled import Route
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.records_out import JSON, key_column, value_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class QueueJobs:
    """Runs the jobs of a queue, one after the other, in the calling thread. The session has `session_settings`.

    The result comes to the driver: it has room for what is made of `max_records` records.
    """

    def __init__(self, spark: SparkSession, queue: CompiledQueue) -> None:
        self._spark = spark
        self._queue = queue
        self._job_group = f"kohort-queue-{queue.topic}-{id(self):x}"

    def run(self, rows: pa.Table) -> pa.Table:
        """The result of rows: the columns of `CompiledQueue.result`, then keys and JSON of what is written.

        Raises:
            Exception: whatever Spark says of a job that failed or was cancelled.
        """
        self._spark.sparkContext.setJobGroup(self._job_group, f"queue {self._queue.topic}", True)
        made = self._queue.applied(self._spark.createDataFrame(rows, self._queue.rows))
        return made.select("*", *self._written(made)).toArrow()

    def call(self, function: Callable[[DataFrame, str], object], rows: pa.Table, batch_id: str) -> None:
        """Gives a function of the user's the result's rows.

        Raises:
            Exception: whatever it raises.
        """
        self._spark.sparkContext.setJobGroup(self._job_group, f"queue {self._queue.topic}", True)
        result = self._queue.result
        function(self._spark.createDataFrame(rows.select(result.names), result), batch_id)

    def cancel(self) -> None:
        """Cancels the job that runs, if any, from another thread."""
        self._spark.sparkContext.cancelJobGroup(self._job_group)

    def _written(self, made: DataFrame) -> list[Column]:
        """Keys and JSON, which Spark makes as it does of streams."""
        columns: list[Column] = []
        for number, output in enumerate(self._queue.outputs):
            if output.key is not None:
                columns.append(key_text(output.key, Route.TEXT).alias(key_column(number)))
            if output.format == JSON:
                columns.append(shown_object(made, output.columns).alias(value_column(number)))
        return columns
