"""Find the last bid: of each bidder for each auction."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import last


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select("bidder", "auction", "dateTime", "struct(price, channel, url, dateTime, extra) AS bid")
    bids.group_by("bidder", "auction").aggregate("q18", bid=last("bid")).to(results)
