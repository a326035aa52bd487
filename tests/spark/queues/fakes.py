"""A queue, a share group and Spark as tests make them up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.program.compiled import SourceSpec, ToTopic
from kohort.spark.program.error_policies import Drop
from kohort.spark.program.queues import QueueSettings
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.settlement import Rules, Settlement

TOPIC = "jobs"

VALUES = T.StructType([T.StructField("id", T.LongType())])
INTERNAL = [
    T.StructField("_delivery_count", T.IntegerType()),
    T.StructField("_partition", T.IntegerType()),
    T.StructField("_offset", T.LongType()),
]


def queue(
    settings: QueueSettings | None = None,
    *,
    functions: Sequence[Any] = (),
    outputs: Sequence[ToTopic] = (ToTopic("out", None, "json", ("id",)),),
) -> CompiledQueue:
    """Rows of `id`, which become rows of `id` and `outcome`."""
    settings = settings or QueueSettings(dead_letters="dead")
    source = SourceSpec(TOPIC, VALUES, "json", (), None, "earliest", Drop(), None)
    result = T.StructType([*VALUES.fields, T.StructField("outcome", T.StringType()), *INTERNAL])
    rules = Rules("outcome", None, "accept", settings.max_deliveries)
    return CompiledQueue(
        source, settings, rules, (), T.StructType([*VALUES.fields, *INTERNAL]), result, tuple(outputs), tuple(functions)
    )


def acquired(*values: bytes | None, first: int = 0, delivery: int = 1) -> pa.Table:
    """Records as a share consumer gives them."""
    count = len(values)
    columns: dict[str, Any] = {
        "topic": pa.array([TOPIC] * count).dictionary_encode(),
        "partition": pa.array([0] * count, pa.int32()),
    }
    given: dict[str, list[Any]] = {
        "offset": list(range(first, first + count)), "timestamp": [0] * count, "key": [None] * count,
        "value": list(values), "headers": [[]] * count,
    }  # fmt: skip
    columns |= {field.name: pa.array(given[field.name], field.type) for field in RECORD_SCHEMA}
    return pa.table({**columns, "delivery_count": pa.array([delivery] * count, pa.int16())})


def job(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


class FakeConsumer:
    """Gives what it's told to, and keeps what became of it, by offset."""

    def __init__(self, *epochs: pa.Table) -> None:
        self.epochs = list(epochs)
        self.outcomes: dict[int, int] = {}
        self.empty = asyncio.Event()
        self.asked: list[int] = []

    async def acquire(self, most: int) -> pa.Table | None:
        self.asked.append(most)
        if self.epochs:
            return self.epochs.pop(0)
        self.empty.set()
        await asyncio.sleep(0.5)
        return None

    async def acknowledge(self, records: pa.Table, settlement: Settlement) -> None:
        self.outcomes |= dict(zip(records["offset"].to_pylist(), settlement.kinds.tolist(), strict=True))


class FakeWork:
    """Makes rows with a function of `id` that gives the outcome, or raises. A job takes so many seconds."""

    def __init__(self, outcome: Callable[[int], str | None], took_s: float = 0.0) -> None:
        self._outcome = outcome
        self._took_s = took_s
        self._cancelled = asyncio.Event()
        self.jobs = 0

    async def run(self, rows: pa.Table) -> pa.Table:
        self.jobs += 1
        if self._took_s and await self._is_cancelled():
            raise RuntimeError("the job was cancelled")
        outcomes = [self._outcome(each) for each in rows["id"].to_pylist()]
        values = [json.dumps({"id": each}) for each in rows["id"].to_pylist()]
        return rows.append_column("outcome", pa.array(outcomes, pa.string())).append_column(
            "_output_0_value", pa.array(values, pa.string())
        )

    async def call(self, function: Callable[[Any, str], object], rows: pa.Table, batch_id: str) -> None:
        function(rows, batch_id)

    async def cancel(self) -> None:
        self._cancelled.set()

    async def _is_cancelled(self) -> bool:
        try:
            await asyncio.wait_for(self._cancelled.wait(), self._took_s)
        except TimeoutError:
            return False
        return True
