"""What each query has to give in the end: plain SQL of Spark's over all events, and so what programs are compared with.

Views have the columns of the topics, and `number`, the event's, which tells bids of the same millisecond apart. The
usual SQL leaves open which of several rows is meant; here it is, of bids at the same time (q18) or of the same price
(q19), that which was made last, in q6 and q9 the first. If several bids of a window have its highest price, q7 gives
that for the greatest auction id, where the usual one gives all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from benchmarks.nexmark.events import Events
from benchmarks.nexmark.topics import side_input

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        title: what it asks for.
        sql: its answer in the end.
        keys: columns of which an answer is replaced by a later one with the same values; none: all rows count.
        clock: that of them which says when by the clock, so that it differs from run to run. What is compared are the
            other columns' sums over it.
        closing: events long after the last one follow, so that who gives results when time has passed them gives all.
        begins: that of the keys which says when what a result is about began: those of the closing events, by it, don't
            count.
    """

    title: str
    sql: str
    keys: tuple[str, ...] = ()
    clock: str | None = None
    closing: bool = False
    begins: str | None = None


_WINNERS: Final = """
    SELECT a.*, b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.number) AS place
    FROM auction a JOIN bid b ON b.auction = a.id AND b.dateTime BETWEEN a.dateTime AND a.expires
"""
"""Bids while their auction was open, the winning one in place 1."""

RANGES: Final = {"1": "price < 10000", "2": "price >= 10000 AND price < 1000000", "3": "price >= 1000000"}
_DISTINCT: Final = ",\n    ".join(
    f"count({what}) {condition} AS {prefix}_{name}".replace("  ", " ")
    for what, name in (("*", "bids"), ("DISTINCT bidder", "bidders"), ("DISTINCT auction", "auctions"))
    for prefix, condition in (
        ("total", ""), *((f"rank{rank}", f"FILTER (WHERE {within})") for rank, within in RANGES.items()),
    )
)  # fmt: skip
"""Of q15 and q16: bids, bidders and auctions, all and in each range of prices."""

QUERIES: Final[Mapping[str, Query]] = {
    "q0": Query("Pass through: bids as they are", "SELECT auction, bidder, price, dateTime, extra FROM bid"),
    "q1": Query(
        "Currency conversion: prices in euros",
        "SELECT auction, bidder, 0.908D * price AS price, dateTime, extra FROM bid",
    ),
    "q2": Query("Selection: bids for one auction of 123", "SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    "q3": Query(
        "Local item suggestion: who sells in Oregon, Idaho or California, in category 10",
        """
        SELECT p.name, p.city, p.state, a.id
        FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca')
        """,
    ),
    "q4": Query(
        "Average price for a category: of the winning bids",
        f"SELECT category AS id, avg(price) AS final FROM ({_WINNERS}) WHERE place = 1 GROUP BY category",
        ("id",),
        closing=True,
    ),
    "q5": Query(
        "Hot items: the auctions with most bids in each 10 s, every 2 s",
        """
        WITH counted AS (
            SELECT auction, window.start AS window, count(*) AS num
            FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
        )
        SELECT window, num, sort_array(collect_list(auction)) AS auctions
        FROM (SELECT *, max(num) OVER (PARTITION BY window) AS most FROM counted)
        WHERE num = most GROUP BY window, num
        """,
        ("window",),
        closing=True,
        begins="window",
    ),
    "q6": Query(
        "Average selling price: by seller, of the last ten auctions that closed with a bid",
        f"""
        SELECT seller, avg(price) AS avg_price FROM (
            SELECT seller, price, row_number() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) AS age
            FROM ({_WINNERS}) WHERE place = 1
        ) WHERE age <= 10 GROUP BY seller
        """,
        ("seller",),
        closing=True,
    ),
    "q7": Query(
        "Highest bid: of each 10 s",
        """
        SELECT window.start AS window, max(struct(price, auction, bidder, dateTime, extra)) AS best
        FROM bid GROUP BY window(dateTime, '10 seconds')
        """,
        ("window",),
    ),
    "q8": Query(
        "Monitor new users: who opened an auction in the same 10 s in which they registered",
        """
        WITH registered AS (SELECT id, name, window(dateTime, '10 seconds').start AS window FROM person),
             opened AS (SELECT DISTINCT seller, window(dateTime, '10 seconds').start AS window FROM auction)
        SELECT r.id, r.name, r.window FROM registered r JOIN opened o ON r.id = o.seller AND r.window = o.window
        """,
        ("id", "window"),
    ),
    "q9": Query(
        "Winning bids: the highest for each auction while it was open",
        f"""
        SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra, bidder,
               price, bid_dateTime, bid_extra
        FROM ({_WINNERS}) WHERE place = 1
        """,
        ("id",),
        closing=True,
    ),
    "q10": Query(
        "Log to a file system: bids with day and minute, by which files are laid",
        """
        SELECT auction, bidder, price, dateTime, extra, date_format(dateTime, 'yyyy-MM-dd') AS dt,
               date_format(dateTime, 'HH:mm') AS hm
        FROM bid
        """,
    ),
    "q11": Query(
        "User sessions: bids of a bidder with 10 s or less between",
        """
        SELECT session_window.start AS window, bidder, max(dateTime) AS ended, count(*) AS bid_count
        FROM bid GROUP BY bidder, session_window(dateTime, '10 seconds')
        """,
        ("bidder", "window"),
        closing=True,
        begins="window",
    ),
    "q12": Query(
        "Processing-time windows: bids of a bidder in 10 s of the clock",
        """
        SELECT window.start AS window, bidder, count(*) AS bid_count
        FROM (SELECT bidder, current_timestamp() AS now FROM bid) GROUP BY bidder, window(now, '10 seconds')
        """,
        ("bidder", "window"),
        clock="window",
    ),
    "q13": Query(
        "Bounded side input join: bids with a text from a small table",
        """
        SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
        FROM bid b JOIN side_input s ON b.auction % 10000 = s.key
        """,
    ),
    "q14": Query(
        "Calculation: dearer bids with the time of day, and how many letters c are in a text",
        """
        SELECT auction, bidder, 0.908D * price AS price,
               CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                    WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                    ELSE 'otherTime' END AS bidTimeType,
               dateTime, extra, regexp_count(extra, 'c') AS c_counts
        FROM bid WHERE 0.908D * price > 1000000 AND 0.908D * price < 50000000
        """,
    ),
    "q15": Query(
        "Bidding statistics: by day, bids, bidders and auctions, in ranges of prices",
        f"SELECT date_format(dateTime, 'yyyy-MM-dd') AS day,\n    {_DISTINCT}\nFROM bid GROUP BY day",
        ("day",),
    ),
    "q16": Query(
        "Channel statistics: by channel and day, the same, and the last minute",
        f"""
        SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day, max(date_format(dateTime, 'HH:mm')) AS minute,
            {_DISTINCT}
        FROM bid GROUP BY channel, day
        """,
        ("channel", "day"),
    ),
    "q17": Query(
        "Auction statistics: by auction and day, bids in ranges of prices, and least, highest, mean and sum",
        f"""
        SELECT auction, window.start AS window, count(*) AS total_bids,
               count_if({RANGES["1"]}) AS rank1_bids, count_if({RANGES["2"]}) AS rank2_bids,
               count_if({RANGES["3"]}) AS rank3_bids, min(price) AS min_price, max(price) AS max_price,
               avg(price) AS avg_price, sum(price) AS sum_price
        FROM bid GROUP BY auction, window(dateTime, '1 day')
        """,
        ("auction", "window"),
    ),
    "q18": Query(
        "Find the last bid: of each bidder for each auction",
        """
        SELECT bidder, auction, max_by(struct(price, channel, url, dateTime, extra), struct(dateTime, number)) AS bid
        FROM bid GROUP BY bidder, auction
        """,
        ("bidder", "auction"),
    ),
    "q19": Query(
        "Auction top 10: the ten highest bids of each auction",
        """
        SELECT auction,
               transform(array_sort(collect_list(struct(price, number, bidder, channel, url, dateTime, extra))),
                         b -> struct(b.price, b.bidder, b.channel, b.url, b.dateTime, b.extra)) AS bids
        FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, number DESC) AS place FROM bid)
        WHERE place <= 10 GROUP BY auction
        """,
        ("auction",),
    ),
    "q20": Query(
        "Expand bids: with their auction, in category 10",
        """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
               a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS auction_dateTime, a.expires, a.seller,
               a.category, a.extra AS auction_extra
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
        """,
    ),
    "q21": Query(
        "Add a channel id: of four channels by name, of others from the URL; bids without one are left out",
        """
        SELECT * FROM (
            SELECT auction, bidder, price, channel,
                   coalesce(map('apple', '0', 'google', '1', 'facebook', '2', 'baidu', '3')[lower(channel)],
                            nullif(regexp_extract(url, '[?&]channel_id=([^&]*)'), '')) AS channel_id
            FROM bid
        ) WHERE channel_id IS NOT NULL
        """,
    ),
    "q22": Query(
        "URL directories: the first three",
        """
        SELECT auction, bidder, price, channel, split(url, '/')[3] AS dir1, split(url, '/')[4] AS dir2,
               split(url, '/')[5] AS dir3
        FROM bid
        """,
    ),
}  # fmt: skip


def create_views(spark: SparkSession, events: Events) -> None:
    """Make the events the views that queries are over. The session's time zone has to be UTC."""
    tables = (
        ("person", events.persons),
        ("auction", events.auctions),
        ("bid", events.bids),
        ("side_input", side_input()),
    )
    for name, table in tables:
        spark.createDataFrame(table).createOrReplaceTempView(name)


def answer(spark: SparkSession, query: str) -> pa.Table:
    """What a query gives in the end, over the views that there are."""
    return spark.sql(QUERIES[query].sql).toArrow()
