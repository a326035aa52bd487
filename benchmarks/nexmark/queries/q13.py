"""Bounded side input join: bids with a text from a small table."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    keyed = nexmark.bids.select("auction", "bidder", "price", "dateTime", "auction % 10000 AS remainder")
    joined = keyed.join(nexmark.side_input, on={"remainder": "key"})
    joined.select("auction", "bidder", "price", "dateTime", "value").to(results)
