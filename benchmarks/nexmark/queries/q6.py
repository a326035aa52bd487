"""Average selling price: by seller, of the last ten auctions that closed with a bid."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import collect


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select("auction", "price", "dateTime AS offered")
    auctions = nexmark.auctions.select("id AS auction", "seller", "dateTime", "expires")
    # An auction is open for less than ten minutes.
    offers = auctions.join_stream(
        bids, on="auction", after="10 minutes", grace="1 minute", name="q6-offers", repartition=False
    )
    in_time = offers.where("offered BETWEEN dateTime AND expires")
    winners = in_time.group_by("auction").top(1, by="price", name="q6-winners").to_table("auction")
    sales = winners.select("auction", "seller", "expires", "struct(auction, price) AS sale")
    last = collect("sale", 10, by="expires", keep="last")
    sold = sales.group_by("seller").aggregate("q6", sales=last).as_stream()
    mean = "aggregate(sales.price, 0D, (sum, price) -> sum + price) / size(sales) AS avg_price"
    sold.select("seller", mean).to(results, key="seller")
