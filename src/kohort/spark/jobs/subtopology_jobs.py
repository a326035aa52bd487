"""A part's epochs as Spark jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kohort.client.config import ClientConfig
from kohort.spark.executor_rpc.client import RpcAddress
from kohort.spark.executor_rpc.messages import ReportRequest
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.epoch import DEAD_SCHEMA, NO_KEY, EpochInput, EpochOutput, EpochStatistics
from kohort.spark.jobs.errors import BadRecordError
from kohort.spark.jobs.plan_reuse import is_reusable, shuffle_into
from kohort.spark.jobs.plans import Plans
from kohort.spark.jobs.send_order import in_order, taken
from kohort.spark.jobs.stages.common import READING, Place
from kohort.spark.program.compiled import CompiledSubtopology, TableStore, TopicInput
from kohort.spark.program.error_policies import ErrorPolicy, Fail

SMALL_EPOCH: Final = 20_000
"""Up to so many offsets, one split reads them all: its plan needs no exchange, and so is built once."""

_log = logging.getLogger(__name__)


class SubtopologyJobs:
    """Runs the epochs of one part, one after the other, in the calling thread.

    The session must have `session_settings`. Plans that may run again are kept; the others are built for each epoch.

    Args:
        spark: the session.
        part: the part.
        line: where executors ask for work and prior values.
        servers: where executors read.
        parallelism: how many splits a large epoch has; asked for each, since executors come and go.
    """

    def __init__(
        self,
        spark: SparkSession,
        part: CompiledSubtopology,
        line: RpcServer,
        *,
        servers: ClientConfig,
        parallelism: Callable[[], int],
    ) -> None:
        self._spark = spark
        self._part = part
        self._server = line
        self._line = RpcAddress(line.address, line.token)
        self._parallelism = parallelism
        self._plans = Plans(spark, part, servers)
        self._kept: dict[tuple[str, int, int], DataFrame] = {}
        self._once: set[tuple[str, int, int]] = set()
        self._group = f"kohort-{part.id}-{id(self):x}"

    def run(self, work: EpochInput) -> EpochOutput:
        """An epoch of the part's input.

        Raises:
            BadRecordError: a record can't be read, and the source says `Fail`.
            ProgramError: the program can't run.
            Exception: whatever Spark says of a job that failed or was cancelled.
        """
        lane = self._part.id
        rows, reports = self._run(
            lane, work, len(self._part.branches), lambda number, place: self._plans.branch(number, place)
        )
        read = _summed(reports)
        if isinstance(self._part.input, TopicInput):
            _judge(read, self._part.input.source.on_error)
        ends = [branch.terminal for branch in self._part.branches]
        return EpochOutput({number: in_order(taken(made, ends[number], read)) for number, made in rows.items()}, read)

    def run_table(self, table: TableStore, work: EpochInput) -> EpochOutput:
        """An epoch of a table's topic: rows of its store in `rows[0]`, the last of each key.

        Records without a key are left out, and counted as dropped: no store or changelog could take them.

        Raises:
            as `run`.
        """
        lane = f"{self._part.id}/{table.name}"
        rows, reports = self._run(lane, work, 1, lambda _, place: self._plans.table(table, place))
        read = _summed(reports)
        _judge(read, table.source.on_error)
        keyed = in_order(rows[0].filter(rows[0]["key"].is_valid()))
        read.drop(NO_KEY, rows[0].num_rows - keyed.num_rows)
        return EpochOutput({0: last_of_each_key(keyed)}, read)

    def cancel(self) -> None:
        """End the job that runs, if any, from another thread; `run` raises what Spark says of it."""
        self._spark.sparkContext.cancelJobGroup(self._group)

    def _run(
        self, lane: str, work: EpochInput, branches: int, build: Callable[[int, Place], DataFrame]
    ) -> tuple[dict[int, pa.Table], list[tuple[ReportRequest, pa.RecordBatch | None]]]:
        splits = 1 if work.length <= SMALL_EPOCH else self._many()
        run = self._server.begin_epoch(lane, work)
        reports: list[tuple[ReportRequest, pa.RecordBatch | None]] = []
        try:
            self._spark.sparkContext.setJobGroup(self._group, f"part {lane}, epoch {work.epoch}", True)
            rows = {}
            for number in range(branches):
                frame = self._plan(lane, number, splits, build)
                rows[number] = frame.toArrow()
        finally:
            reports = self._server.end_epoch(lane, run)
        return rows, reports

    def _many(self) -> int:
        """The splits of a large epoch, for which its shuffles, if it has any, are made as wide."""
        splits = max(self._parallelism(), 1)
        shuffle_into(self._spark, splits)
        return splits

    def _plan(self, lane: str, number: int, splits: int, build: Callable[[int, Place], DataFrame]) -> DataFrame:
        name = (lane, number, splits)
        if name in self._kept:
            return self._kept[name]
        frame = build(number, Place(self._line, lane, number, splits))
        if name not in self._once:
            if is_reusable(frame):
                self._kept[name] = frame
            else:
                self._once.add(name)
                _log.debug("part %s, branch %d, %d splits: its plan is built for each epoch", lane, number, splits)
        return frame


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key of a partition, in the order of those rows."""
    rows = rows.combine_chunks()
    numbers = pa.array(np.arange(len(rows), dtype=np.int64))
    numbered = rows.select(["partition", "key"]).append_column("row", numbers)
    last = numbered.group_by(["partition", "key"]).aggregate([("row", "max")]).column("row_max")
    return rows.take(last.combine_chunks().sort())


def _summed(reports: list[tuple[ReportRequest, pa.RecordBatch | None]]) -> EpochStatistics:
    """What all splits read. Branches read the same, so one's counts are it; what each leaves out later is its own.

    It isn't always the first branch's: Spark leaves out to read where it sees that nothing comes of it.
    """
    read = EpochStatistics()
    dead = []
    readers = [report.branch for report, _ in reports if report.stage == READING]
    for report, records in reports:
        read.late += report.late
        if report.stage == READING and report.branch != min(readers):
            continue
        for reason, count in report.reasons.items():
            read.drop(reason, count)
        if report.stage != READING:
            continue
        read.records += report.records
        read.bytes += report.bytes
        for partition, time in report.max_times.items():
            read.max_times[partition] = max(time, read.max_times.get(partition, time))
        if records is not None:
            dead.append(records)
    read.dead = pa.Table.from_batches(dead, schema=DEAD_SCHEMA)
    return read


def _judge(read: EpochStatistics, policy: ErrorPolicy) -> None:
    """Raise the first bad record, if that is the policy."""
    if isinstance(policy, Fail) and read.dead.num_rows:
        first = read.dead.slice(0, 1).to_pylist()[0]
        raise BadRecordError(first["topic"], first["partition"], first["offset"], first["error"])
