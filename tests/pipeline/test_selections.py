"""Streams without repetitions, of last rows, and of ranks: in running applications, and as they are compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp, count, window
from kohort.spark.program.compiled import Aggregate, RowsInput
from kohort.spark.program.streams import Stream
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_in_steps

BID = "auction BIGINT, bidder STRING, price BIGINT, at TIMESTAMP"
Bid = tuple[int, str, int, str]


def send(servers: str, bids: list[Bid]) -> int:
    sending = producer(servers)
    for auction, bidder, price, at in bids:
        row = {"auction": auction, "bidder": bidder, "price": price, "at": f"2013-01-01T00:{at}Z"}
        sending.produce("bids", json.dumps(row), key=str(auction))
    sending.flush()
    return len(bids)


def run(
    spark: SparkSession,
    servers: str,
    directory: Path,
    program: Callable[[Stream], Any],
    *epochs: list[Bid],
    moved: bool,
) -> tuple[list[list[dict[str, Any]]], list[Heard]]:
    """What a program writes to `out` for each epoch's bids. After each it is started anew, without its directory."""
    create_topics(servers, "bids", "out", partitions=1)
    found: list[list[dict[str, Any]]] = []

    def look() -> None:
        rows = [json.loads(each.value() or b"") for each in read(servers, "out")]
        found.append(rows[sum(map(len, found)) :])

    heard = []
    for number, bids in enumerate(epochs):
        app = StreamsApp("selections", bootstrap_servers=servers, state_dir=directory / str(number))
        program(app.stream("bids", schema=BID, key=None if moved else "auction", event_time="at"))
        heard.append(run_in_steps(app, spark, [partial(send, servers, bids)], look, moved=moved))
    return found, heard


def test_bids_that_come_again_are_left_out(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    found, heard = run(
        spark,
        kohort_fresh_broker.bootstrap_servers,
        tmp_path,
        lambda bids: bids.dedupe("auction", "bidder", within="10 minutes").to("out"),
        [(1, "ann", 5, "00:00"), (1, "bob", 5, "01:00"), (1, "ann", 6, "10:00"), (2, "ann", 7, "01:00")],
        [(1, "bob", 8, "11:00"), (1, "ann", 9, "12:00"), (1, "cid", 1, "02:00")],
        moved=False,
    )  # fmt: skip
    assert [[row["price"] for row in rows] for rows in found] == [[5, 5, 7], [9]]
    assert [each.total("late") for each in heard] == [0, 1]


def test_the_last_bid_of_each_bidder_is_known(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    found, _ = run(
        spark,
        kohort_fresh_broker.bootstrap_servers,
        tmp_path,
        lambda bids: bids.group_by("bidder").latest_by("at").to("out", key="bidder"),
        [(1, "ann", 5, "02:00"), (2, "ann", 6, "01:00"), (1, "bob", 7, "01:00"), (1, "bob", 8, "01:00")],
        [(1, "ann", 9, "01:59"), (3, "bob", 10, "03:00")],
        moved=True,
    )  # fmt: skip
    assert [[row["price"] for row in rows] for rows in found] == [[5, 7, 8], [10]]


def test_the_best_bids_of_each_window_are_ranked(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    found, _ = run(
        spark,
        kohort_fresh_broker.bootstrap_servers,
        tmp_path,
        lambda bids: bids.group_by("auction", window("at", "10 minutes", grace="1 minute"))
        .top(2, by="price", name="best")
        .to("out", key=("auction", "window", "rank")),
        [(1, "ann", 5, "01:00"), (1, "bob", 7, "02:00"), (1, "cid", 6, "03:00"), (1, "dan", 1, "10:30")],
        [(1, "eve", 9, "04:00"), (1, "fay", 2, "11:00"), (1, "gus", 99, "05:00")],
        moved=False,
    )  # fmt: skip
    assert [[(row["window"][14:16], row["rank"], row["bidder"]) for row in rows] for rows in found] == [
        [("00", 1, "bob"), ("00", 2, "cid"), ("10", 1, "dan")],
        [("00", 1, "eve"), ("00", 2, "bob"), ("10", 1, "fay"), ("10", 2, "dan")],
    ]


def bids_of(app: StreamsApp, **more: Any) -> Stream:
    return app.stream("bids", schema=BID, **{"key": "auction", "event_time": "at"} | more)


def an_app() -> StreamsApp:
    return StreamsApp("app", bootstrap_servers="localhost:1")


def test_rows_keep_their_key_and_their_time(spark: SparkSession) -> None:
    """So what comes after them by the key goes through no topic, and windows may have a grace."""
    app = an_app()
    once = bids_of(app).dedupe("auction", "bidder")
    ranked = once.group_by("auction").latest_by("price").group_by("auction", window("at", "1 hour")).top(3, by="price")
    by_hour = ranked.group_by("auction", window("at", "1 hour", grace="1 hour"))
    by_hour.aggregate("counts", n=count()).to("out")
    (part,) = app.compile(spark).subtopologies
    (branch,) = part.branches
    assert isinstance(branch.terminal, Aggregate)
    assert [step.operation.kind for step in part.processors] == ["KSTREAM-DEDUPE", "KSTREAM-LATEST", "KSTREAM-TOP"]
    assert [store.changelog for store in part.stores] == [
        "app-counts-changelog", "app-bids-dedupe-auction-bidder-changelog", "app-bids-latest-auction-changelog",
        "app-bids-top-auction-changelog",
    ]  # fmt: skip
    assert part.processors[-1].output.names == ["window", "auction", "bidder", "price", "at", "rank"]
    assert "KSTREAM-DEDUPE-0000000001 (stores: [bids-dedupe-auction-bidder])" in app.describe(spark)


def test_rows_are_grouped_anew_through_one_topic(spark: SparkSession) -> None:
    app = an_app()
    bids_of(app).group_by("bidder").earliest_by("at").group_by("bidder").top(1, by="price", name="most").to("out")
    _, part = app.compile(spark).subtopologies
    assert isinstance(part.input, RowsInput)
    assert (part.input.topic, part.input.key) == ("app-bids-earliest-bidder-repartition", ("bidder",))
    assert [step.name for step in part.processors] == ["bids-earliest-bidder", "most"]


def test_state_is_forgotten_when_nothing_can_need_it(spark: SparkSession) -> None:
    app = an_app()
    bids = bids_of(app)
    bids.dedupe("auction", within="10 minutes", name="a").to("out")
    bids.group_by("auction", window("at", "1 hour", grace="5 minutes")).top(1, by="price", name="b").to("out")
    bids.group_by("auction", window("at", "1 hour", grace="0 ms", retention="1 day")).top(2, by="price", name="c").to(
        "out"
    )
    bids.dedupe("auction", name="d").to("out")
    (part,) = app.compile(spark).subtopologies
    minute = 60_000
    states = [state for step in part.processors for state in step.states]
    assert {state.store: (state.bucket_ms, state.retention_ms) for state in states} == {
        "a": (10 * minute + 1, 30 * minute + 1), "b": (60 * minute, 65 * minute), "c": (60 * minute, 1440 * minute),
        "d": (0, 0),
    }  # fmt: skip


WRONG: dict[str, tuple[Callable[[Stream], Any], str]] = {
    "by the group": (
        lambda bids: bids.group_by("auction").latest_by("auction"),
        r"latest_by\('bids-latest-auction'\): 'auction' is grouped by, so it is the same in all rows of a group",
    ),
    "a place": (
        lambda bids: bids.with_columns(place="1").group_by("auction").top(1, by="price", ties="all"),
        "adds a column 'place'",
    ),
    "no column": (lambda bids: bids.group_by("auction").top(1, by="prize"), "'prize': there is no such column"),
    "no order": (
        lambda bids: bids.transform(lambda df: df.withColumn("x", F.array("price"))).group_by("auction").top(1, "x"),
        r"'x' is ARRAY<BIGINT>, which has no order here",
    ),
    "a rank": (
        lambda bids: bids.group_by("auction").top(1, "price").group_by("auction").top(1, "price", name="again"),
        r"top\('again'\): it adds a column 'rank', which the stream has already",
    ),
    "the same twice": (
        lambda bids: bids.dedupe("auction").dedupe("auction"), "two stores are called 'bids-dedupe-auction'",
    ),
    "another time": (
        lambda bids: bids.transform(lambda df: df.withColumn("at", F.lit("2013-01-01").cast("timestamp"))).dedupe(
            "auction", within="1 hour"
        ),
        r"dedupe goes by 'at' as it was read, and .*transform\(lambda\) changes it",
    ),
    "no time": (
        lambda bids: bids.transform(lambda df: df.drop("at")).dedupe("auction", within="1 hour"),
        "dedupe goes by the event time, 'at', and a transform before it loses that",
    ),
}  # fmt: skip


def test_other_ties_are_refused() -> None:
    with pytest.raises(ProgramError, match=r'ties=.some.\): "first" keeps 2 rows'):
        bids_of(an_app()).group_by("auction").top(2, by="price", ties="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(("program", "message"), WRONG.values(), ids=WRONG)
def test_wrong_selections_are_told_what_to_write(
    spark: SparkSession, program: Callable[[Stream], Stream], message: str
) -> None:
    app = an_app()
    program(bids_of(app)).to("out")
    with pytest.raises(ProgramError, match=message):
        app.compile(spark)
