"""What a batch is called that a function gets."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import LongType, StructField, StructType

from kohort.spark.epoch import OffsetRange
from kohort.spark.program.compiled import Branch, CompiledSubtopology, ToFunction
from kohort.spark.runtime.planning import subtopology_plan_of

_COLUMNS = StructType([StructField("n", LongType())])


class _Sink:
    def one(self, rows: Any, batch_id: str) -> None: ...

    def other(self, rows: Any, batch_id: str) -> None: ...


def test_no_two_batches_of_a_function_have_the_same_id() -> None:
    """Parts of a union that read the same records are branches of their own."""
    sink = _Sink()
    functions = (sink.one, sink.other, sink.one, sink.one)
    branches = tuple(Branch((), ToFunction(each, _COLUMNS)) for each in functions)
    calls = subtopology_plan_of(CompiledSubtopology("0", None, (), branches)).calls
    read = OffsetRange("t", 3, 10, 20)
    assert [call.batch_id(read, 5) for call in calls.values()] == [
        "t-3:10-20",
        "t-3:10-20",
        "t-3:10-20#1",
        "t-3:10-20#2",
    ]
    assert [call.batch_id(OffsetRange("t", 3, 20, 20), 5) for call in calls.values()][2] == "t-3:20-20@5#1"
