"""The data source without Spark: what a task writes, and its errors."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from kohort.client.errors import NotDeliveredError
from kohort.protocol.errors import KafkaError
from kohort.spark.datasource import KohortDataSource, writer
from kohort.spark.datasource.writer import TopicWriter
from kohort.spark.reading import RangeReader
from kohort.testing.broker import Broker

ROWS = pa.record_batch({"value": [b"a", b"b", b"c"]})


def made(broker: Broker, rows: pa.RecordBatch = ROWS, **options: str) -> TopicWriter:
    source = KohortDataSource({"servers": broker.bootstrap_servers, **options})
    return source.writer(from_arrow_schema(rows.schema), overwrite=False)


def values(broker: Broker, topic: str, number: int) -> list[bytes | None]:
    reader = RangeReader(broker.bootstrap_servers)
    try:
        batches = list(reader.read(topic, 0, 0, number))
    finally:
        reader.close()
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_rows_by_topic(kohort_fresh_broker: Broker) -> None:
    """A column names the topic unless the option does; brokers create topics, as for any producer."""
    rows = pa.record_batch({"value": [b"a", b"b", b"c"], "topic": ["one", "two", "one"]})
    assert made(kohort_fresh_broker, rows).write(iter([rows, rows])).records == 6
    assert made(kohort_fresh_broker, rows, topic="all").write(iter([rows])).records == 3
    for topic, wanted in {"one": [b"a", b"c"] * 2, "two": [b"b"] * 2, "all": [b"a", b"b", b"c"]}.items():
        assert values(kohort_fresh_broker, topic, len(wanted)) == wanted


def test_options_for_reading_are_refused(kohort_fresh_broker: Broker) -> None:
    with pytest.raises(ValueError, match="option 'includeheaders' is for reading only; there are servers, topic"):
        made(kohort_fresh_broker, topic="t", includeHeaders="true")
    with pytest.raises(ValueError, match="option 'topics' isn't known; there are servers, topic"):
        made(kohort_fresh_broker, topics="t")


@pytest.mark.kohort({"auto.create.topics.enable": "false"})
def test_a_topic_that_is_not_there(kohort_fresh_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before the producer's timeout, unless that is set."""
    assert writer._TOPIC_TIMEOUT_S <= 10
    monkeypatch.setattr(writer, "_TOPIC_TIMEOUT_S", 0.5)
    by_column = pa.record_batch({"value": [b"a"], "topic": ["gone"]})
    for task, rows in (
        (made(kohort_fresh_broker, topic="gone"), ROWS),
        (made(kohort_fresh_broker, by_column), by_column),
    ):
        began = time.monotonic()
        with pytest.raises(ValueError, match=r"topic 'gone' isn't there after 0\.5 s, and brokers don't make it"):
            task.write(iter([rows]))
        assert time.monotonic() - began < 30
    task = made(kohort_fresh_broker, topic="gone", **{"kafka.max.block.ms": "2000"})
    with pytest.raises(KafkaError, match="topic 'gone' isn't there after max_block_ms=2000"):
        task.write(iter([ROWS]))


@pytest.mark.kohort({"message.max.bytes": "1000"})
def test_rows_that_brokers_refuse(kohort_fresh_broker: Broker) -> None:
    rows = pa.record_batch({"value": [b"x" * 5_000]})
    with pytest.raises(NotDeliveredError, match="MESSAGE_TOO_LARGE"):
        made(kohort_fresh_broker, topic="t").write(iter([rows]))


def test_a_row_that_no_request_has_room_for(kohort_fresh_broker: Broker) -> None:
    rows = pa.record_batch({"value": [b"x" * 5_000]})
    with pytest.raises(ValueError, match="max_request_size"):
        made(kohort_fresh_broker, topic="t", **{"kafka.max.request.size": "2000"}).write(iter([rows]))


@pytest.mark.kohort({"message.max.bytes": "1000"})
def test_the_first_error_is_raised(kohort_fresh_broker: Broker) -> None:
    """The iterator of rows fails; then the buffered rows can't be delivered, either."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"x" * 5_000]})
        raise ZeroDivisionError("in a function of the user's")

    with pytest.raises(ZeroDivisionError, match="in a function of the user's"):
        made(kohort_fresh_broker, topic="t").write(rows())
