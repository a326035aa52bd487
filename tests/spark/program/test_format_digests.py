"""What is said of a program's stores beside its offsets."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.program.aggregates import avg, count
from kohort.spark.program.committed_metadata import MOST_OF_FORMATS, Fingerprint, committed_by, metadata, noted
from kohort.spark.program.compiled import Aggregate, AggregateSpec, Program, RowsInput, Store
from kohort.spark.program.format_digests import store_formats
from kohort.spark.program.store_formats import ROWS, StoreFormat, StoreFormats
from kohort.spark.program.upgrade_plan import without_readers
from tests.spark.program.programs import FLIGHT, program, spec


def formats_of(made: Program) -> dict[str, StoreFormats]:
    return {topic: each for part in made.subtopologies for topic, each in store_formats(part).items()}


def delays(made: AggregateSpec) -> StoreFormat:
    return formats_of(program(aggregate=made))["app-delays-repartition"]["delays"]


def test_each_topic_has_the_stores_that_are_made_of_it() -> None:
    found = formats_of(program())
    assert {topic: [*stores] for topic, stores in found.items()} == {
        "flights": [], "airlines": ["airlines"], "app-delays-repartition": ["delays"],
    }  # fmt: skip
    assert [*found["airlines"]["airlines"].columns] == ["carrier", "name"]
    part = program().subtopologies[1]
    rows = replace(part, input=RowsInput("rows", FLIGHT, ("carrier",)))
    assert [*store_formats(rows)["rows"]] == ["delays", ROWS]
    assert store_formats(replace(rows, id="7")) == store_formats(rows), "wherever it is in the program"


def test_columns_are_compared_each_by_itself() -> None:
    kinds = (("mean.sum", DoubleType()), ("mean.count", LongType()), ("n", LongType()))
    one, both = delays(spec()), delays(spec(aggregations=(("mean", avg("d")), ("n", count())), state_columns=kinds))
    assert both.keys == one.keys
    assert both.columns["n"] == one.columns["n"]
    other = delays(spec(aggregations=(("mean", avg("x")), ("n", count())), state_columns=kinds))
    assert (other.columns["n"], other.keys) == (both.columns["n"], both.keys)
    assert other.columns["mean"] != both.columns["mean"]
    typed = delays(spec(state_columns=(("n", StringType()),)))
    assert (typed.keys, typed.columns == one.columns) == (one.keys, False)
    assert delays(spec(emit="close")) == one


@pytest.mark.parametrize(
    "changed",
    [spec(size="2 hours"), spec(group=(("dest", StringType()),)), spec(window=None), spec(routed_by=())],
)
def test_keys_change_with_groups_windows_and_partitions(changed: AggregateSpec) -> None:
    assert delays(changed).keys != delays(spec()).keys


def test_state_is_found_again_by_the_next_version_of_kohort() -> None:
    """No changed program would go on with what was committed before, if one of these changed."""
    assert delays(spec()) == StoreFormat("f51eaecb", {"n": "1cc6a2"})


def test_formats_that_are_too_long_are_left_out() -> None:
    fingerprint = Fingerprint("p")
    wide = {"wide": StoreFormat("k", {f"column{number}": "123456" for number in range(200)})}
    assert committed_by(metadata(7, fingerprint, formats=noted(wide))) == (7, fingerprint, None, None)
    some = {"some": StoreFormat("k", {f"column{number}": "123456" for number in range(50)})}
    text = metadata(7, fingerprint, 9, noted(some))
    assert MOST_OF_FORMATS / 3 < len(text) < MOST_OF_FORMATS
    assert committed_by(text) == (7, fingerprint, 9, some)
    assert committed_by(metadata(7, fingerprint, formats=noted({}))) == (7, fingerprint, None, {})
    assert committed_by('{"stream_time":1,"program":"p","stores":[3]}') is None


def test_repartition_topics_that_nobody_reads_any_more_keep_in_mind_that_rows_are_missed() -> None:
    other = program(aggregate=spec("late", changelog="app-late-changelog"))
    offsets = {
        TopicPartition(topic, 0): OffsetAndMetadata(5, metadata=metadata(1, Fingerprint("p"), None, noted(formats)))
        for topic, formats in (*formats_of(program()).items(), ("elsewhere", {"kept": StoreFormat("k", {})}))
    }
    marked = without_readers(other, offsets)
    (at,) = marked
    assert at == TopicPartition("app-delays-repartition", 0)
    said = committed_by(marked[at].metadata)
    assert said is not None
    assert said.formats is not None
    assert [each.left for each in said.formats.values()] == [True]
    assert not without_readers(other, marked), "once"
    assert not without_readers(program(), offsets)


def test_a_column_of_a_table_is_known_by_its_type() -> None:
    schema = StructType([StructField("carrier", StringType()), StructField("name", LongType())])
    made = program()
    table = replace(made.subtopologies[0].tables[0])
    source = replace(table.source, schema=schema)
    part = replace(made.subtopologies[0], tables=(replace(table, source=source),))
    was, now = formats_of(made)["airlines"]["airlines"], store_formats(part)["airlines"]["airlines"]
    assert was.keys == now.keys
    assert [name for name in was.columns if was.columns[name] != now.columns[name]] == ["name"]


def test_groups_that_wait_have_a_format_too() -> None:
    part = program().subtopologies[1]
    (branch,) = part.branches
    assert isinstance(branch.terminal, Aggregate)
    waiting = replace(branch.terminal, waiting=Store("delays-waiting", "app-delays-waiting-changelog"))
    part = replace(part, branches=(replace(branch, terminal=waiting),))
    found = store_formats(part)["app-delays-repartition"]
    assert [*found] == [each.name for each in part.stores] == ["delays", "delays-waiting"]
