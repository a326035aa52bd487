"""Aggregates that are grouped and merged in Arrow, beside the same by Spark: what is stored, sent and left out."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.protocol.records.partitioner import partitions_of
from kohort.spark import (
    StreamsApp,
    approx_percentile,
    avg,
    count,
    count_if,
    max_,
    min_,
    sum_,
    unlimited,
    window,
)
from kohort.spark.epoch import EpochOutput, Mergers
from kohort.spark.jobs import terminals
from kohort.spark.jobs.kll_sketches import quantiles
from kohort.spark.jobs.subtopology_jobs import SubtopologyJobs
from kohort.spark.program.aggregates.columnwise import Sketch
from kohort.spark.program.compiled import Aggregate, AggregateSpec, CompiledSubtopology, ToPartials

from ..marks import long
from .jobs_harness import PARTITIONS, JobsHarness

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from kohort.spark.program.streams import GroupedStream, Stream

SCHEMA = (
    "k1 STRING, k2 INT, t8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, dec DECIMAL(10,3), s STRING, "
    "b BOOLEAN, day DATE, moment TIMESTAMP, at TIMESTAMP, st STRUCT<x: INT, y: STRING>, arr ARRAY<INT>, `do.t` INT"
)
ARROW, SPARK = "in Arrow", "by Spark"
RANKS = [number / 20 for number in range(21)]
START = datetime(2013, 1, 1, 5, tzinfo=UTC)


FEW = {
    "n": count(), "n_d": count("d"), "few": count_if("i32 > 3"), "sum8": sum_("t8"), "sum.dot": sum_("`do.t`"),
    "min_d": min_("d"), "max_d": max_("d"), "avg_d": avg("d", where="b"),
}  # fmt: skip
SKETCHES = {"p64": approx_percentile("i64", [0.1, 0.5, 1.0]), "p_d": approx_percentile("d", 0.5)}


def all_aggregates() -> dict[str, Any]:
    """All that can be folded value by value, of all types that it can be of."""
    return {
        **FEW, **SKETCHES,
        "n_s": count("s"), "n_b": count("b"), "n_day": count("day"), "n_dec": count("dec"), "n_st": count("st"),
        "n_x": count("st.x"), "n_arr": count("arr"), "n_void": count(F.lit(None)), "some": count_if(F.col("b")),
        "n_all": count(where=F.col("t8") < 0),
        "sum16": sum_("i16"), "sum64": sum_("i64"), "sum_f": sum_("f"), "sum_d": sum_("d"),
        "sum_where": sum_("i32", where="s = 'x'"), "sum_of": sum_(F.col("i32") * 2 + F.col("t8")),
        "sum_x": sum_("st.x"),
        "min8": min_("t8"), "min32": min_("I32"), "max16": max_("i16"), "max64": max_("i64"),
        "max_abs": max_(F.abs("d")),
        "avg8": avg("t8"), "avg64": avg("i64"), "avg_f": avg("f"), "avg_of": avg(F.col("i16") / 2),
        "p8": approx_percentile("t8", 0.5), "p16": approx_percentile("i16", [0.5]),
        "p_f": approx_percentile("f", (0.0, 0.25)), "p_dec": approx_percentile("dec", 0.5),
        "p_where": approx_percentile("d", 0.5, where="b"), "p_of": approx_percentile(F.col("i32") + 1, 0.5, k=300),
        "p_x": approx_percentile("st.x", 0.5), "p.dot": approx_percentile("`do.t`", 0.75),
    }  # fmt: skip


def overflowing() -> dict[str, Any]:
    large = F.col("i64") * 2**13
    return FEW | SKETCHES | {"sum64": sum_(large), "max64": max_(large), "p": approx_percentile(large, 0.5)}


def with_strange(df: DataFrame) -> DataFrame:
    """JSON has no numbers that aren't finite, nor -0.0."""

    def strange(name: str) -> Column:
        given = F.col(name)
        made = F.when(given > 850, float("nan")).when(given > 800, float("inf")).when(given < -900, float("-inf"))
        return made.when(given < -850, F.lit(-0.0)).otherwise(given).cast(df.schema[name].dataType)

    return df.withColumns({name: strange(name) for name in ("f", "d")})


def rows(seed: int, count: int, first: int = 0) -> list[dict[str, Any]]:
    """Numbers whose sums are exact whatever their order, and nulls everywhere; most of each hour come together."""
    chance = random.Random(seed)

    def some(make: Callable[[], Any]) -> Any:
        return None if chance.random() < 0.15 else make()

    def quarter() -> float:
        return chance.randint(-4000, 4000) / 4

    def row(number: int) -> dict[str, Any]:
        def time() -> str:
            minutes = 3 * number + chance.randint(-100, 0)
            return (START + timedelta(minutes=minutes, microseconds=chance.choice([0, 5000, 7]))).isoformat()

        return {
            "k1": some(lambda: chance.choice(["", 'a"\\', "é", "late"])), "k2": some(lambda: chance.randint(0, 1)),
            "t8": some(lambda: chance.randint(-128, 127)), "i16": some(lambda: chance.randint(-(2**15), 2**15 - 1)),
            "i32": some(lambda: chance.randint(-5, 9)), "i64": some(lambda: chance.randint(-(2**50), 2**50)),
            "f": some(quarter), "d": some(quarter),
            "dec": some(lambda: chance.randint(-4000, 4000) / 8), "s": some(lambda: chance.choice("xyz")),
            "b": some(lambda: chance.random() < 0.5), "day": some(lambda: chance.choice(["2013-01-01", "1969-12-31"])),
            "moment": some(lambda: chance.choice(["2013-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z"])),
            "at": some(time), "st": some(lambda: {"x": some(lambda: chance.randint(0, 9)), "y": "y"}),
            "arr": some(lambda: [1]), "do.t": some(lambda: chance.randint(0, 9)),
        }  # fmt: skip

    return [row(number) for number in range(first, first + count)]


@dataclass(frozen=True)
class Case:
    """A program, and how its epochs run.

    Attributes:
        group: what rows are grouped by.
        own: whether they are the tasks' own, of records with the key k2, k1.
        here: the partitions that have mergers.
        splits: of an epoch.
        aggregates: made when there is a session.
        ansi: whether sums that overflow fail. Else they wrap.
    """

    group: Callable[[Stream], GroupedStream]
    own: bool = False
    here: tuple[int, ...] = (0, 1)
    splits: int = 1
    aggregates: Callable[[], dict[str, Any]] = lambda: FEW | SKETCHES
    ansi: bool = True


class Program:
    """One aggregate's jobs, of which each makes its plans either way."""

    def __init__(self, harness: JobsHarness, case: Case, patch: pytest.MonkeyPatch) -> None:
        self._harness, self._case, self._patch = harness, case, patch
        self.topic = harness.topic()
        app = StreamsApp("app", bootstrap_servers="127.0.0.1:1")
        stream = app.stream(self.topic, schema=SCHEMA, key=("k2", "k1"), event_time="at")
        case.group(stream.transform(with_strange)).aggregate("a", **case.aggregates())
        subtopology = app.compile(harness.spark).subtopologies[0]
        self.spec = _spec(subtopology)
        self._jobs: dict[str, SubtopologyJobs] = {path: harness.jobs(subtopology) for path in (ARROW, SPARK)}
        self.times: dict[int, int] = {}

    def send(self, given: list[dict[str, Any]]) -> None:
        keys = [
            json.dumps({"k2": row["k2"], "k1": row["k1"]}, separators=(",", ":"), ensure_ascii=False).encode()
            for row in given
        ]
        places = partitions_of(pa.array(keys), PARTITIONS).tolist()
        records: list[tuple[int, Any, Any]] = list(zip(places, keys, given, strict=True))
        # One whose key is missing belongs to no task.
        self._harness.send(self.topic, [*records, (0, None, given[0])])

    def run(self, path: str, epoch: int, since: list[int], prior: pa.Table | None = None) -> EpochOutput:
        harness, case = self._harness, self._case
        harness.stores.clear()
        if prior is not None:
            harness.keep("a", prior)
        whole = harness.epoch_input(self.topic, epoch)
        ranges = tuple(replace(each, start=start) for each, start in zip(whole.ranges, since, strict=True))
        given = replace(whole, ranges=ranges, stream_times=dict(self.times))
        if not case.own:
            given = replace(given, mergers={0: Mergers(PARTITIONS, {each: self.times.get(each) for each in case.here})})
        with self._planned(path):
            return self._jobs[path].run(given)

    @contextmanager
    def _planned(self, path: str) -> Iterator[None]:
        with self._patch.context() as patch:
            if path == SPARK:
                patch.setattr(terminals, "_state_merge", lambda *_: None)
            else:
                patch.setattr(terminals, "merged", None)  # whatever is grouped by Spark at the end fails
            yield

    def shown(self, output: EpochOutput) -> dict[str, Any]:
        return shown(output, self.spec)


def _spec(subtopology: CompiledSubtopology) -> AggregateSpec:
    (branch,) = subtopology.branches
    terminal = branch.terminal
    assert isinstance(terminal, (Aggregate, ToPartials))
    return terminal.spec if isinstance(terminal, Aggregate) else terminal.aggregate


def shown(output: EpochOutput, spec: AggregateSpec) -> dict[str, Any]:
    """What an epoch gives, such that the same is equal: numbers as numbers, sketches as what they say."""
    wholes = {
        name: fold.whole
        for name, aggregation in spec.aggregations
        if aggregation.columnwise is not None
        for fold in aggregation.columnwise.folds
        if isinstance(fold, Sketch)
    }
    kinds = dict(spec.state_columns)

    def plain(name: str, value: Any) -> Any:
        if name in wholes and value is not None:
            raw = base64.b64decode(value, validate=True)
            return len(raw), [each.to_pylist() for each in quantiles(pa.array([raw]), RANKS, wholes[name])]
        return float(value) if isinstance(kinds[name], T.DoubleType) and value is not None else value

    def parsed(text: bytes) -> str:
        value = json.loads(text)
        value["state"] = {name: plain(name, each) for name, each in value["state"].items()}
        return repr(value)

    rows = output.rows[0].to_pylist()
    found: dict[Any, Any] = {
        (row["partition"], row["key"].decode()): (row["timestamp"], parsed(row["value"])) for row in rows
    }
    assert len(found) == len(rows)
    statistics = output.statistics
    return {**found, "left out": (statistics.late, statistics.reasons, statistics.merged_times)}


def by_texts(stream: Stream) -> GroupedStream:
    return stream.group_by("k1", "s", window("at", "1 hour", slide="30 minutes", grace="30 minutes"))


def by_types(stream: Stream) -> GroupedStream:
    """Rows that are moved about, by columns of all types that make keys."""

    def moved(df: DataFrame) -> DataFrame:
        few = df.withColumns(
            {"dec": F.expr("cast(sign(dec) / 8 as decimal(10, 3))"), "t8": F.expr("sign(t8)").cast("tinyint")}
        )
        return few.where("i32 < 3").unionByName(few.where("i32 >= 3 or i32 is null").repartition(3))

    return stream.transform(moved).group_by("b", "day", "moment", "dec", "t8")


def by_key(stream: Stream) -> GroupedStream:
    return stream.group_by("k1", "k2")


CASES = {
    "own": Case(by_key, own=True, aggregates=all_aggregates),
    "windows": Case(by_texts, here=(1,)),
    "windows without sketches": Case(by_texts, here=(0,), aggregates=lambda: FEW),
    "types of several splits": Case(by_types, splits=2),
}
MORE = {
    "own of several splits": Case(by_key, own=True, splits=2),
    "own windows": Case(lambda stream: stream.group_by("k1", "k2", window("at", "1 hour", grace="1 hour")), own=True),
    "windows of several splits": Case(by_texts, splits=2, aggregates=all_aggregates),
    "types": Case(by_types),
    "types without sketches": Case(by_types, splits=2, aggregates=lambda: FEW),
    "all of the time": Case(lambda stream: stream.group_by("s", unlimited("at", start="2013-01-01T06:00:00Z"))),
    "sums that wrap": Case(by_texts, aggregates=overflowing, ansi=False),
}


@pytest.mark.parametrize("name", [*CASES, *long(*MORE)])
def test_what_is_grouped_in_arrow_is_what_spark_makes(
    harness: JobsHarness, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one goes on with what the other has stored."""
    case = {**CASES, **MORE}[name]
    if case.splits > 1:
        monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", 0)
    with ansi(harness.spark, case.ansi):
        compare(harness, Program(harness, case, monkeypatch))


@contextmanager
def ansi(spark: SparkSession, wanted: bool) -> Iterator[None]:
    before: Any = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(wanted).lower())
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def compare(harness: JobsHarness, program: Program) -> None:
    since = [0] * PARTITIONS
    program.send(rows(1, 120))
    first = {path: program.run(path, 0, since) for path in (ARROW, SPARK)}
    assert program.shown(first[ARROW]) == program.shown(first[SPARK])
    program.times = {number: time for number, time in first[ARROW].statistics.max_times.items() if time is not None}
    since = list(harness.ends[program.topic])
    program.send(rows(2, 60, first=60))
    in_arrow = program.run(ARROW, 1, since, first[SPARK].rows[0])
    by_spark = program.run(SPARK, 1, since, first[ARROW].rows[0])
    assert program.shown(in_arrow) == program.shown(by_spark)
    again = {*first[ARROW].rows[0]["key"].to_pylist()} & {*in_arrow.rows[0]["key"].to_pylist()}
    assert len(again) > 1  # these have been merged with prior values
