"""The jobs of a simulated queue, and what is written of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tests.spark.queues.fakes import job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELIVERIES: Final = 4
"""So often a job is handed out before it is rejected."""
_KINDS: Final = ("once",) * 12 + ("again",) * 3 + ("bad", "bad", "hopeless", "torn", "empty", "poison")
DONE: Final = frozenset({"once", "again"})


def kind_of(offset: int) -> str:
    """What is the matter with the job that lies there; a poisonous one makes any job of Spark's fail that it is in."""
    return _KINDS[offset * 7_919 % 10_007 % len(_KINDS)]


def value_of(offset: int) -> bytes | None:
    """The record there."""
    return {"empty": None, "torn": b"{"}.get(kind_of(offset), job(offset))


class SparkJobs:
    """Does jobs, for which it needs time; some fail.

    Args:
        awake: waits while the process is paused.
        fails: how likely a job of Spark's fails, whatever it is of.
    """

    def __init__(self, rng: Random, awake: Callable[[], Any], fails: Callable[[], float]) -> None:
        self._rng, self._awake, self._fails = rng, awake, fails

    async def run(self, rows: pa.Table) -> pa.Table:
        await asyncio.sleep(self._rng.choice((0.001, 0.05, 0.3, 1.5)))
        await self._awake()
        ids, deliveries = rows["id"].to_pylist(), rows["_delivery_count"].to_pylist()
        if self._rng.random() < self._fails() or any(kind_of(each) == "poison" for each in ids):
            raise RuntimeError("the job failed")
        outcomes = [_outcome(kind_of(each), count) for each, count in zip(ids, deliveries, strict=True)]
        values = [json.dumps({"id": each}) for each in ids]
        return rows.append_column("outcome", pa.array(outcomes, pa.string())).append_column(
            "_output_0_value", pa.array(values, pa.string())
        )

    async def call(self, function: Callable[[DataFrame, str], object], rows: pa.Table, batch_id: str) -> None:
        """The program has no functions."""
        raise AssertionError("a function is called, and there is none")

    async def cancel(self) -> None:
        """It ends by itself."""


def _outcome(kind: str, delivery: int) -> str:
    if kind == "bad":
        return "reject"
    return "release" if kind == "hopeless" or (kind == "again" and delivery == 1) else "accept"
