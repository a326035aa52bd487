"""Calculation: dearer bids with the time of day, and how many letters c are in a text."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources

TIME_OF_DAY = """
    CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
         WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
         ELSE 'otherTime' END AS bidTimeType
"""


def program(nexmark: Sources, results: str) -> None:
    euros = nexmark.bids.select(
        "auction",
        "bidder",
        "0.908D * price AS price",
        TIME_OF_DAY,
        "dateTime",
        "extra",
        "regexp_count(extra, 'c') AS c_counts",
    )
    euros.where("price > 1000000 AND price < 50000000").to(results)
