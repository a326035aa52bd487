"""Monitor new users: who opened an auction in the same 10 s in which they registered."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    registered = nexmark.persons.transform(
        lambda persons: persons.selectExpr("id", "name", f"{window('registered')} AS window", "registered")
    )
    opened = nexmark.auctions.transform(
        lambda auctions: auctions.selectExpr("seller", f"{window('opened')} AS window", "opened")
    )
    both = registered.join_stream(
        opened, on={"id": "seller", "window": "window"}, within="10 seconds", grace="1 minute"
    )
    both.transform(lambda rows: rows.select("id", "name", "window")).to(results, key=("id", "window"))


def window(time: str) -> str:
    """The beginning of the 10 s that a time is in."""
    return f"timestamp_seconds(unix_seconds({time}) div 10 * 10)"
