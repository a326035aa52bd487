"""A subtopology's jobs with a broker, and stores in dictionaries."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kohort.client import Admin, Producer
from kohort.client.config import ClientConfig
from kohort.spark.epoch import EpochInput, OffsetRange
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.output_values import output_values
from kohort.spark.jobs.subtopology_jobs import SubtopologyJobs
from kohort.spark.program.aggregates import approx_percentile, avg, count, max_
from kohort.spark.program.compiled import (
    AggregateSpec,
    CompiledSubtopology,
    Route,
    SourceSpec,
)
from kohort.spark.program.error_policies import ErrorPolicy, Fail
from kohort.spark.program.windows import window
from kohort.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FLIGHT = "carrier string, origin string, delay int, at timestamp, unused string"
PARTITIONS = 2
FAIL = Fail()


class JobsHarness:
    """A broker with topics, stores in a dictionary, and the RPC server that executors ask."""

    def __init__(self, spark: SparkSession, broker: Broker) -> None:
        self.spark = spark
        self.servers = ClientConfig(bootstrap_servers=broker.bootstrap_servers)
        self.stores: dict[tuple[str, int | None], dict[bytes, bytes]] = defaultdict(dict)
        self.ends: dict[str, list[int]] = defaultdict(lambda: [0] * PARTITIONS)
        self.rpc = RpcServer(self._lookup)
        self._topics = 0
        self.parallelism = 2

    def topic(self) -> str:
        self._topics += 1
        name = f"topic-{self._topics}"

        async def create() -> None:
            async with Admin(self.servers) as admin:
                await admin.topics.create(name, partitions=PARTITIONS, configs={"retention.ms": "-1"})

        asyncio.run(create())
        return name

    def send(self, topic: str, records: list[tuple[int, Any, Any]]) -> None:
        """Records of (partition, key, value), whose times are 0, 1, 2, … ms."""

        def text(value: Any) -> bytes | None:
            return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()

        rows = [(at, number, text(key), text(value)) for number, (at, key, value) in enumerate(records)]
        names = ("partition", "timestamp", "key", "value")
        self._send(topic, pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=RECORDS))

    def forward(self, topic: str, output: pa.Table) -> None:
        """What a subtopology sends to a repartition topic, by route or key."""
        routes = [
            route or key for route, key in zip(output["route"].to_pylist(), output["key"].to_pylist(), strict=True)
        ]
        partitions = pa.array([moved_to(route) for route in routes], pa.int32())
        columns = [partitions, output["timestamp"], output["key"], output["value"]]
        self._send(topic, pa.Table.from_arrays(columns, schema=RECORDS))

    def keep(self, store: str, output: pa.Table) -> dict[str, Any]:
        """Write rows into a store, and give all of them as the output topic would show them."""
        for row in output.to_pylist():
            self.stores[(store, row["partition"])][row["key"]] = row["value"]
        found = [pair for (name, _), stored in self.stores.items() if name == store for pair in stored.items()]
        outputs = output_values(pa.array([key for key, _ in found]), pa.array([value for _, value in found]))
        return {key.decode(): json.loads(value) for (key, _), value in zip(found, outputs.to_pylist(), strict=True)}

    def jobs(self, subtopology: CompiledSubtopology) -> SubtopologyJobs:
        return SubtopologyJobs(
            self.spark, subtopology, self.rpc, servers=self.servers, parallelism=lambda: self.parallelism
        )

    def epoch_input(
        self, topic: str, epoch: int = 0, start: int = 0, times: dict[int, int] | None = None
    ) -> EpochInput:
        ends = enumerate(self.ends[topic])
        return EpochInput(
            epoch, tuple(OffsetRange(topic, number, min(start, end), end) for number, end in ends), times or {}
        )

    def schema(self, ddl: str) -> StructType:
        return self.spark.createDataFrame([], ddl).schema

    def source(
        self, topic: str, on_error: ErrorPolicy = FAIL, ddl: str = FLIGHT, event_time: str | None = "at"
    ) -> SourceSpec:
        return SourceSpec(topic, self.schema(ddl), "json", ("carrier",), event_time, "earliest", on_error)

    def spec(
        self, name: str, group: str, *, grace: str | None = None, slide: str | None = None, sketch: bool = True
    ) -> AggregateSpec:
        rows = self.spark.createDataFrame([], FLIGHT)
        given = {"n": count(), "mean": avg("delay"), "p50": approx_percentile("delay", 0.5), "worst": max_("delay")}
        if not sketch:
            del given["p50"]
        bound = {each: aggregation.bound(rows, "at") for each, aggregation in given.items()}
        states = [pair for each, aggregation in bound.items() for pair in aggregation.partial(each)]
        state = rows.agg(*[column.alias(each) for each, column in states]).schema
        empty = self.spark.createDataFrame([], state)
        output = empty.select(*[aggregation.finish(each).alias(each) for each, aggregation in bound.items()]).schema
        return AggregateSpec(
            name, ((group, rows.schema[group].dataType),), window("at", "1 hour", grace=grace, slide=slide),
            tuple(bound.items()), "update", f"{name}-changelog", "at", None,
            tuple((field.name, field.dataType) for field in state.fields),
            tuple((field.name, field.dataType) for field in output.fields),
            Route.JSON, (group,),
        )  # fmt: skip

    def _lookup(self, store: str, partition: int | None, keys: pa.Array) -> pa.Array:
        return pa.array([self.stores[(store, partition)].get(key) for key in keys.to_pylist()], pa.binary())

    def _send(self, topic: str, table: pa.Table) -> None:
        async def send() -> None:
            async with Producer(self.servers) as producer:
                await producer.send_table(topic, table)

        asyncio.run(send())
        for partition in table["partition"].to_pylist():
            self.ends[topic][partition] += 1


def moved_to(route: bytes) -> int:
    """The partition of a repartition topic that such rows go to."""
    return sum(route) % PARTITIONS


RECORDS = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("timestamp", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
