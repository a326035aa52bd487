"""Bidding statistics: by day, bids, bidders and auctions, in ranges of prices."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import count, count_distinct, count_if, sum_

RANGES = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
PARTS = 256
"""What a day's bidders, and its auctions, are divided into: each part keeps its values in one record."""
MANY = 20_000
"""Values of a part, at most."""


def program(nexmark: Sources, results: str) -> None:
    in_parts = {"total_bids": count(), "total_values": count_distinct("value", MANY)}
    by_day = {"total_bids": sum_("total_bids", where="kind = 'bidder'")}
    for rank, within in RANGES.items():
        in_parts[f"{rank}_bids"] = count_if(within)
        in_parts[f"{rank}_values"] = count_distinct("value", MANY, where=within)
        by_day[f"{rank}_bids"] = sum_(f"{rank}_bids", where="kind = 'bidder'")
    for rank in ("total", *RANGES):
        by_day |= {
            f"{rank}_{kind}s": sum_(f"{rank}_values", where=f"kind = '{kind}'") for kind in ("bidder", "auction")
        }
    bids = nexmark.bids.with_columns(day="date_format(dateTime, 'yyyy-MM-dd')")
    values = bids.select("day", "price", "explode(map('bidder', bidder, 'auction', auction)) AS (kind, value)")
    parts = values.with_columns(part=f"value % {PARTS}").group_by("day", "kind", "part")
    parts.aggregate("q15-parts", **in_parts).as_table().group_by("day").aggregate("q15", **by_day).to(results)
