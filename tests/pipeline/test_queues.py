"""Queues in a Spark session: what users write, what becomes of rows, and errors as sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kohort.spark import ProgramError, StreamsApp
from kohort.spark.testing import QueueDriver
from tests.spark.formats.fake_registry import fake_registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTCOME = "CASE WHEN size < 0 THEN 'reject' WHEN size = 0 THEN 'release' WHEN size < 100 THEN 'accept' END"


def queue_of(app: StreamsApp, **options: Any) -> Any:
    return app.queue("images", schema="id STRING, size INT", dead_letters="images-dead", **options)


def test_rows_say_what_becomes_of_their_records(spark: SparkSession) -> None:
    app = StreamsApp("thumbnails")
    sized = (
        queue_of(app, max_deliveries=3).with_columns(outcome=OUTCOME, why="concat('size ', size)").where("size <> 7")
    )
    sized.process(outcome="outcome", reason="why", missing="release").to("thumbnails", key="id").to(
        "ids", format="string", key="size"
    )
    rows = [{"id": "a", "size": 12}, {"id": "b", "size": -1}, {"id": "c", "size": 0}, {"id": "d", "size": 7}, "{", None]
    with QueueDriver(app, spark) as driver:
        assert driver.pipe("images", rows) == ["accept", "reject", "release", "release", "reject", "reject"]
        made = driver.output("thumbnails")
        assert made == [{"id": "a", "size": 12}]
        assert made.records["key"].to_pylist() == [b"a"]
        assert driver.output("thumbnails") == []
        dead = driver.output("images-dead")
        assert [each["error"] for each in dead][::2] == ["size -1", "the record has no value"]
        assert [each["offset"] for each in dead] == [1, 4, 5]
        assert driver.pipe("images", [{"id": "c", "size": 0}], delivery_count=3) == ["reject"]
        (dead_,) = driver.output("images-dead")
        assert dead_["error"] == "given up at delivery 3 of 3: size 0"


def test_records_go_through_functions_of_arrow_that_keep_who_they_are(spark: SparkSession) -> None:
    def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 13 in batch.column("size").to_pylist():
                raise ValueError("13 is bad luck")
            yield pa.RecordBatch.from_arrays(
                [batch.column("size"), batch.column("_partition"), batch.column("_offset")],
                names=["size", "_partition", "_offset"],
            )

    def through_arrow(rows: DataFrame) -> DataFrame:
        return rows.mapInArrow(doubled, "size INT, _partition INT, _offset LONG")

    app = StreamsApp("doubles")
    batches: list[tuple[list[int], str]] = []

    def write(rows: DataFrame, batch_id: str) -> None:
        batches.append((sorted(row["size"] for row in rows.collect()), batch_id))

    queue_of(app).process(through_arrow).for_each_batch(write)
    sizes = [1, 2, 13, 4]
    with QueueDriver(app, spark) as driver:
        outcomes = driver.pipe("images", [{"size": size} for size in sizes])
    assert outcomes == ["accept", "accept", "release", "accept"]
    assert batches == [([1, 2, 4], "images-test-1")]


@pytest.mark.parametrize("kind", ["avro", "json_schema", "protobuf"])
def test_results_are_written_with_registered_schemas(spark: SparkSession, kind: str) -> None:
    with fake_registry() as server:
        app = StreamsApp("thumbnails", schema_registry=server.registry())
        queue_of(app).process().to("thumbnails", format=kind, subject="thumbs").to(
            "plain", format="avro", schema_registry=False
        )
        with QueueDriver(app, spark) as driver:
            assert driver.pipe("images", [{"id": "a", "size": 12}]) == ["accept"]
            (registered,), (plain,) = driver.output("thumbnails"), driver.output("plain")
        (version,) = server.subjects["thumbs"]
        assert registered["value"][:5] == b"\0" + version["id"].to_bytes(4)
        assert plain["value"] == b"\0\x02a\0\x18"


def test_a_description_has_topics_steps_and_outcomes(spark: SparkSession) -> None:
    app = StreamsApp("thumbnails")
    queue_of(app).with_columns(outcome="'accept'").process(outcome="outcome").to("thumbnails")
    text = app.describe(spark)
    assert "Queue: images (format: json, max records: 500)" in text
    assert "as column outcome says" in text
    assert "Sink: thumbnails (format: json)" in text
    assert "Dead letters: images-dead" in text


def lost(app: StreamsApp) -> None:
    queue_of(app).process(lambda rows: rows.mapInArrow(lambda batches: batches, "id STRING, size INT"))


def several(app: StreamsApp) -> None:
    queue_of(app).process(lambda rows: rows.groupBy("id").count())


def no_outcome(app: StreamsApp) -> None:
    queue_of(app).process(outcome="outcome")


def not_text(app: StreamsApp) -> None:
    queue_of(app).process(outcome="size")


def unprocessed(app: StreamsApp) -> None:
    queue_of(app)


def beside_a_stream(app: StreamsApp) -> None:
    queue_of(app).process()
    app.stream("flights", schema="id STRING").to("out")


def twice(app: StreamsApp) -> None:
    queue = queue_of(app)
    queue.process()
    queue.process()


def to_itself(app: StreamsApp) -> None:
    app.queue("images", schema="id STRING", dead_letters="images")


def no_registry(app: StreamsApp) -> None:
    queue_of(app).process().to("thumbnails", format="protobuf")


def none_at_a_time(app: StreamsApp) -> None:
    queue_of(app, max_records=0)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (lost, "loses the column _partition, by which records are acknowledged"),
        (several, "would go over those rows that happen to be in an epoch; a transform of a queue treats each row"),
        (no_outcome, r"queue 'images': process\(outcome='outcome'\): there is no such column; there are id, size"),
        (not_text, "this is STRING, but 'size' is INT"),
        (unprocessed, "nothing is done with it; say .process"),
        (beside_a_stream, "an application has streams or queues, not both"),
        (twice, "it is processed already, and a record is acknowledged once"),
        (to_itself, "its dead letters can't go to the topic itself"),
        (no_registry, r"to\('thumbnails'\): format=\"protobuf\" needs a registry: say schema_registry="),
        (none_at_a_time, "max_records=0 must be a whole number, 1 or more"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    spark: SparkSession, written: Callable[[StreamsApp], None], sentence: str
) -> None:
    app = StreamsApp("thumbnails")
    with pytest.raises(ProgramError, match=sentence):
        written(app)
        app.compile_queues(spark)


def test_what_a_queue_lacks_is_said() -> None:
    with pytest.raises(AttributeError, match=r"say first what becomes of the records: .process\(outcome=…\).to"):
        queue_of(StreamsApp("thumbnails")).to("out")
    with pytest.raises(ProgramError, match="a queue has no branches"):
        queue_of(StreamsApp("thumbnails")).branch(late="size > 1")


def test_the_programs_of_the_guide_run(spark: SparkSession) -> None:
    page = Path(__file__).parents[2] / "docs" / "queues.md"
    scope: dict[str, Any] = {"__name__": "guide"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), scope)
    scope["test_images_become_thumbnails"]()
