"""KLL sketches of ours beside Spark's: each reads, merges and asks the other's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.jobs.kll_sketches import merged, quantiles, sketches

from ..marks import long

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

SIZES = (0, 1, 5, 200, 201, 5000)
RANKS = (0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)
RANK_ERRORS = {8: 0.45, 200: 0.03, 1000: 0.01}


def made_by_spark(whole: bool, k: int) -> Column:
    return F.kll_sketch_agg_bigint("value", k) if whole else F.kll_sketch_agg_double("value", k)


def size(sketch: str, whole: bool) -> Column:
    return F.kll_sketch_get_n_bigint(sketch) if whole else F.kll_sketch_get_n_double(sketch)


def asked(sketch: str, whole: bool) -> Column:
    quantile = F.kll_sketch_get_quantile_bigint if whole else F.kll_sketch_get_quantile_double
    return F.when(size(sketch, whole) > 0, quantile(sketch, F.array(*map(F.lit, RANKS))))


def ours(sketches: list[bytes], whole: bool) -> list[list[Any] | None]:
    """What we say of them, a list of answers for each, as Spark gives them."""
    answers = [each.to_pylist() for each in quantiles(pa.array(sketches, pa.binary()), RANKS, whole)]
    return [None if row[0] is None else list(row) for row in zip(*answers, strict=True)]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("k", [200, *long(8, 1000)])
def test_spark_and_we_read_and_merge_each_other_s(spark: SparkSession, k: int, whole: bool) -> None:
    groups = np.repeat(np.arange(len(SIZES)), SIZES)
    random = np.random.default_rng(k)
    random.shuffle(groups)
    values = pa.array(random.integers(-1000, 10**15, len(groups)) if whole else random.normal(size=len(groups)))
    # The group of none has a null, and a NaN: neither counts.
    values = pa.concat_arrays([values, pa.array([None, None if whole else float("nan")], values.type)])
    groups = np.append(groups, [0, 0])
    kind = "bigint" if whole else "double"
    rows = spark.createDataFrame(pa.table({"group": groups, "value": values}), f"group bigint, value {kind}")
    theirs = [row.s for row in rows.groupBy("group").agg(made_by_spark(whole, k).alias("s")).orderBy("group").collect()]
    own = sketches(values, groups, len(SIZES), k, 1).to_pylist()
    same = [index for index, count in enumerate(SIZES) if count < 2]
    assert [own[index] for index in same] == [bytes(theirs[index]) for index in same]
    assert [len(each) for each in own[:4]] == [len(each) for each in theirs[:4]] or k == 8

    both = merged(pa.array([*own, *theirs], pa.binary()), np.tile(np.arange(len(SIZES)), 2), len(SIZES), k, whole, 2)
    merge = F.kll_merge_agg_bigint if whole else F.kll_merge_agg_double
    table = pa.table(
        {"group": range(len(SIZES)), "own": own, "theirs": [bytes(each) for each in theirs], "both": both},
        pa.schema({"group": pa.int64(), "own": pa.binary(), "theirs": pa.binary(), "both": pa.binary()}),
    )
    frame = spark.createDataFrame(table, "group bigint, own binary, theirs binary, both binary")
    parts = frame.select("group", F.explode(F.array("own", "theirs", "both")).alias("part"))
    counted = {"own": 1, "theirs": 1, "both": 2, "united": 4}
    sizes = [size(name, whole).alias(f"n_{name}") for name in counted]
    ranks = [asked(name, whole).alias(f"q_{name}") for name in counted]
    united = parts.groupBy("group").agg(merge("part").alias("united"))
    answers = frame.join(united, "group").select("*", *sizes, *ranks).orderBy("group").collect()
    for name, times in counted.items():
        assert [row[f"n_{name}"] for row in answers] == [times * count for count in SIZES]
        assert [row[f"q_{name}"] for row in answers] == ours([bytes(row[name]) for row in answers], whole)
    ordered = [np.sort(values.filter(pa.array(groups == group)).drop_null().to_numpy()) for group in range(len(SIZES))]
    for row, inside in zip(answers[1:], ordered[1:], strict=True):
        for name in ("q_own", "q_both", "q_united"):
            found = np.searchsorted(inside, row[name], "right") / len(inside)
            assert (np.abs(found - np.array(RANKS)) <= RANK_ERRORS[k] + 1 / len(inside)).all()


def test_what_is_merged_goes_on_anywhere(spark: SparkSession) -> None:
    """A sketch that goes to and fro between Spark and us, of other sizes too, counts all and stays nearly right."""
    state = sketches(pa.array(np.arange(1000)), np.zeros(1000, np.int64), 1, 200, 1)
    for turn in range(1, 4):
        values = np.arange(1000 * turn, 1000 * (turn + 1))
        more = sketches(pa.array(values), np.zeros(1000, np.int64), 1, 100 * turn, turn)
        parts = pa.concat_arrays([state, more])
        frame = spark.createDataFrame(pa.table({"part": parts}), "part binary")
        (row,) = frame.agg(F.kll_merge_agg_bigint("part", 200).alias("s")).collect()
        state = merged(pa.array([bytes(row.s), None], pa.binary()), np.zeros(2, np.int64), 1, 200, True, turn)
    frame = spark.createDataFrame(pa.table({"s": state}), "s binary")
    (row,) = frame.select(size("s", True).alias("n"), asked("s", True).alias("q")).collect()
    assert row.n == 4000
    assert np.abs(np.array(row.q) / 4000 - np.array(RANKS)).max() < 0.05
