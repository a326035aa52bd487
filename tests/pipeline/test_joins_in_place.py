"""Joins of streams whose topics lie alike already: both are read where they lie."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from pyspark.sql import SparkSession

from kohort.client.config import ClientConfig
from kohort.spark import Drop, ProgramError, StreamsApp, count
from kohort.spark.jobs import subtopology_jobs
from kohort.spark.program.notes import Moved
from kohort.spark.program.streams import Stream
from kohort.spark.queries.store_infos import store_infos
from kohort.spark.testing import TestDriver

AUCTION = "id BIGINT, kind STRING, at TIMESTAMP"
BID = "auction BIGINT, price INT, `when` TIMESTAMP"


def streams(app: StreamsApp, **other: Any) -> tuple[Any, Any]:
    auctions = app.stream("auctions", schema=AUCTION, key="id", event_time="at")
    return auctions, app.stream("bids", schema=BID, **{"key": "auction", "event_time": "when", **other})


def offers(auctions: Any, bids: Any, **more: Any) -> Any:
    within = {"within": "1 minute", "grace": "10 seconds", "repartition": False, **more}
    return auctions.where("kind <> 'none'").join_stream(bids, on={"id": "auction"}, **within)


def at(second: int) -> str:
    return f"2013-01-01T00:{second // 60:02}:{second % 60:02}Z"


def auction(number: int | None, second: int, kind: str = "a") -> dict[str, Any]:
    return {"id": number, "kind": kind, "at": at(second)}


def bid(number: int | None, price: int, second: int) -> dict[str, Any]:
    return {"auction": number, "price": price, "when": at(second)}


def program(how: Literal["inner", "left", "outer"], *, repartition: bool) -> StreamsApp:
    app = StreamsApp("offers")
    joined = offers(*streams(app), how=how, repartition=repartition)
    joined.select("id", "kind", "price").to("offers")
    joined.where("price IS NOT NULL").group_by("id").top(1, by="price", name="best").to("best")
    joined.group_by("id").aggregate("counts", n=count()).to("counts")
    return app


def found(spark: SparkSession, app: StreamsApp) -> list[Any]:
    """What comes of some steps, in whose order it matters on which side a row is read first."""
    seen: list[Any] = []
    with TestDriver(app, spark, partitions=3) as driver:
        for auctions, bids in (
            ([auction(number, number) for number in range(8)] + [auction(8, 1, "none")], [bid(3, 5, 4)]),
            ([auction(None, 6)], [bid(number % 10, 10 * number, 9) for number in range(20)] + [bid(None, 1, 9)]),
            ([auction(9, 12)], [bid(8, 1, 70), bid(2, 7, 63), bid(2, 7, 62)]),
            ([auction(number, 300) for number in range(8)], [bid(number, 2, 300) for number in range(8)]),
            ([auction(1, 20)], [bid(1, 3, 300)]),
        ):
            driver.pipe("auctions", auctions, step=False)
            driver.pipe("bids", bids, step=False)
            driver.step()
            rows = {topic: [dict(row) for row in driver.output(topic)] for topic in ("offers", "best")}
            seen.append({topic: sorted(map(repr, some)) for topic, some in rows.items()})
        counts = {str(row["id"]): row["n"] for row in map(dict, driver.output("counts"))}
        return [*seen, counts, driver.late]


@pytest.mark.long
@pytest.mark.parametrize(("how", "small"), [("inner", 20_000), ("outer", 0)], ids=["small epochs", "large epochs"])
def test_rows_that_are_read_where_they_lie_are_joined_as_through_a_topic(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, how: Literal["inner", "outer"], small: int
) -> None:
    """Large epochs have several splits, so that rows are shuffled to their tasks."""
    monkeypatch.setattr(subtopology_jobs, "SMALL_EPOCH", small)
    there, through = (found(spark, program(how, repartition=each)) for each in (False, True))
    assert there == through
    assert sum(len(each["offers"]) for each in there[:5]) > 20 and there[-1] == 1


def test_it_needs_no_topic_and_its_topics_belong_together(spark: SparkSession) -> None:
    app = program("inner", repartition=False)
    compiled = app.compile(spark)
    assert [each for each in compiled.notes if isinstance(each, Moved)] == []
    (only,) = compiled.topology.subtopologies.values()
    assert sorted(only.source_topics) == ["auctions", "bids"] and not only.repartition_sources
    assert [sorted(group) for group in only.copartition_groups] == [["auctions", "bids"]]
    described = app.describe(spark)
    assert described.count("Sub-topology") == 1
    assert "topics: [auctions]" in described and "topics: [bids]" in described
    assert sum("KSTREAM-JOIN" in line and "-->" in line for line in described.splitlines()) == 2, "of both sides"
    assert "(stores: [auctions-bids-clock, auctions-bids-left, auctions-bids-right])" in described


def test_topics_of_different_sizes_are_refused_by_name(spark: SparkSession) -> None:
    app = StreamsApp("offers")
    offers(*streams(app)).to("offers")
    with (
        pytest.raises(ProgramError, match=r"auctions.*bids|bids.*auctions"),
        TestDriver(app, spark, partitions={"bids": 2}),
    ):
        pass


def test_records_have_to_lie_where_their_keys_lead(spark: SparkSession) -> None:
    app = StreamsApp("offers", on_error=Drop())
    offers(*streams(app)).select("id", "price").to("offers")
    with TestDriver(app, spark, partitions=3) as driver:
        driver.pipe("auctions", [auction(number, 1) for number in range(3)])
        driver.pipe("bids", [bid(1, 7, 2)], key="2")
        driver.pipe("bids", [bid(1, 8, 2)], key=[None])
        driver.pipe("bids", [bid(1, 9, 2)])
        assert [dict(row) for row in driver.output("offers")] == [{"id": 1, "price": 9}]
        assert driver.dropped == {"misplaced": 1, "no key": 1}


def itself(auctions: Any) -> Any:
    return offers(auctions, auctions.select("id AS auction", "at AS then"))


THROUGH: dict[str, tuple[Callable[[StreamsApp], Any], str]] = {
    "a key that isn't known": (
        lambda app: offers(*streams(app, key=None)),
        "stream 'bids' isn't known to be keyed by 'auction'",
    ),
    "a key that is lost": (
        lambda app: offers(streams(app)[0].with_columns(id="id + 1"), stream_of(app, "bids")),
        "stream 'auctions' isn't known to be keyed by 'id', since",
    ),
    "another key": (lambda app: offers(*streams(app, key="price")), "stream 'bids' is keyed by 'price'"),
    "another partitioner": (
        lambda app: offers(*streams(app, partitioner="crc32")),
        "stream 'auctions' is partitioned by murmur2, and stream 'bids' by crc32",
    ),
    "several rows of a record": (
        lambda app: offers(
            streams(app)[0].select("id", "kind", "at", "explode(array(1, 2)) AS n"), stream_of(app, "bids")
        ),
        "stream 'auctions' has several rows of one record",
    ),
    "rows that are peeked at": (
        lambda app: offers(streams(app)[0].peek(print), stream_of(app, "bids")),
        "stream 'auctions' goes through more than transforms before it",
    ),
    "a stream that is joined with itself": (
        lambda app: itself(app.stream("auctions", schema=AUCTION, key="id", event_time="at")),
        "a stream that is joined with itself goes through its topic",
    ),
    "rows that were repartitioned": (
        lambda app: offers(streams(app)[0].repartition("id"), stream_of(app, "bids")),
        "comes out of the program itself",
    ),
}


def test_records_without_a_key_do_not_move_time_where_they_are_left_out(spark: SparkSession) -> None:
    app = StreamsApp("offers")
    offers(*streams(app)).select("id", "price").to("offers")
    with TestDriver(app, spark) as driver:
        driver.pipe("auctions", [auction(None, 3_000)], key=[None], step=False)
        driver.pipe("bids", [bid(None, 1, 3_000)], key=[None])
        driver.pipe("auctions", [auction(1, 1)], step=False)
        driver.pipe("bids", [bid(1, 9, 2)])
        assert [dict(row) for row in driver.output("offers")] == [{"id": 1, "price": 9}]
        assert (driver.dropped, driver.late) == ({"no key": 2}, 0)


def stream_of(app: StreamsApp, topic: str) -> Any:
    return next(Stream(app._graph, each) for each in app._graph.sources if getattr(each, "topic", "") == topic)


@pytest.mark.parametrize("name", THROUGH)
def test_sides_that_do_not_lie_alike_are_refused_and_it_is_said_why(spark: SparkSession, name: str) -> None:
    make, why = THROUGH[name]
    app = StreamsApp("offers")
    make(app).to("offers")
    said = f"as repartition=False says: .*{re.escape(why)}.* leave repartition=False out"
    with pytest.raises(ProgramError, match=said):
        app.compile(spark)


def test_a_stream_that_goes_elsewhere_too_goes_through_a_topic_for_its_join(spark: SparkSession) -> None:
    app = StreamsApp("offers")
    auctions, bids = streams(app)
    bids.where("price > 9").to("dear")
    offers(auctions, bids).to("offers")
    with pytest.raises(ProgramError, match="stream 'bids' isn't read for this join alone"):
        app.compile(spark)


def test_batches_of_functions_are_of_one_topic(spark: SparkSession) -> None:
    app = StreamsApp("offers")
    offers(*streams(app)).for_each_batch(lambda rows, batch: None)
    with pytest.raises(ProgramError, match="a function gets batches of what comes of it"):
        app.compile(spark)


def test_a_join_goes_through_a_topic_unless_the_program_says_otherwise(spark: SparkSession) -> None:
    """As it did before it could do without: programs that run go on with their state."""
    app = StreamsApp("offers")
    offers(*streams(app), repartition=True).group_by("id").top(1, by="price", name="best").to("best")
    compiled = app.compile(spark)
    assert compiled.fingerprint.text == "f4d164beb0039ad4"
    (moved,) = (each for each in compiled.notes if isinstance(each, Moved))
    assert moved.why.endswith("meet there, by 'id'"), "what is logged says no more"
    assert "by 'id'; both lie alike, so join_stream(…, repartition=False) would spare it (" in app.describe(spark)


def test_no_topic_is_spared_where_sides_do_not_lie_alike(spark: SparkSession) -> None:
    app = StreamsApp("offers")
    offers(*streams(app, key=None), repartition=True).to("offers")
    assert "would spare it" not in app.describe(spark)


def test_queries_go_by_the_names_that_columns_have_in_keys(spark: SparkSession) -> None:
    app = StreamsApp("pairs")
    left = app.stream("left", schema="a STRING, b STRING, at TIMESTAMP", key=["a", "b"], event_time="at")
    right = app.stream("right", schema="a STRING, b STRING, then TIMESTAMP", key=["a", "b"], event_time="then")
    named = left.select("a AS x", "b AS y", "at")
    within = {"within": "1 minute", "grace": "10 seconds", "repartition": False}
    joined = named.join_stream(right, on={"x": "a", "y": "b"}, **within)
    joined.group_by("x", "y").latest_by("at", name="last").to("last")
    infos = store_infos(app.compile(spark))
    found = {name: (info.routed_by, info.route_names) for name, info in infos.items()}
    assert found == dict.fromkeys(("left-right-left", "left-right-right", "last"), (("x", "y"), ("a", "b")))


@pytest.mark.parametrize("listed", [False, True])
def test_what_is_built_of_large_epochs_is_kept_if_it_reads_nothing_else(spark: SparkSession, *, listed: bool) -> None:
    """Files of a DataFrame that is joined are listed when it is built, so that is done for each epoch."""
    others = spark.createDataFrame([(1, "one")], "id BIGINT, name STRING")
    app = StreamsApp("offers")
    joined = offers(*streams(app))
    (joined.transform(lambda rows: rows.join(others, "id")) if listed else joined).to("offers")
    compiled = app.compile(spark).subtopologies[0]
    server = SimpleNamespace(address=("127.0.0.1", 1), token=b"", handover=b"")
    jobs = subtopology_jobs.SubtopologyJobs(
        spark,
        compiled,
        cast("Any", server),
        servers=ClientConfig(bootstrap_servers="127.0.0.1:1"),
        parallelism=lambda: 2,
    )
    key = subtopology_jobs.PlanKey(compiled.id, 0, 2, False)
    jobs._plan(key, lambda branch, context: jobs._plans.branch(branch, context, merging=False))
    assert (key in jobs._built_once, key in jobs._built_each_time) == (not listed, listed)
