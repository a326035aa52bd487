"""Joins of streams whose topics lie alike already: both are read where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp, count
from kohort.spark.program.compiled import SidesInput
from kohort.spark.program.notes import Moved
from kohort.spark.testing import TestDriver

AUCTION = "id BIGINT, kind STRING, at TIMESTAMP"
BID = "auction BIGINT, price INT, `when` TIMESTAMP"
PROGRAM = Callable[[StreamsApp, Any, Any], object]


def streams(app: StreamsApp, **other: Any) -> tuple[Any, Any]:
    auctions = app.stream("auctions", schema=AUCTION, key="id", event_time="at")
    return auctions, app.stream("bids", schema=BID, **{"key": "auction", "event_time": "when", **other})


def offers(auctions: Any, bids: Any, **more: Any) -> Any:
    within = {"within": "1 minute", "grace": "10 seconds", **more}
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


@pytest.mark.parametrize("how", ["inner", "outer"])
def test_rows_that_are_read_where_they_lie_are_joined_as_through_a_topic(
    spark: SparkSession, how: Literal["inner", "outer"]
) -> None:
    there, through = (found(spark, program(how, repartition=each)) for each in (False, True))
    assert there == through
    assert sum(len(each["offers"]) for each in there[:5]) > 20 and there[-1] == 1
