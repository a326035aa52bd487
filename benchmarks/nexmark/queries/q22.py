"""URL directories: the first three."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    nexmark.bids.select(
        "auction",
        "bidder",
        "price",
        "channel",
        "split(url, '/')[3] AS dir1",
        "split(url, '/')[4] AS dir2",
        "split(url, '/')[5] AS dir3",
    ).to(results)
