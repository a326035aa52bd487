"""What a program does that its author may not expect is told, with the line, and described."""

from __future__ import annotations

import linecache
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import (
    ProgramError,
    StreamsApp,
    count,
    list_state,
    max_,
    session,
    sliding,
    unlimited,
    value_state,
    window,
)
from kohort.spark.program.notes import Moved, Note, Unbounded, tell
from kohort.spark.program.streams import Stream
from kohort.spark.testing import TestDriver

CLICK = "user STRING, page STRING, n INT, at TIMESTAMP"


def nothing(rows: Any, state: Any) -> None:
    return None


def lists(stream: Stream, ttl: str | None = None) -> Any:
    states = {"pages": list_state("page STRING", ttl=ttl), "last": value_state("page STRING")}
    return stream.group_by("user").process("seen", nothing, output="user STRING", states=states)


def counted(stream: Stream, *by: Any, emit: Any = "update") -> Any:
    return stream.group_by("user", *by).aggregate("n", emit, n=count())


def notes_of(write: Callable[[Stream], Any], spark: SparkSession) -> tuple[Note, ...]:
    app = StreamsApp("shop")
    write(app.stream("clicks", schema=CLICK, key="user", event_time="at"))
    return app.compile(spark).notes


UNBOUNDED: dict[str, tuple[Callable[[Stream], Any], str]] = {
    "repetitions": (lambda clicks: clicks.dedupe("user", "page").to("x"), "clicks-dedupe-user-page"),
    "windows": (lambda clicks: counted(clicks, window("at", "1 hour")), "n"),
    "windows with a grace": (lambda clicks: counted(clicks, window("at", "1 hour", grace="1 hour"), emit="close"), "n"),
    "sliding windows": (lambda clicks: counted(clicks, sliding("at", "1 hour", grace="1 hour")), "n"),
    "sessions": (lambda clicks: counted(clicks, session("at", "1 hour")), "n"),
    "ranks of windows": (lambda clicks: clicks.group_by("user", window("at", "1 hour")).top(3, by="n").to("x"),
                         "clicks-top-user"),
    "lists": (lambda clicks: lists(clicks), "seen-pages"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNBOUNDED)
def test_state_that_nothing_bounds_is_noted_with_its_line(name: str, spark: SparkSession) -> None:
    write, store = UNBOUNDED[name]
    (note,) = notes_of(write, spark)
    assert isinstance(note, Unbounded)
    assert (note.store, note.meant) == (store, False)
    path, _, line = note.at.rpartition(", line ")
    assert path == __file__ and linecache.getline(path, int(line)).strip()


def clocked(stream: Stream) -> Stream:
    return stream.with_columns(now="current_timestamp()")


OF_THE_CLOCK: dict[str, tuple[Callable[[Stream, str | None], Any], str]] = {
    "windows": (lambda clicks, how: counted(clocked(clicks), window("now", "1 hour", retention=how)), "window"),
    "sessions": (lambda clicks, how: counted(clocked(clicks), session("now", "1 hour", retention=how)), "session"),
    "ranks of windows": (
        lambda clicks, how: (
            clocked(clicks).group_by("user", window("now", "1 hour", retention=how)).top(3, by="n").to("x")
        ),
        "window",
    ),
}


@pytest.mark.parametrize("name", OF_THE_CLOCK)
def test_of_windows_over_the_clock_that_is_advised_which_can_be_said(
    name: str, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    write, called = OF_THE_CLOCK[name]
    (note,) = notes_of(lambda clicks: write(clicks, None), spark)
    assert isinstance(note, Unbounded)
    tell("shop", [note])
    assert caplog.messages == [
        f'shop: store {note.store} is unbounded: it keeps {note.keeps}. Say {called}(…, retention="forever") if that '
        f"is meant: a grace and a retention go by the stream's event time, and 'now' isn't that ({note.at})"
    ]
    (meant,) = notes_of(lambda clicks: write(clicks, "forever"), spark)
    assert isinstance(meant, Unbounded) and meant.meant


MEANT: dict[str, Callable[[Stream], Any]] = {
    "repetitions": lambda clicks: clicks.dedupe("user", within="forever").to("x"),
    "windows": lambda clicks: counted(clicks, window("at", "1 hour", retention="forever")),
    "sliding windows": lambda clicks: counted(clicks, sliding("at", "1 hour", grace="1 hour", retention="forever")),
    "sessions": lambda clicks: counted(clicks, session("at", "1 hour", retention="forever")),
    "lists": lambda clicks: lists(clicks, "forever"),
}


@pytest.mark.parametrize("name", MEANT)
def test_what_the_program_says_on_purpose_is_not_warned_of(
    name: str, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    (note,) = notes_of(MEANT[name], spark)
    assert isinstance(note, Unbounded) and note.meant
    tell("shop", [note])
    assert not caplog.records


BOUNDED: dict[str, Callable[[Stream], Any]] = {
    "groups": lambda clicks: counted(clicks),
    "last rows": lambda clicks: clicks.group_by("user").latest_by("at").to("x"),
    "ranks": lambda clicks: clicks.group_by("user").top(3, by="n").to("x"),
    "repetitions": lambda clicks: clicks.dedupe("user", within="1 hour").to("x"),
    "windows": lambda clicks: counted(clicks, window("at", "1 hour", grace="1 hour", retention="1 day")),
    "one window": lambda clicks: counted(clicks, unlimited("at", start="2013-01-01T00:00:00Z")),
    "sessions": lambda clicks: counted(clicks, session("at", "1 hour", grace="1 hour", retention="1 day")),
    "lists": lambda clicks: lists(clicks, "1 day"),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_grows_with_its_keys_alone_is_not_noted(name: str, spark: SparkSession) -> None:
    assert notes_of(BOUNDED[name], spark) == ()


def test_notes_are_told_and_described(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    app = StreamsApp("shop")
    clicks = app.stream("clicks", schema=CLICK, event_time="at")
    users = app.table("users", schema="user STRING, city STRING", key="user")
    clicks.dedupe("page").join(users, how="left").to("out")
    program = app.compile(spark)
    caplog.set_level(logging.INFO)
    tell("shop", program.notes)
    unbounded, moved = program.notes
    assert isinstance(moved, Moved)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", f"shop: store clicks-dedupe-page is unbounded: it keeps each key for ever. Say dedupe(…, "
                    f'within="10 minutes"), or "forever" instead of the time ({unbounded.at})'),
        ("INFO", f"shop: rows go through topic {moved.topic} for a join: {moved.why} ({moved.at})"),
    ]  # fmt: skip
    assert app.describe(spark).endswith(
        f"  Unbounded state:\n"
        f"    clicks-dedupe-page: it keeps each key for ever ({unbounded.at})\n"
        f"  Repartitioned for joins:\n"
        f"    shop-clicks-join-users-repartition: {moved.why} ({moved.at})\n"
    )


JOINS: dict[str, tuple[Callable[[StreamsApp, Stream, Stream], Any], str, str]] = {
    "of what isn't known to be keyed": (
        lambda app, one, other: one.join(a_table(app)).to("x"),
        "shop-one-join-names-repartition",
        "stream 'one' is joined by 'id' to table 'names', and it isn't known to be keyed by 'id'; if its records are, "
        'say key="id" where the stream is made',
    ),
    "of what has lost its key": (
        lambda app, one, other: other.with_columns(id="upper(id)").join(a_table(app)).to("x"),
        "shop-other-join-names-repartition",
        "stream 'other' is joined by 'id' to table 'names', and it isn't known to be keyed by 'id', since "
        "stream 'other': with_columns(id=…) doesn't pass id through unchanged",
    ),
    "by another column": (
        lambda app, one, other: other.join(a_table(app), on={"of": "id"}, name="named").to("x"),
        "shop-named-repartition",
        "stream 'other' is joined by 'of' to table 'names', and it is keyed by 'id', not by 'of'",
    ),
    "of a union": (
        lambda app, one, other: one.union(other).join(a_table(app)).to("x"),
        "shop-one-join-names-repartition",
        "stream 'one' is joined by 'id' to table 'names', and several streams are united, and the table is one topic's",
    ),
    "of another partitioner": (
        lambda app, one, other: (
            app.stream("c", schema="id STRING", key="id", partitioner="crc32").join(a_table(app)).to("x")
        ),
        "shop-c-join-names-repartition",
        "stream 'c' is joined by 'id' to table 'names', and it is partitioned by crc32, and the table by murmur2",
    ),
    "of keys in a format": (
        lambda app, one, other: (
            app.stream("k", schema="n INT", key_format="avro", key_schema="id STRING").join(a_table(app)).to("x")
        ),
        "shop-k-join-names-repartition",
        "stream 'k' is joined by 'id' to table 'names', and it isn't known to be keyed by 'id', since its "
        "records' keys are avro, and lie where their bytes lead to, not their text",
    ),
    "of streams": (
        lambda app, one, other: one.join_stream(other, on="id", within="1 hour", grace="1 hour").to("x"),
        "shop-one-other-repartition",
        "stream 'one' and stream 'other' meet there, by 'id'",
    ),
    "of tables": (
        lambda app, one, other: a_table(app).join(one.to_table("id", name="t"), prefix="b_").to("x"),
        "shop-names-join-one-repartition",
        "table 'names' and stream 'one': to_table('id') meet there, by 'id'",
    ),
}


def a_table(app: StreamsApp) -> Any:
    return app.table("names", schema="id STRING, name STRING", key="id")


def test_a_table_that_moves_before_a_join_by_a_foreign_key_is_noted(spark: SparkSession) -> None:
    app = StreamsApp("shop")
    orders = app.stream("orders", schema="id STRING, customer STRING")
    last = orders.group_by("id").aggregate("last", customer=max_("customer")).as_table()
    last.join(a_table(app), on={"customer": "id"}, name="named").to("x")
    program = app.compile(spark)
    moved = {each.topic for each in program.notes if isinstance(each, Moved)}
    assert moved == {f"shop-named-{what}-repartition" for what in ("left", "subscriptions", "answers")}


@pytest.mark.parametrize("name", JOINS)
def test_joins_whose_rows_move_are_noted(name: str, spark: SparkSession) -> None:
    write, topic, why = JOINS[name]
    app = StreamsApp("shop")
    one = app.stream("one", schema="id STRING, of STRING, at TIMESTAMP", event_time="at")
    other = app.stream("other", schema="id STRING, of STRING, at TIMESTAMP", event_time="at", key="id")
    for each in (one, other):
        each.to("y")
    if name == "of streams":
        other = other.select("id", "of AS theirs", "at AS then")
    write(app, one, other)
    program = app.compile(spark)
    (note,) = (each for each in program.notes if isinstance(each, Moved))
    assert (note.topic, note.why) == (topic, why)
    assert topic in program.internal_topics


def test_rows_meet_the_table_wherever_they_come_from(spark: SparkSession) -> None:
    app = StreamsApp("shop")
    orders = app.stream("orders", schema="id INT, customer STRING", key="id")
    customers = app.table("customers", schema="name STRING, city STRING", key="name")
    orders.join(customers, on={"customer": "name"}, how="left").to("out", key="id")
    names = [f"customer {number}" for number in range(12)]
    with TestDriver(app, spark, partitions={"orders": 3, "customers": 4}) as driver:
        driver.pipe("customers", [{"name": name, "city": name.upper()} for name in names])
        driver.pipe("orders", [{"id": number, "customer": name} for number, name in enumerate(names)])
        found = sorted((row["id"], row["city"]) for row in driver.output("out"))
    assert found == [(number, name.upper()) for number, name in enumerate(names)]


def test_a_table_is_joined_to_one_stream_that_moves(spark: SparkSession) -> None:
    app = StreamsApp("shop")
    orders = app.stream("orders", schema="id INT, customer STRING", key="id")
    customers = app.table("customers", schema="customer STRING, city STRING", key="customer")
    orders.where("id > 1").join(customers).to("x")
    orders.where("id < 1").join(customers).to("y")
    with pytest.raises(ProgramError, match=r"say \.repartition\(…\) by the table's key once, before they part \(.*\)$"):
        app.compile(spark)
