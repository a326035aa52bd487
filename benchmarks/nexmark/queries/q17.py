"""Auction statistics: by auction and day, bids in ranges of prices, and least, highest, mean and sum."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import avg, count, max_, min_, sum_, window


def program(nexmark: Sources, results: str) -> None:
    ranged = nexmark.bids.transform(
        lambda bids: bids.selectExpr(
            "auction",
            "dateTime",
            "price",
            "CAST(price < 10000 AS BIGINT) AS rank1",
            "CAST(price >= 10000 AND price < 1000000 AS BIGINT) AS rank2",
            "CAST(price >= 1000000 AS BIGINT) AS rank3",
        )
    )
    ranged.group_by("auction", window("dateTime", "1 day")).aggregate(
        "q17",
        total_bids=count(),
        rank1_bids=sum_("rank1"),
        rank2_bids=sum_("rank2"),
        rank3_bids=sum_("rank3"),
        min_price=min_("price"),
        max_price=max_("price"),
        avg_price=avg("price"),
        sum_price=sum_("price"),
    ).to(results)
