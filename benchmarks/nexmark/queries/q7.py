"""Highest bid: of each 10 s."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import max_, window


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select(
        "dateTime", "struct(price, auction, bidder, dateTime, extra) AS bid", "'all' AS everywhere"
    )
    by_window = bids.group_by("everywhere", window("dateTime", "10 seconds"))
    by_window.aggregate("q7", best=max_("bid")).to(results)
