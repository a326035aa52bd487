"""Pass through: bids as they are."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    nexmark.bids.select("auction", "bidder", "price", "dateTime", "extra").to(results)
