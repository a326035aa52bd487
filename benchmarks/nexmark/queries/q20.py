"""Expand bids: with their auction, in category 10."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources

AUCTION = (
    "id", "itemName", "description", "initialBid", "reserve", "opened", "expires", "seller", "category",
    "extra AS auction_extra",
)  # fmt: skip


def program(nexmark: Sources, results: str) -> None:
    auctions = nexmark.auctions.transform(lambda auctions: auctions.where("category = 10").selectExpr(*AUCTION))
    # Bids come up to so long after their auction was opened, and some before.
    expanded = nexmark.bids.join_stream(
        auctions, on={"auction": "id"}, before="10 minutes", after="1 minute", grace="1 minute"
    )
    names = {"dateTime": "bid_dateTime", "extra": "bid_extra", "opened": "auction_dateTime"}
    expanded.transform(lambda rows: rows.withColumnsRenamed(names)).to(results)
