"""Partials merged at once, without a driver; what comes of them beside Spark: tests/pipeline/test_arrow_grouping.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest

from kohort.spark.epoch import Mergers
from kohort.spark.executor_rpc.client import SplitInput
from kohort.spark.jobs.stages import merge_in_arrow
from kohort.spark.jobs.stages.merge_in_arrow import PartialRoute, merge_in_arrow_stage
from kohort.spark.jobs.stages.state_lookup import StateLookup
from kohort.spark.jobs.stages.state_merge import Gather, Result, StateMerge, StoreKey
from kohort.spark.program.aggregates.columnwise import Fold
from kohort.spark.program.internal_columns import RECORDS, TIMESTAMP
from tests.spark.jobs.fakes import FakeRpc

MERGE = StateMerge(
    StateLookup("s", pa.schema([pa.field("n", pa.int64())])),
    StoreKey(("word",), windowed=False),
    pa.schema([pa.field("n", pa.int64())]),
    (Fold.COUNT,),
    (Result("n", 0),),
    checked=True,
)
PARTIALS = pa.schema({TIMESTAMP: pa.int64(), RECORDS: pa.int64(), "_group0": pa.string(), "_state0": pa.int64()})


class MergingRpc(FakeRpc):
    """One of two partitions merges."""

    def request_input(self, *args: Any, **more: Any) -> SplitInput:
        return dataclasses.replace(super().request_input(*args, **more), mergers={0: Mergers(2, {0: None})})


def run(rpc: FakeRpc, given: list[pa.RecordBatch], gather: Gather | None = None) -> list[dict[str, Any]]:
    route = PartialRoute((0,), ("word",), as_text=False, plain_decimals=True)
    stage = merge_in_arrow_stage(rpc.context, MERGE, route, gather)
    return [row for batch in stage(iter(given)) for row in batch.to_pylist()]


def partials(*words: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{TIMESTAMP: 7, RECORDS: 2, "_group0": word, "_state0": 2} for word in words], schema=PARTIALS
    )


def test_partials_of_other_tasks_stay_partials() -> None:
    rpc = MergingRpc({("s", 0): {b'{"word":"d"}': b'{"n":3,"state":{"n":3}}'}})
    made = run(rpc, [partials(*"abcdef", None)])
    assert {row["partition"] for row in made} == {0, -2}
    assert rpc.asked == [row["key"] for row in made if row["partition"] == 0]
    values = {row["key"]: row["value"] for row in made}
    assert values[b'{"word":"d"}'] == b'{"n":5,"state":{"n":5}}'
    others = {key: value for key, value in values.items() if key not in rpc.asked}
    assert set(others.values()) == {b'{"records":2,"state":{"n":2}}'} and len(values) == 7


def test_no_partials_make_no_records() -> None:
    rpc = MergingRpc()
    assert run(rpc, []) == run(rpc, [partials()]) == []
    assert rpc.asked == []


def test_nothing_is_grouped_while_a_thread_loads_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sketches have compiled code, too, and two threads that load at once may fail."""

    class Loading(Future[Any]):
        waited = False

        def exception(self, timeout: float | None = None) -> None:
            self.waited = True

    def gather(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        assert not code.waited  # not before there is something to group, either
        (given,) = batches
        assert code.waited
        return given

    code = Loading()
    monkeypatch.setattr(merge_in_arrow, "load_columns", lambda: code)
    assert len(run(MergingRpc(), [partials("a")], gather)) == 1
