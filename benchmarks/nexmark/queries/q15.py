"""Bidding statistics: by day, bids, bidders and auctions, in ranges of prices."""

from __future__ import annotations

from functools import partial

from benchmarks.nexmark.sources import Sources
from kohort.spark import count, count_distinct, count_if

RANGES = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
MANY = 1_000_000
"""Values of a group that are counted, at most."""


def program(nexmark: Sources, results: str) -> None:
    distinct = partial(count_distinct, limit=MANY)
    statistics = {"total_bids": count(), "total_bidders": distinct("bidder"), "total_auctions": distinct("auction")}
    for rank, within in RANGES.items():
        statistics |= {
            f"{rank}_bids": count_if(within),
            f"{rank}_bidders": distinct("bidder", where=within),
            f"{rank}_auctions": distinct("auction", where=within),
        }
    bids = nexmark.bids.with_columns(day="date_format(dateTime, 'yyyy-MM-dd')")
    bids.group_by("day").aggregate("q15", **statistics).to(results)
