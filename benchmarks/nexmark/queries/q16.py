"""Channel statistics: by channel and day, the same, and the last minute."""

from __future__ import annotations

from functools import partial

from benchmarks.nexmark.sources import Sources
from kohort.spark import count, count_distinct, count_if, max_

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
    bids = nexmark.bids.with_columns(day="date_format(dateTime, 'yyyy-MM-dd')", minute="date_format(dateTime, 'HH:mm')")
    bids.group_by("channel", "day").aggregate("q16", minute=max_("minute"), **statistics).to(results)
