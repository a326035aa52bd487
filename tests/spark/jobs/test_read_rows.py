"""The stage that reads rows, and a table's last record of each key."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812

from kohort.client.config import ClientConfig
from kohort.client.types import TopicPartition
from kohort.spark import reading
from kohort.spark.epoch import ROWS_SCHEMA, OffsetRange
from kohort.spark.formats.derived_times import DerivedTime
from kohort.spark.formats.times import TimeFormats
from kohort.spark.jobs.stages.read_rows import RowsReading, read_rows_stage
from kohort.spark.jobs.subtopology_jobs import last_of_each_key
from kohort.spark.program.internal_columns import PARTITION, STREAM_TIME, TIMESTAMP
from kohort.spark.reading.reader import CorruptBatch
from tests.spark.jobs.fakes import FakeReader, FakeRpc, splits

SCHEMA = T.StructType([T.StructField("a", T.IntegerType()), T.StructField("at", T.TimestampType())])
READING = RowsReading(
    ClientConfig(bootstrap_servers="127.0.0.1:1"),
    SCHEMA.json(),
    "json",
    None,
    "at",
    "dead",
    internal_columns=(PARTITION, TIMESTAMP),
    table=False,
)
RECORDS: list[tuple[int, int, int, bytes | None, bytes | None]] = [
    (0, 0, 100, b"k", b'{"a":1,"at":"1970-01-01T00:00:01.0019Z"}'),
    (0, 1, 101, b"k", b"oops"),
    (1, 5, 102, b"l", b'{"a":2,"at":"1970-01-01T00:00:03Z"}'),
    (1, 6, 103, None, b'{"a":3}'),
]


def read(
    rpc: FakeRpc,
    monkeypatch: pytest.MonkeyPatch,
    wanted: RowsReading,
    records: list[tuple[int, int, int, bytes | None, bytes | None]] = RECORDS,
    numbers: tuple[int, ...] = (0,),
) -> list[dict[str, object]]:
    monkeypatch.setattr(reading, "shared", lambda servers: FakeReader(records), raising=False)
    rpc.ranges = (OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 0, 10))
    return [row for batch in read_rows_stage(rpc.context, wanted)(splits(*numbers)) for row in batch.to_pylist()]


def test_rows_are_read_and_counted_and_the_bad_ones_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    rows = read(rpc, monkeypatch, READING)
    assert [(row["a"], row["_partition"], row["_time"]) for row in rows] == [(1, 0, 100), (2, 1, 102), (3, 1, 103)]
    report = rpc.reports["rows"]
    assert (report.records, report.reasons, report.max_times) == (4, {"unreadable": 1}, {0: 1_001, 1: 3_000})
    assert report.bytes == sum(len(key or b"") + len(value or b"") for *_, key, value in RECORDS)
    (one,) = report.reads
    assert (one.records, one.bytes, one.partitions) == (4, report.bytes, ("t-0", "t-1"))
    assert 0 < one.fetch_ms + one.decode_ms <= one.took_ms
    (dead,) = report.dead.to_pylist()
    assert dead.pop("error") and not dead.pop("headers")
    assert dead == {"topic": "t", "partition": 0, "offset": 1, "timestamp": 101, "key": b"k", "value": b"oops"}


def test_without_event_time_records_have_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    rows = read(rpc, monkeypatch, replace(READING, event_time=None, internal_columns=(PARTITION,), on_error="drop"))
    assert list(rows[0]) == ["a", "at", "_partition"]
    report = rpc.reports["rows"]
    assert (report.dropped, report.max_times, report.dead.num_rows) == (1, {0: 100, 1: 103}, 0)


@pytest.mark.parametrize(("on_error", "kept"), [("drop", 0), ("dead", 1)])
def test_a_batch_that_can_not_be_read_is_left_out_and_told_of(
    on_error: Literal["drop", "dead"], kept: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rpc = FakeRpc()
    batch = CorruptBatch(TopicPartition("t", 1), 7, 10, "corrupt data", b"the batch", 104)
    monkeypatch.setattr(reading, "shared", lambda servers: FakeReader(RECORDS[2:], [batch]), raising=False)
    rpc.ranges = (OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 0, 10))
    stage = read_rows_stage(rpc.context, replace(READING, on_error=on_error))
    assert [row["a"] for rows in stage(splits(0)) for row in rows.to_pylist()] == [2, 3]
    report = rpc.reports["rows"]
    assert (report.records, report.reasons, report.dead.num_rows) == (2, {"unreadable": 3}, kept)
    assert "topic t, partition 1: a batch that can't be read, offsets 7 to 9: corrupt data" in caplog.text
    if kept:
        (dead,) = report.dead.to_pylist()
        assert "offsets 7 to 9" in dead.pop("error") and not dead.pop("headers")
        assert dead == {
            "topic": "t", "partition": 1, "offset": 7, "timestamp": 104, "key": None, "value": b"the batch"
        }  # fmt: skip


def test_fail_stops_at_the_first_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    records = [(0, number, 1, None, b"bad") for number in range(5)]
    assert read(rpc, monkeypatch, replace(READING, on_error="fail"), [*records]) == []
    assert rpc.reports["rows"].dead.column("offset").to_pylist() == [0]


def test_a_tables_tombstones_are_rows_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    records: list[tuple[int, int, int, bytes | None, bytes | None]] = [
        (0, 0, 1, b"k", b'{"a":1}'), (0, 1, 2, b"k", None), (0, 2, 3, b"k", b'{"a":2}'), (1, 0, 4, b"l", None),
    ]  # fmt: skip
    rows = read(rpc, monkeypatch, replace(READING, event_time=None, table=True), records)
    assert [(row["a"], row["_tombstone"]) for row in rows if row["_partition"] == 0] == [
        (1, None),
        (None, "k"),
        (2, None),
    ]
    assert [(row["a"], row["_tombstone"]) for row in rows if row["_partition"] == 1] == [(None, "l")]


def test_a_tables_tombstone_without_a_key_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    records: list[tuple[int, int, int, bytes | None, bytes | None]] = [(0, 0, 1, None, None), (0, 1, 2, b"", None)]
    rows = read(rpc, monkeypatch, replace(READING, event_time=None, table=True), records)
    assert [row["_tombstone"] for row in rows] == [""]
    assert (rpc.reports["rows"].records, rpc.reports["rows"].reasons) == (2, {"no key": 1})


def test_a_table_may_have_nothing_but_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    assert read(rpc, monkeypatch, replace(READING, event_time=None, table=True), [(0, 0, 1, None, None)]) == []
    assert (rpc.reports["rows"].records, rpc.reports["rows"].dropped) == (1, 1)


def test_a_key_of_several_columns_may_be_written_in_any_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    keys = [b'{ "at": "1970-01-01T00:00:03Z", "a": 1 }', b"oops", b'{"a":2}']
    wanted = replace(READING, event_time=None, table=True, key=("a", "at"))
    rows = read(rpc, monkeypatch, wanted, [(0, number, 1, key, None) for number, key in enumerate(keys)])
    three = datetime.datetime(1970, 1, 1, 0, 0, 3, tzinfo=datetime.UTC)
    assert [(row["a"], row["at"]) for row in rows] == [(1, three), (2, None)]
    assert all(row["_tombstone"] for row in rows)
    assert rpc.reports["rows"].dropped == 1


def test_a_time_that_is_none_isnt_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliseconds taken for seconds: everything after it would be late for ever."""
    rpc = FakeRpc()
    monkeypatch.setattr("kohort.spark.jobs.stages.stream_time.LAST_MS", 3_000)
    values = [b'{"a":1,"at":"1970-01-01T00:00:03Z"}', b'{"a":1,"at":"1970-01-01T00:00:04Z"}']
    read(rpc, monkeypatch, READING, [(0, number, 1, b"k", value) for number, value in enumerate(values)])
    assert rpc.reports["rows"].max_times == {0: 3_000}


@pytest.mark.parametrize("whole", [False, True])
def test_a_task_reads_the_splits_that_it_is_given(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    rpc = FakeRpc()
    read(rpc, monkeypatch, replace(READING, whole_partitions=whole), numbers=(3, 1))
    assert rpc.splits == [(3, whole), (1, whole)]


def test_repartitioned_rows_without_event_time_dont_move_stream_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    now = 1_800_000_000_000  # the time of sending, which such a record gets
    records: list[tuple[int, int, int, bytes | None, bytes | None]] = [
        (0, 0, 5, b"k", b'{"a":1,"at":-1500}'), (0, 1, now, b"k", b'{"a":2,"at":null}'),
        (1, 0, now, b"k", b'{"a":2,"at":null}'),
    ]  # fmt: skip
    kinds = [T.StructField(name, T.LongType()) for name in ("a", "at")]
    wire = replace(READING, schema=T.StructType(kinds).json(), format="encoded")
    assert len(read(rpc, monkeypatch, wire, records)) == 3
    assert rpc.reports["rows"].max_times == {0: -2}


def test_the_last_record_of_a_key_counts() -> None:
    rows = [
        {"key": key, "value": value, "partition": partition}
        for partition, key, value in [
            (0, b"a", b"1"),
            (0, b"b", b"2"),
            (1, b"a", b"3"),
            (0, b"a", None),
            (0, None, b"4"),
        ]
    ]
    found = last_of_each_key(pa.Table.from_pylist(rows, schema=ROWS_SCHEMA))
    assert [(row["partition"], row["key"], row["value"]) for row in found.to_pylist()] == [
        (0, b"b", b"2"), (1, b"a", b"3"), (0, b"a", None), (0, None, b"4"),
    ]  # fmt: skip
    assert last_of_each_key(ROWS_SCHEMA.empty_table()).num_rows == 0


def test_columns_of_times_that_are_made_come_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    when = T.TimestampType()
    schema = T.StructType([T.StructField("_timestamp", when), *SCHEMA.fields, T.StructField("when", when)])
    derived = (DerivedTime("_timestamp"), DerivedTime("when", "timestamp_seconds", "a"))
    wanted = replace(READING, schema=schema.json(), derived=derived, event_time="when")
    rows = read(rpc, monkeypatch, wanted)
    assert list(rows[0])[:4] == ["_timestamp", "a", "at", "when"]
    found = [(str(row["_timestamp"])[17:23], row["a"], str(row["when"])[17:19]) for row in rows]
    assert found == [("00.100", 1, "01"), ("00.102", 2, "02"), ("00.103", 3, "03")]
    assert rpc.reports["rows"].max_times == {0: 1_000, 1: 3_000}


def test_a_tombstone_has_its_records_time_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    when = T.TimestampType()
    schema = T.StructType([T.StructField("_timestamp", when), *SCHEMA.fields, T.StructField("when", when)])
    derived = (DerivedTime("_timestamp"), DerivedTime("when", "timestamp_seconds", "a"))
    records: list[tuple[int, int, int, bytes | None, bytes | None]] = [
        (0, 0, 100, b"k", b'{"a":1}'), (0, 1, 200, b"k", None), (0, 2, -1, b"k", None),
    ]  # fmt: skip
    wanted = replace(
        READING, schema=schema.json(), derived=derived, event_time="_timestamp", table=True,
        internal_columns=(PARTITION, TIMESTAMP, STREAM_TIME),
    )  # fmt: skip
    rows = read(rpc, monkeypatch, wanted, records)
    assert [str(row["_timestamp"])[17:23] for row in rows] == ["00.100", "00.200", ""]
    assert [row["when"] is None for row in rows] == [False, True, True]
    assert [row["_stream_time"] for row in rows] == [100, 200, 200]
    rows = read(rpc, monkeypatch, replace(wanted, event_time="when"), records)
    assert [row["_stream_time"] for row in rows] == [1_000, 1_000, 1_000]


def test_times_are_read_as_the_source_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    times = TimeFormats((("at", "timestamp_millis"),))
    records: list[tuple[int, int, int, bytes | None, bytes | None]] = [
        (0, 0, 1, None, b'{"at":5000}'),
        (0, 1, 1, None, b'{"at":"1970-01-01T00:00:01Z"}'),
    ]
    rows = read(rpc, monkeypatch, replace(READING, times=times), records)
    assert len(rows) == 1
    assert (rpc.reports["rows"].max_times, rpc.reports["rows"].reasons) == ({0: 5_000}, {"unreadable": 1})
