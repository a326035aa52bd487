"""`stream.for_each_batch(function)` in a Spark session."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kohort.spark import ProgramError, StreamsApp
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, run_until


class Forgiving(Heard):
    """Epochs, and failures that don't end the application."""

    def __init__(self) -> None:
        super().__init__()
        self.forgiven: list[str] = []

    def failed(self, text: str) -> None:
        self.forgiven.append(text)


def test_rows_come_as_they_are_and_again_with_their_id_when_an_epoch_fails(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """Exact types, a task's rows at a time; a second try has the same id and rows, though there is more to read."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "payments", "notes")
    sending = producer(servers)

    def send(first: int, count: int) -> None:
        for n in range(first, first + count):
            sending.produce("payments", b'{"n": %d, "at": "2026-01-01T00:00:00.123456Z"}' % n, partition=n % 2)
        sending.flush()

    calls: dict[str, list[list[int]]] = {}
    kept: dict[str, list[int]] = {}
    kinds: set[str] = set()

    def sink(rows: DataFrame, batch_id: str) -> None:
        kinds.add(rows.schema.simpleString())
        found = rows.collect()
        numbers = sorted(row.n for row in found)
        assert all(row.amount == Decimal(row.n).scaleb(-2) for row in found)
        assert {row.at.astimezone(UTC) for row in found} == {datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)}
        calls.setdefault(batch_id, []).append(numbers)
        kept.setdefault(batch_id, numbers)
        if len(calls) == 1 and len(calls[batch_id]) == 1:
            send(40, 40)
            raise RuntimeError("the sink has it, and the answer is lost")

    app = StreamsApp("paying", bootstrap_servers=servers, state_dir=tmp_path)
    payments = app.stream("payments", schema="n BIGINT, at TIMESTAMP")
    priced = payments.transform(lambda df: df.selectExpr("*", "CAST(n / 100 AS DECIMAL(10, 2)) AS amount"))
    priced.for_each_batch(sink).to("notes")
    send(0, 40)
    heard = Forgiving()
    run_until(app, spark, heard, lambda: heard.total("records") >= 80)
    assert kinds == {"struct<n:bigint,at:timestamp,amount:decimal(10,2)>"}
    assert sorted(n for numbers in kept.values() for n in numbers) == list(range(80))
    (first, *_) = calls
    assert calls[first][0] == calls[first][1]
    assert all(len({n % 2 for n in numbers}) == 1 for numbers in kept.values())
    for batch_id, numbers in kept.items():
        place, _, offsets = batch_id.partition(":")
        start, _, end = offsets.partition("-")
        assert place == f"payments-{numbers[0] % 2}"
        assert int(end) - int(start) == len(numbers)
    assert len(heard.forgiven) == 1


def test_a_database_that_keeps_the_ids_with_the_rows_has_each_row_once(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """As the guide says it, in SQLite: one try fails before the database's commit, the next one after it."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "payments", partitions=1)
    sending = producer(servers)
    for n in range(60):
        sending.produce("payments", b'{"n": %d}' % n, partition=0)
    sending.flush()
    file = tmp_path / "sink.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE batches (id TEXT PRIMARY KEY)")
        database.execute("CREATE TABLE payments (n INTEGER)")
    failing = iter([(True, False), (False, True)])
    passed_over: list[str] = []

    def sink(rows: DataFrame, batch_id: str) -> None:
        before, after = next(failing, (False, False))
        with closing(sqlite3.connect(file)) as database, database:
            if database.execute("INSERT INTO batches VALUES (?) ON CONFLICT DO NOTHING", [batch_id]).rowcount:
                database.executemany("INSERT INTO payments VALUES (?)", [(row.n,) for row in rows.collect()])
            else:
                passed_over.append(batch_id)
            if before:
                raise RuntimeError("nothing of it is in the database")
        if after:
            raise RuntimeError("all of it is in the database")

    app = StreamsApp("kept", bootstrap_servers=servers, state_dir=tmp_path / "state")
    app.stream("payments", schema="n BIGINT").for_each_batch(sink)
    heard = Forgiving()
    run_until(app, spark, heard, lambda: heard.total("records") >= 60)
    with closing(sqlite3.connect(file)) as database:
        rows = [n for (n,) in database.execute("SELECT n FROM payments ORDER BY n")]
        ids = [each for (each,) in database.execute("SELECT id FROM batches")]
    assert rows == list(range(60))
    assert len(heard.forgiven) == 2
    assert len(passed_over) == 1 and passed_over[0] in ids


def test_rows_that_lose_their_task_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    app = StreamsApp("lost", bootstrap_servers="127.0.0.1:1", state_dir=tmp_path)
    rows = app.stream("t", schema="n BIGINT").transform(lambda df: df.mapInArrow(lambda each: each, "n BIGINT"))
    rows.for_each_batch(lambda frame, batch_id: None)
    with pytest.raises(ProgramError, match="for_each_batch: a transform before it loses the column _partition"):
        app.describe(spark)


def test_something_that_is_no_function(tmp_path: Path) -> None:
    app = StreamsApp("none", bootstrap_servers="127.0.0.1:1", state_dir=tmp_path)
    with pytest.raises(ProgramError, match="for_each_batch takes a function of a DataFrame and an id, not 'table'"):
        app.stream("t", schema="n BIGINT").for_each_batch("table")  # type: ignore[arg-type]
