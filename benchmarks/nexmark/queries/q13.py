"""Bounded side input join: bids with a text from a small table."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    keyed = nexmark.bids.transform(
        lambda bids: bids.selectExpr("auction", "bidder", "price", "dateTime", "auction % 10000 AS key")
    )
    keyed.join(nexmark.side_input).transform(lambda rows: rows.drop("key")).to(results)
