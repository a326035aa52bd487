"""Winning bids: the highest for each auction while it was open."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select("auction", "bidder", "price", "dateTime AS bid_dateTime", "extra AS bid_extra")
    # An auction is open for less than ten minutes.
    offers = nexmark.auctions.join_stream(
        bids, on={"id": "auction"}, after="10 minutes", grace="1 minute", name="q9-offers", repartition=False
    )
    in_time = offers.where("bid_dateTime BETWEEN dateTime AND expires")
    in_time.group_by("id").top(1, by="price", name="q9-winners").to(results, key="id")
