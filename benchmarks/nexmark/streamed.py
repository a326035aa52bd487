"""What Structured Streaming is asked, where that isn't the batch's SQL over streams as it stands.

Each is what somebody would write who knows Spark: an aggregate that follows another, or a join, takes append mode, and
so a watermark; functions over windows of rows and exact distinct counts, which streams don't have, are aggregates that
gather; an aggregate over all there is, after a join, is a function that keeps state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.nexmark.batch import QUERIES, RANGES


@dataclass(frozen=True)
class Streamed:
    """How a query is said over streams.

    Attributes:
        sql: over views that are streams.
        mode: results that change are written anew in "update"; in "append" each is written once.
        watermark: how late events may be; None: nothing waits for time to pass, and state is kept.
        then: a function of programs/sales.py, what is made of the SQL's rows; None: these are the results.
    """

    sql: str
    mode: Literal["append", "update"]
    watermark: str | None = None
    then: str | None = None


GRACE: Final = "1 minute"
"""As Kohort's joins have it."""

_OFFER: Final = "struct(b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra)"
_AUCTION: Final = ", ".join(
    f"a.{name}"
    for name in (
        "id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "extra",
    )
)  # fmt: skip

_DISTINCT: Final = ",\n    ".join(
    f"size(collect_set({what}){condition}) AS {prefix}_{name}" if what else f"count(*){condition} AS {prefix}_{name}"
    for what, name in (("", "bids"), ("bidder", "bidders"), ("auction", "auctions"))
    for prefix, condition in (
        ("total", ""), *((f"rank{rank}", f" FILTER (WHERE {within})") for rank, within in RANGES.items()),
    )
)  # fmt: skip
"""Of q15 and q16: exact counts of distinct values, by the values themselves."""

_IN_TIME: Final = """
    FROM auction a JOIN bid b
    ON b.auction = a.id AND b.dateTime BETWEEN a.dateTime AND a.expires
       AND b.dateTime <= a.dateTime + INTERVAL 10 MINUTES
"""
"""Bids while their auction was open, which is for less than ten minutes."""

_OTHERWISE: Final[Mapping[str, Streamed]] = {
    "q4": Streamed(
        f"SELECT category AS id, price FROM (SELECT a.category, max(b.price) AS price {_IN_TIME} "
        "GROUP BY a.id, a.dateTime, a.category)",
        "append",
        GRACE,
        then="averages",
    ),
    "q5": Streamed(
        """
        WITH counted AS (
            SELECT auction, window, count(*) AS num
            FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
        ), gathered AS (
            SELECT window, max(num) AS num, collect_list(struct(auction, num)) AS counts FROM counted GROUP BY window
        )
        SELECT window.start AS window, num,
               sort_array(transform(filter(counts, each -> each.num = num), each -> each.auction)) AS auctions
        FROM gathered
        """,
        "append",
        GRACE,
    ),
    "q6": Streamed(
        "SELECT seller, auction, unix_millis(expires) AS expires, price FROM (SELECT a.seller, a.id AS auction, "
        f"a.expires, max(b.price) AS price {_IN_TIME} GROUP BY a.id, a.dateTime, a.expires, a.seller)",
        "append",
        GRACE,
        then="last_ten",
    ),
    "q8": Streamed(
        """
        WITH registered AS (SELECT id, name, window(dateTime, '10 seconds') AS window FROM person),
             opened AS (SELECT seller, window(dateTime, '10 seconds') AS window FROM auction)
        SELECT r.id, r.name, r.window.start AS window
        FROM registered r JOIN opened o ON r.id = o.seller AND r.window = o.window
        """,
        "append",
        GRACE,
    ),
    "q9": Streamed(
        f"""
        SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category, extra, best.*
        FROM (
            SELECT {_AUCTION},
                   max_by({_OFFER}, struct(b.price, -unix_millis(b.dateTime), -b.number)) AS best
            {_IN_TIME} GROUP BY {_AUCTION}
        )
        """,
        "append",
        GRACE,
    ),
    "q11": Streamed(QUERIES["q11"].sql, "append", GRACE),
    "q15": Streamed(
        f"SELECT date_format(dateTime, 'yyyy-MM-dd') AS day,\n    {_DISTINCT}\nFROM bid GROUP BY day", "update"
    ),
    "q16": Streamed(
        f"""
        SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day, max(date_format(dateTime, 'HH:mm')) AS minute,
            {_DISTINCT}
        FROM bid GROUP BY channel, day
        """,
        "update",
    ),
    "q19": Streamed(
        """
        SELECT auction, transform(
            reverse(slice(sort_array(collect_list(
                struct(price, number, bidder, channel, url, dateTime, extra)), false), 1, 10)),
            b -> struct(b.price, b.bidder, b.channel, b.url, b.dateTime, b.extra)) AS bids
        FROM bid GROUP BY auction
        """,
        "update",
    ),
}


def streamed(query: str) -> Streamed:
    """What is asked: mostly the batch's SQL, whose results replace each other if they have keys."""
    known = QUERIES[query]
    return _OTHERWISE.get(query) or Streamed(known.sql, "update" if known.keys else "append")
