"""Processing-time windows: bids of a bidder in 10 s of the clock."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import count, window


def program(nexmark: Sources, results: str) -> None:
    bids = nexmark.bids.select("bidder", "current_timestamp() AS now")
    bids.group_by("bidder", window("now", "10 seconds")).aggregate("q12", bid_count=count()).to(results)
