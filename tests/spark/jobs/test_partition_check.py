"""Records that say where they belong, those that don't, and those that lie elsewhere."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace

import pytest
from pyspark.sql import types as T  # noqa: N812

from kohort.client.config import ClientConfig
from kohort.protocol.records.partitioner import Partitioner, partition_of
from kohort.spark import reading
from kohort.spark.epoch import OffsetRange
from kohort.spark.jobs.stages.partition_check import PartitionCheck
from kohort.spark.jobs.stages.read_rows import RowsReading, read_rows_stage
from kohort.spark.program.internal_columns import PARTITION
from tests.spark.jobs.fakes import FakeReader, FakeRpc, splits

PARTITIONS = 4
SCHEMA = T.StructType([T.StructField("k", T.StringType()), T.StructField("n", T.IntegerType())])
CHECK = PartitionCheck(("k",), "murmur2", table=False, plain_decimals=True)
READING = RowsReading(
    ClientConfig(bootstrap_servers="127.0.0.1:1"), SCHEMA.json(), "json", None, None, "dead",
    internal_columns=(PARTITION,), table=False, partition_check=CHECK, null_partitions=True,
)  # fmt: skip
Record = tuple[int, int, int, bytes | None, bytes | None]


def read(
    rpc: FakeRpc, monkeypatch: pytest.MonkeyPatch, wanted: RowsReading, *records: tuple[int, str | None, object]
) -> list[dict[str, object]]:
    """Rows of records of (partition, key, value)."""
    made: list[Record] = [
        (
            at,
            offset,
            offset,
            None if key is None else key.encode(),
            None if value is None else json.dumps(value).encode(),
        )
        for offset, (at, key, value) in enumerate(records)
    ]
    monkeypatch.setattr(reading, "shared", lambda servers: FakeReader(made), raising=False)
    rpc.ranges = tuple(OffsetRange("t", number, 0, 100) for number in range(PARTITIONS))
    rpc.partitions = PARTITIONS
    return [row for batch in read_rows_stage(rpc.context, wanted)(splits(0)) for row in batch.to_pylist()]


def home(key: str, partitioner: Partitioner = "murmur2") -> int:
    return partition_of(key.encode(), PARTITIONS, partitioner)


def astray(key: str) -> int:
    return (home(key) + 1) % PARTITIONS


def test_a_record_without_a_key_belongs_nowhere_whatever_its_columns_say(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    records = [(at, None, {"k": "x"}) for at in range(PARTITIONS)]
    rows = read(rpc, monkeypatch, READING, *records, (home("x"), "x", {"k": "x"}))
    assert [row["_partition"] for row in rows if row["k"] == "x"].count(None) == PARTITIONS
    assert len(rows) == PARTITIONS + 1
    report = rpc.reports["rows"]
    assert (report.records, report.reasons) == (PARTITIONS + 1, {})
    assert report.max_times == {home("x"): PARTITIONS}  # where they lie, they say nothing of the stream's time
    rows = read(rpc, monkeypatch, replace(READING, null_partitions=False), *records)
    assert [row["_partition"] for row in rows] == [0, 1, 2, 3]  # as for what goes by no task


def test_without_a_check_rows_are_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read(
        FakeRpc(), monkeypatch, replace(READING, partition_check=None), (1, None, {"k": "x"}), (2, "x", {"k": "y"})
    )
    assert [row["_partition"] for row in rows] == [1, 2]


@pytest.mark.parametrize("on_error", ["fail", "dead", "drop"])
def test_a_record_that_lies_elsewhere_is_bad(monkeypatch: pytest.MonkeyPatch, on_error: str) -> None:
    rpc = FakeRpc()
    wanted = replace(READING, on_error=on_error)  # type: ignore[arg-type]
    rows = read(
        rpc, monkeypatch, wanted,
        (home("x"), "x", {"k": "x"}), (astray("x"), "x", {"k": "x"}), (astray("y"), "y", {"k": "y"}),
    )  # fmt: skip
    assert {row["k"] for row in rows} <= {"x"}
    report = rpc.reports["rows"]
    assert report.reasons == {"misplaced": 2}
    errors = report.dead.column("error").to_pylist()
    assert len(errors) == {"fail": 1, "dead": 2, "drop": 0}[on_error]
    for error in errors[:1]:
        key = report.dead.column("key").to_pylist()[0].decode()
        assert f"k = '{key}' belongs into partition {home(key)} of 4 by murmur2, but the record, whose key is " in error
        assert f"lies in {astray(key)}" in error and '.repartition("k")' in error


def test_the_partitioner_that_fits_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"key-{number}" for number in range(20)]
    rpc = FakeRpc()
    records = [(zlib.crc32(key.encode()) % PARTITIONS, key, {"k": key}) for key in keys]
    one = next(record for record in records if record[0] != home(record[1]))
    read(rpc, monkeypatch, READING, one)
    error = rpc.reports["rows"].dead["error"][0].as_py()
    assert 'partitioner="crc32" fits here (librdkafka\'s default): say it where the stream is made' in error
    crc32 = replace(READING, partition_check=replace(CHECK, partitioner="crc32"))
    rows = read(rpc, monkeypatch, crc32, *records, (0, "", {"k": "x"}), (1, None, {"k": "x"}))
    assert [row["_partition"] is None for row in rows].count(True) == 2  # librdkafka deals both anywhere
    assert rpc.reports["rows"].reasons == {}


def test_a_row_without_its_column_belongs_where_all_such_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    rows = read(rpc, monkeypatch, READING, (home(""), "?", {"n": 1}), (astray(""), "?", {"n": 2}))
    assert [row["n"] for row in rows] == [1]
    assert rpc.reports["rows"].reasons == {"misplaced": 1}
    assert "k = null belongs into" in rpc.reports["rows"].dead["error"][0].as_py()


def test_a_tombstone_is_left_out_and_counted_or_kept_without_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    records = [(home("x"), "x", None), (home("x"), "x", {"k": "x"}), (astray("x"), "x", None)]
    rows = read(rpc, monkeypatch, replace(READING, tombstones=False), *records)
    assert [row["k"] for row in rows] == ["x"]
    report = rpc.reports["rows"]
    assert (report.reasons, report.max_times) == ({"no value": 2}, {home("x"): 1})
    rows = read(rpc, monkeypatch, READING, *records)
    assert sorted((row["k"], row["_partition"]) for row in rows if row["k"]) == [("x", home("x"))]
    assert [row["_partition"] for row in rows if not row["k"]] == [None, None]
    assert rpc.reports["rows"].reasons == {}


TABLE = replace(READING, table=True, keyless=False, partition_check=replace(CHECK, table=True), null_partitions=False)


def test_a_tables_records_lie_where_they_belong_or_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    rows = read(
        rpc, monkeypatch, TABLE,
        (home("x"), "x", {"k": "x"}), (home("x"), "x", None),
        (astray("y"), "y", {"k": "y"}), (astray("y"), "y", None),
        (0, None, {"k": "z"}), (0, None, None), (0, "?", {"n": 1}),
    )  # fmt: skip
    assert [(row["k"], row["_tombstone"]) for row in rows if row["_partition"] == home("x") and not row["n"]] == [
        ("x", None),
        (None, "x"),
    ]
    assert rpc.reports["rows"].reasons == {"no key": 2, "misplaced": 2}
    assert "app.global_table" in rpc.reports["rows"].dead["error"][0].as_py()


def test_a_tables_tombstone_belongs_where_its_columns_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key's bytes may have blanks: by them it would delete in another partition than the row is in."""
    rpc = FakeRpc()
    wanted = replace(TABLE, key=("k", "n"), partition_check=replace(TABLE.partition_check, key=("k", "n")))  # type: ignore[type-var]
    key = '{"k":"x","n":1}'
    rows = read(rpc, monkeypatch, wanted, (home(key), '{ "n": 1, "k": "x" }', None), (astray(key), key, None))
    assert [(row["k"], row["n"], row["_partition"]) for row in rows] == [("x", 1, home(key))]
    assert rpc.reports["rows"].reasons == {"misplaced": 1}


def test_a_misplaced_tombstone_is_told_of_whatever_its_key_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    key = b"\xff"
    record = ((partition_of(key, PARTITIONS) + 1) % PARTITIONS, 0, 0, key, None)
    monkeypatch.setattr(reading, "shared", lambda servers: FakeReader([record]), raising=False)
    rpc.ranges, rpc.partitions = (OffsetRange("t", record[0], 0, 1),), PARTITIONS
    assert not list(read_rows_stage(rpc.context, TABLE)(splits(0)))
    assert "k = '�' belongs into" in rpc.reports["rows"].dead["error"][0].as_py()
