"""Auction top 10: the ten highest bids of each auction."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import collect


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select("auction", "price", "struct(price, bidder, channel, url, dateTime, extra) AS bid")
    bids.group_by("auction").aggregate("q19", bids=collect("bid", 10, by="price", keep="last")).to(results)
