"""Currency conversion: prices in euros."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    nexmark.bids.select("auction", "bidder", "0.908D * price AS price", "dateTime", "extra").to(results)
