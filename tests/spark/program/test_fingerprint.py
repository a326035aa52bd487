"""What a program's fingerprint goes by, and how it is committed."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Column
from pyspark.sql.types import DataType, LongType, StringType

from kohort.spark import (
    Aggregation,
    aggregation,
    approx_distinct,
    approx_percentile,
    avg,
    collect,
    count,
    first,
    last,
    max_,
    min_,
    stddev,
    sum_,
    variance,
)
from kohort.spark.program.aggregates.identity import identity
from kohort.spark.program.committed_metadata import Committed, Fingerprint, committed_by, metadata
from kohort.spark.program.fingerprint import fingerprint
from tests.spark.program.programs import program, spec


def fingerprint_with(aggregate: Aggregation) -> Fingerprint:
    return fingerprint(program(aggregate=spec(aggregations=(("n", aggregate),))).subtopologies)


@pytest.mark.parametrize(
    "changed",
    [
        spec("others"),
        spec(size="2 hours"),
        spec(group=(("dest", StringType()),)),
        spec(state_columns=(("n", StringType()),)),
        spec(aggregations=(("n", count("delay")),)),
    ],
)
def test_the_fingerprint_changes_with_what_stores_hold(changed: object) -> None:
    assert fingerprint(program(aggregate=changed).subtopologies) != program().fingerprint  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "variants",
    [
        [min_("a"), max_("a"), min_("b"), sum_("a"), sum_("b"), count("a"), count(), avg("a")],
        [variance("a"), variance("a", population=True), stddev("a"), stddev("a", population=True)],
        [approx_distinct("a"), approx_distinct("a", lg_k=10), approx_distinct("b")],
        [approx_percentile("a", 0.5), approx_percentile("a", 0.9), approx_percentile("a", [0.5])],
        [approx_percentile("a", 0.5, k=100), approx_percentile("a", 0.5, k=101)],
        [first("a"), last("a"), first("a", by="b"), first("a", ignore_nulls=True)],
        [collect("a", 3), collect("a", 4), collect("a", 3, keep="last"), collect("a", 3, by="b")],
    ],
)
def test_the_fingerprint_goes_by_all_that_an_aggregation_is_told(variants: list[Aggregation]) -> None:
    assert len({fingerprint_with(each) for each in variants}) == len(variants)
    assert [fingerprint_with(each) for each in variants] == [fingerprint_with(each) for each in variants]


def test_the_fingerprint_leaves_out_what_may_change() -> None:
    assert program(aggregate=spec(emit="close")).fingerprint == program().fingerprint
    assert program(dead="dead").fingerprint == program().fingerprint


@pytest.mark.parametrize(
    ("aggregate", "text"),
    [
        (count(), "1db6d0ffc853b304"),
        (sum_("a"), "f2974d180f2155d4"),
        (avg("a"), "9ea7239e029fe3b5"),
        (min_("a"), "090681f32b4ceb22"),
        (stddev("a"), "52f9f534200ee0c4"),
        (approx_percentile("a", 0.5), "f327fd0b811615ca"),
        (approx_distinct("a"), "a8d444f17891bb5e"),
        (first("a", by="b"), "b9de85a77b26d66b"),
        (collect("a", 3, by="b"), "f8e0106b1d60f66b"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_state_is_found_again_by_the_next_version_of_kohort(aggregate: Aggregation, text: str) -> None:
    """Each application that has such an aggregate would need a new id, if the name of a class or parameter changed."""
    assert fingerprint_with(aggregate).text == text


def test_a_custom_aggregation_is_known_by_its_version() -> None:
    def custom(version: str, merge: object = max) -> Aggregation:
        return aggregation(update=lambda: None, merge=merge, version=version)  # type: ignore[arg-type, return-value]

    assert identity(custom("1")) == identity(custom("1", merge=min)) == ["CustomAggregation", "1"]
    assert identity(custom("2")) == ["CustomAggregation", "2"]


@dataclass(frozen=True)
class Clipped(Aggregation):
    of: object
    limit: float | tuple[object, ...] | None = None
    kept_as: DataType | None = None

    def partial(self, name: str) -> list[tuple[str, Column]]:
        raise AssertionError("nothing is computed here")

    merge = partial

    def finish(self, name: str) -> Column:
        raise AssertionError("nothing is computed here")


class Newer(Clipped):
    version = "2"


def test_a_users_class_is_known_by_its_version_and_its_plain_parameters() -> None:
    column = Column.__new__(Column)
    assert identity(Clipped("n", 3)) == ["Clipped", "1", ["of", "n"], ["limit", 3], ["kept_as", None]]
    variants = [
        Clipped("n", 3), Clipped("n", 5), Clipped("n", 5.5), Clipped("n", True), Clipped("n", None), Clipped("m", 3),
        Clipped("n", (3, ("a", None))), Clipped("n", (3, ("b", None))), Clipped("n", (LongType(),)),
        Clipped("n", 3, StringType()), Newer("n", 3), Clipped(column, 3),
    ]  # fmt: skip
    assert len({json.dumps(identity(each)) for each in variants}) == len(variants)
    for of in (column, max, ("n", column), [max]):
        assert identity(Clipped(of, 3)) == ["Clipped", "1", ["limit", 3], ["kept_as", None]]


def test_a_fingerprint_is_committed_with_the_digests_of_expressions() -> None:
    plain, printed = Fingerprint("0123456789abcdef"), Fingerprint("0123456789abcdef", ("0a1b2c3d", "44556677"))
    assert plain == printed
    assert json.loads(metadata(7, printed)) == {
        "stream_time": 7, "program": "0123456789abcdef", "expressions": "0a1b2c3d44556677",
    }  # fmt: skip
    found = committed_by(metadata(7, printed))
    assert found == Committed(7, printed)
    assert found.program.expressions == printed.expressions
    assert committed_by(metadata(None, plain)) == Committed(None, plain)


@pytest.mark.parametrize("expressions", [None, 5, "", "0a1"])
def test_what_was_committed_before_there_were_digests_is_read(expressions: object) -> None:
    said = {"stream_time": 7, "program": "p"} | ({} if expressions is None else {"expressions": expressions})
    assert committed_by(json.dumps(said)) == Committed(7, Fingerprint("p"))
