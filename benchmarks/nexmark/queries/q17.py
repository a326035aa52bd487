"""Auction statistics: by auction and day, bids in ranges of prices, and least, highest, mean and sum."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import avg, count, count_if, max_, min_, sum_, window


def program(nexmark: Sources, results: str) -> None:
    nexmark.bids.group_by("auction", window("dateTime", "1 day")).aggregate(
        "q17",
        total_bids=count(),
        rank1_bids=count_if("price < 10000"),
        rank2_bids=count_if("price >= 10000 AND price < 1000000"),
        rank3_bids=count_if("price >= 1000000"),
        min_price=min_("price"),
        max_price=max_("price"),
        avg_price=avg("price"),
        sum_price=sum_("price"),
    ).to(results)
