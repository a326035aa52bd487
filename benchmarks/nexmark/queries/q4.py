"""Average price for a category: of the winning bids."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import avg


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select("auction", "price", "dateTime AS offered")
    auctions = nexmark.auctions.select("id AS auction", "category AS id", "dateTime", "expires")
    # An auction is open for less than ten minutes.
    offers = auctions.join_stream(
        bids, on="auction", after="10 minutes", grace="1 minute", name="q4-offers", repartition=False
    )
    in_time = offers.where("offered BETWEEN dateTime AND expires")
    winners = in_time.group_by("auction").top(1, by="price", name="q4-winners").to_table("auction")
    winners.group_by("id").aggregate("q4", final=avg("price")).to(results)
