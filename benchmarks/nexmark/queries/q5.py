"""Hot items: the auctions with most bids in each 10 s, every 2 s."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import collect_max, count, max_, window


def program(nexmark: Sources, results: str) -> None:
    by_auction = nexmark.bids.group_by("auction", window("dateTime", "10 seconds", slide="2 seconds"))
    counts = by_auction.aggregate("q5-counts", num=count()).as_stream()
    hot = counts.group_by("window").aggregate(
        "q5", num=max_("num"), auctions=collect_max("auction", by="num", limit=1_000)
    )
    hot.to(results)
