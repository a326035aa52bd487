"""An application without Spark: counts records by key, over a repartition topic, and copies each of them.

in --(0)--> copies: the value of each record
    \\-----> {app}-counts-repartition: how many of each key, unless the task that counts them runs beside
{app}-counts-repartition --(1)--> {app}-counts-changelog, counts
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import client_config
from kohort.client.streams_member import InternalTopic, Subtopology, Topology
from kohort.protocol.records.partitioner import partitions_of
from kohort.spark.epoch import ROWS_SCHEMA, EpochInput, EpochOutput, EpochStatistics, Mergers
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.program.settings import AppSettings
from kohort.spark.reading.reader import RangeReader
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import CallOutput, StoreOutput, SubtopologyPlan, TopicOutput
from tests.spark.runtime.batch_sink import BatchSink

Lookup = Callable[[str, int | None, pa.Array], pa.Array]


def plan(app: str, *, batches: bool = False) -> ApplicationPlan:
    """The application, as `compile` would make it; with `batches`, a function gets each record, too."""
    branches: dict[int, TopicOutput | StoreOutput | CallOutput] = {
        0: TopicOutput(f"{app}-copies"),
        1: TopicOutput(f"{app}-counts-repartition", routed=True, merged_by="1"),
    }
    if batches:
        branches[2] = CallOutput()
    repartition, changelog = f"{app}-counts-repartition", f"{app}-counts-changelog"
    topology = Topology(
        {
            "0": Subtopology(source_topics=[f"{app}-in"], repartition_sinks=[repartition]),
            "1": Subtopology(
                # Its records are of 1970: retention would delete them.
                repartition_sources=[InternalTopic(name=repartition, partitions=2, configs={"retention.ms": "-1"})],
                changelogs=[InternalTopic(name=changelog, configs={"cleanup.policy": "compact"})],
            ),
        }
    )
    return ApplicationPlan(
        application_id=app,
        topology=topology,
        fingerprint=Fingerprint("counting-1"),
        subtopologies={
            "0": SubtopologyPlan(
                "0",
                SubtopologyInputs(f"{app}-in", {}),
                branches,
            ),
            "1": SubtopologyPlan(
                "1",
                SubtopologyInputs(repartition, {}),
                {0: StoreOutput("counts", changelog, outputs=(f"{app}-counts",))},
            ),
        },
    )


def settings(app: str, servers: str, state_dir: Path, **more: object) -> AppSettings:
    """Settings that don't make tests wait."""
    return AppSettings.of(app, servers, state_dir=state_dir, poll_ms=20, **more)


class Counting:
    """The jobs of both parts, in plain Python."""

    def __init__(self, subtopology: str, servers: str, lookup: Lookup, sink: BatchSink | None = None) -> None:
        self.subtopology, self._lookup, self._sink = subtopology, lookup, sink
        self.failure: Exception | None = None
        """What each epoch fails with."""
        self.every = 0
        """Which one of so many epochs fails."""
        self._epochs = 0
        self._reader = RangeReader(client_config(servers))

    def run(self, work: EpochInput) -> EpochOutput:
        """Copies and partial counts, or merged counts."""
        self._epochs += 1
        if self.failure is not None:
            raise self.failure
        if self.every and self._epochs % self.every == 0:
            raise RuntimeError("an executor is gone")
        read = EpochStatistics()
        by_partition: dict[int, list[tuple[bytes, bytes]]] = {}
        for each in work.ranges:
            for batch in self._reader.read(each.topic, each.partition, each.start, each.end):
                keys, values = batch["key"].to_pylist(), batch["value"].to_pylist()
                by_partition.setdefault(each.partition, []).extend(zip(keys, values, strict=True))
                read.records += batch.num_rows
                read.bytes += sum(map(len, values))
        if self.subtopology == "0":
            rows = [pair for pairs in by_partition.values() for pair in pairs]
            counts = Counter(key for key, _ in rows)
            partials = [(key, json.dumps({"n": n}).encode()) for key, n in counts.items()]
            sent = _rows(partials, None, routed=True)
            if 1 in work.mergers:
                sent = self._merged_at_once(partials, work.mergers[1])
                here = [number for number in pc.unique(sent["partition"]).to_pylist() if number >= 0]
                read.merged_times[1] = dict.fromkeys(here, 1_000)
            output = EpochOutput({0: _rows(rows, None), 1: sent}, read)
            if self._sink is not None:
                tables = [_rows(pairs, partition) for partition, pairs in by_partition.items()]
                output.rows[2] = pa.concat_tables([ROWS_SCHEMA.empty_table(), *tables])
            return output
        out = [self._merged(partition, pairs) for partition, pairs in by_partition.items()]
        return EpochOutput({0: pa.concat_tables(out) if out else ROWS_SCHEMA.empty_table()}, read)

    def _merged_at_once(self, partials: list[tuple[bytes, bytes]], mergers: Mergers) -> pa.Table:
        """Counts of the tasks that run beside, and what goes to others."""
        keys = pa.array([key for key, _ in partials], pa.binary())
        placed: dict[int, list[tuple[bytes, bytes]]] = {}
        for pair, number in zip(partials, partitions_of(keys, mergers.partitions).tolist(), strict=True):
            placed.setdefault(number, []).append(pair)
        out = [ROWS_SCHEMA.empty_table()]
        for number, pairs in placed.items():
            is_here = number in mergers.stream_times
            out.append(self._merged(number, pairs) if is_here else _rows(pairs, -1 - number))
        return pa.concat_tables(out)

    def _merged(self, partition: int, pairs: list[tuple[bytes, bytes]]) -> pa.Table:
        touched: Counter[bytes] = Counter()
        for key, value in pairs:
            touched[key] += json.loads(value)["n"]
        prior = self._lookup("counts", partition, pa.array(list(touched), pa.binary())).to_pylist()
        merged = []
        for (key, n), before in zip(touched.items(), prior, strict=True):
            total = n + (json.loads(before)["state"]["n"] if before is not None else 0)
            merged.append((key, json.dumps({"n": total, "state": {"n": total}}, separators=(",", ":")).encode()))
        return _rows(merged, partition)

    def call(self, branch: int, batch_id: str, rows: pa.Table) -> None:
        """Gives the sink a batch."""
        assert self._sink is not None
        self._sink.take(batch_id, [value.decode() for value in rows["value"].to_pylist()])

    def run_table(self, table: str, work: EpochInput) -> EpochOutput:
        """There are no tables."""
        raise AssertionError("there are no tables")

    def cancel(self) -> None:
        """It is quick."""

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


def _rows(pairs: list[tuple[bytes, bytes]], partition: int | None, *, routed: bool = False) -> pa.Table:
    keys = pa.array([key for key, _ in pairs], pa.binary())
    return pa.table(
        {
            "key": keys,
            "value": pa.array([value for _, value in pairs], pa.binary()),
            "partition": pa.array([partition] * len(pairs), pa.int32()),
            "route": keys if routed else pa.nulls(len(pairs), pa.binary()),
            "timestamp": pa.array([1_000] * len(pairs), pa.int64()),
        },
        schema=ROWS_SCHEMA,
    )
