"""Expand bids: with their auction, in category 10."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources

AUCTION = (
    "id", "itemName", "description", "initialBid", "reserve", "dateTime AS auction_dateTime", "expires", "seller",
    "category", "extra AS auction_extra",
)  # fmt: skip


def program(nexmark: Sources, results: str) -> None:
    auctions = nexmark.auctions.where("category = 10").select(*AUCTION)
    # Bids come up to so long after their auction was opened, and some before.
    expanded = nexmark.bids.join_stream(
        auctions, on={"auction": "id"}, before="10 minutes", after="1 minute", grace="1 minute", repartition=False
    )
    expanded.select("*", "dateTime AS bid_dateTime", "extra AS bid_extra").to(results)
