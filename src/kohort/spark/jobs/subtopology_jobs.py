"""A subtopology's epochs as Spark jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from kohort.client.config import ClientConfig
from kohort.spark.epoch import DEAD_SCHEMA, EpochInput, EpochOutput, EpochStatistics, Mergers
from kohort.spark.executor_rpc.client import RpcAddress
from kohort.spark.executor_rpc.messages import ReportRequest
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.errors import BadRecordError
from kohort.spark.jobs.plan_reuse import is_reusable, is_the_same_each_time, reads_input_alone
from kohort.spark.jobs.plans import Plans
from kohort.spark.jobs.send_order import in_common_order, in_order
from kohort.spark.jobs.session_settings import shuffle_into
from kohort.spark.jobs.stages.context import PROCESSING, READING, StageContext
from kohort.spark.jobs.stages.late_partials import drop_outside_windows
from kohort.spark.jobs.stages.pack_rows import unpack_rows
from kohort.spark.jobs.stages.stream_time import largest_times
from kohort.spark.program.compiled import (
    CompiledSubtopology,
    SidesInput,
    SourceSpec,
    TableStore,
    ToFunction,
    ToPartials,
    ToRows,
)
from kohort.spark.program.error_policies import Fail
from kohort.spark.reading.secrets import without_secrets

SMALL_EPOCH: Final = 20_000
"""Up to so many offsets, one split reads them all: its plan needs no exchange, and so is built once."""

_log = logging.getLogger(__name__)


Build = Callable[[int, StageContext], DataFrame]
"""Builds the plan of a branch, by its number."""


class PlanKey(NamedTuple):
    """What a plan is for: `name` is the subtopology's id, or "id/table"; `merging`, whether there are mergers."""

    name: str
    branch: int
    splits: int
    merging: bool


class SubtopologyJobs:
    """Runs the epochs of one subtopology, one after the other, in the calling thread.

    The session must have `session_settings`. Plans that may run again are kept; the others are built for each epoch.

    Args:
        rpc_server: where executors request their input and prior values.
        servers: where executors read; `rpc_server` hands them the passwords in it.
        parallelism: how many splits a large epoch has; asked for each, since executors come and go.
    """

    def __init__(
        self,
        spark: SparkSession,
        subtopology: CompiledSubtopology,
        rpc_server: RpcServer,
        *,
        servers: ClientConfig,
        parallelism: Callable[[], int],
    ) -> None:
        self._spark = spark
        self._subtopology = subtopology
        self._rpc_server = rpc_server
        self._rpc_address = RpcAddress(rpc_server.address, rpc_server.token, rpc_server.handover)
        self._parallelism = parallelism
        self._plans = Plans(spark, subtopology, without_secrets(servers))
        self._reusable: dict[PlanKey, DataFrame] = {}
        self._built_once: dict[PlanKey, DataFrame] = {}
        self._built_each_time: set[PlanKey] = set()
        self._reads_sides = isinstance(subtopology.input, SidesInput)
        self._job_group = f"kohort-{subtopology.id}-{id(self):x}"

    def run(self, epoch_input: EpochInput) -> EpochOutput:
        """Runs an epoch of the subtopology's input.

        Raises:
            BadRecordError: a record can't be read, and the source says `Fail`.
            ProgramError: the program can't run.
            Exception: whatever Spark says of a job that failed or was cancelled.
        """
        branches = self._subtopology.branches
        rows, statistics, writes = self._run(
            self._subtopology.id, epoch_input, len(branches), self._branch(epoch_input)
        )
        _fail_if_bad(statistics, self._subtopology.read)
        for number, branch in enumerate(branches):
            if isinstance(branch.terminal, ToPartials) and branch.terminal.aggregate.window is not None:
                rows[number] = drop_outside_windows(rows[number], statistics)
        for number in epoch_input.mergers:
            statistics.merged_times[number] = merged_times(rows[number])
        return EpochOutput(self._in_order(rows, epoch_input.mergers), statistics, writes)

    def _in_order(self, rows: Mapping[int, pa.Table], merging: Collection[int]) -> dict[int, pa.Table]:
        """The rows of branches in the order in which they are sent: those to one topic together, as the first one's."""
        by_topic: dict[str, list[int]] = {}
        for number, branch in enumerate(self._subtopology.branches):
            if isinstance(branch.terminal, (ToRows, ToPartials)) and number not in merging:
                by_topic.setdefault(branch.terminal.topic, []).append(number)
        common = {numbers[0]: numbers for numbers in by_topic.values() if len(numbers) > 1}
        others = {number for numbers in common.values() for number in numbers[1:]}
        return {
            number: in_common_order([rows[each] for each in common[number]]) if number in common else in_order(made)
            for number, made in rows.items()
            if number not in others
        }

    def _branch(self, epoch_input: EpochInput) -> Build:
        return lambda number, context: self._plans.branch(number, context, merging=number in epoch_input.mergers)

    def run_table(self, table: TableStore, epoch_input: EpochInput) -> EpochOutput:
        """Runs an epoch of a table's topic: rows of its store are in `rows[0]`, the last of each key.

        Records without a key are left out, and counted as dropped: no store or changelog could take them.

        Raises:
            BadRecordError, ProgramError, Exception: as of `run`.
        """
        name = f"{self._subtopology.id}/{table.name}"
        rows, statistics, _ = self._run(name, epoch_input, 1, lambda _, context: self._plans.table(table, context))
        _fail_if_bad(statistics, [table.source])
        keyed = in_order(rows[0].filter(rows[0]["key"].is_valid()))
        statistics.drop(NO_KEY, rows[0].num_rows - keyed.num_rows)
        return EpochOutput({0: last_of_each_key(keyed)}, statistics)

    def call(self, branch: int, batch_id: str, rows: pa.Table) -> None:
        """Gives a function of the user's the rows of a batch (one at least), as `run` returned them.

        Raises:
            Exception: whatever the function raises.
        """
        terminal = self._subtopology.branches[branch].terminal
        assert isinstance(terminal, ToFunction)
        table = unpack_rows(rows["value"], terminal.schema.names)
        terminal.function(self._spark.createDataFrame(table, terminal.schema), batch_id)

    def warm_up(self) -> None:
        """Runs its jobs on nothing, so that code is compiled and Python workers run before there are records.

        With mergers, where there may be any, as most epochs have them. An instance without tasks that merge compiles
        the plan without mergers in its first epoch.
        """
        nothing = EpochInput(0, ())
        for table in self._subtopology.tables:
            self.run_table(table, nothing)
        if self._subtopology.input is not None:
            branches = enumerate(self._subtopology.branches)
            merged = [number for number, branch in branches if isinstance(branch.terminal, ToPartials)]
            self.run(replace(nothing, mergers=dict.fromkeys(merged, Mergers(1, {}))))

    def cancel(self) -> None:
        """Cancels the job that runs, if any, from another thread; `run` raises what Spark says of it."""
        self._spark.sparkContext.cancelJobGroup(self._job_group)

    def _run(
        self, name: str, epoch_input: EpochInput, branches: int, build: Build
    ) -> tuple[dict[int, pa.Table], EpochStatistics, dict[str, pa.Table]]:
        """The rows of each branch, what all splits read, and what processors wrote.

        `name` is the subtopology's id, or "id/table".
        """
        splits = 1 if epoch_input.length <= SMALL_EPOCH else self._splits()
        run = self._rpc_server.begin_epoch(name, epoch_input)
        reports: list[tuple[ReportRequest, pa.RecordBatch | None]] = []
        writes: dict[str, pa.Table] = {}
        try:
            description = f"subtopology {name}, epoch {epoch_input.epoch}"
            self._spark.sparkContext.setJobGroup(self._job_group, description, True)
            rows = {
                number: self._plan(PlanKey(name, number, splits, number in epoch_input.mergers), build).toArrow()
                for number in range(branches)
            }
            writes = self._rpc_server.store_writes(name, run)
        finally:
            reports = self._rpc_server.end_epoch(name, run)
        return rows, _summed(reports), writes

    def _splits(self) -> int:
        """The splits of a large epoch, for which its shuffles, if it has any, are made as wide."""
        splits = max(self._parallelism(), 1)
        shuffle_into(self._spark, splits)
        return splits

    def _plan(self, key: PlanKey, build: Build) -> DataFrame:
        if key in self._reusable:
            return self._reusable[key]
        if key not in self._built_once:
            frame = build(key.branch, StageContext(self._rpc_address, key.name, key.branch, key.splits))
            if key in self._built_each_time:
                return frame
            if is_reusable(frame):
                self._reusable[key] = frame
                return frame
            sides = self._reads_sides and key.name == self._subtopology.id
            if not (is_the_same_each_time(frame) and reads_input_alone(frame, sides=sides)):
                self._built_each_time.add(key)
                _log.debug("its plan is built for each epoch: %s", key)
                return frame
            # It shuffles. To build it anew for each epoch would take a tenth of the time of a large one.
            self._built_once[key] = frame
        # Spark plans, and shuffles, anew. Nor does the first epoch run what is kept: its shuffle would be kept, too.
        return self._built_once[key].select("*")


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key of a partition, in the order of those rows."""
    rows = rows.combine_chunks()
    numbers = pa.array(np.arange(len(rows), dtype=np.int64))
    numbered = rows.select(["partition", "key"]).append_column("row", numbers)
    last = numbered.group_by(["partition", "key"]).aggregate([("row", "max")]).column("row_max")
    return rows.take(last.combine_chunks().sort())


def merged_times(rows: pa.Table) -> dict[int, int | None]:
    """The largest time (ms) of what each task merged at once, as `largest_times`."""
    merged = rows.filter(pc.greater_equal(rows["partition"], 0))
    return largest_times(merged["partition"], merged["timestamp"])


def _summed(reports: list[tuple[ReportRequest, pa.RecordBatch | None]]) -> EpochStatistics:
    """What all splits read. All branches read the same, so one's counts are taken; what each drops later is its own.

    But for processors that several have in common: there, too, one's are taken.

    It isn't always the first branch's: Spark doesn't read where it sees that no row would come of it.
    """
    statistics = EpochStatistics()
    dead = []
    first: dict[str, int] = {}
    for report, _ in reports:
        first[report.stage] = min(report.branch, first.get(report.stage, report.branch))
    for report, records in reports:
        if report.read is not None:
            statistics.reads.append(report.read)
        common = report.stage == READING or report.stage.startswith(PROCESSING)
        if common and report.branch != first[report.stage]:
            continue
        statistics.late += report.late
        for reason, count in report.reasons.items():
            statistics.drop(reason, count)
        if report.stage != READING:
            continue
        statistics.records += report.records
        statistics.bytes += report.bytes
        for partition, time in report.max_times.items():
            statistics.max_times[partition] = max(time, statistics.max_times.get(partition, time))
        if records is not None:
            dead.append(records)
    statistics.dead = pa.Table.from_batches(dead, schema=DEAD_SCHEMA)
    return statistics


def _fail_if_bad(statistics: EpochStatistics, sources: Sequence[SourceSpec]) -> None:
    """Raises the first bad record, if that is its topic's policy."""
    strict = {topic for source in sources if isinstance(source.on_error, Fail) for topic in source.topics}
    if strict and statistics.dead.num_rows:
        bad = statistics.dead.filter(pc.is_in(statistics.dead["topic"], pa.array(sorted(strict), pa.string())))
        for first in bad.slice(0, 1).to_pylist():
            raise BadRecordError(first["topic"], first["partition"], first["offset"], first["error"])
