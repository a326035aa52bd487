"""Selection: bids for one auction of 123."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    nexmark.bids.where("auction % 123 = 0").select("auction", "price").to(results)
