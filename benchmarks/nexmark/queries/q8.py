"""Monitor new users: who opened an auction in the same 10 s in which they registered."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources

WINDOW = "timestamp_seconds(unix_seconds(dateTime) div 10 * 10)"


def program(nexmark: Sources, results: str) -> None:
    registered = nexmark.persons.select("id", "name", "dateTime", f"{WINDOW} AS window")
    opened = nexmark.auctions.select("seller", "dateTime AS opened", f"{WINDOW} AS window")
    both = registered.join_stream(
        opened, on={"id": "seller", "window": "window"}, within="10 seconds", grace="1 minute"
    )
    both.select("id", "name", "window").to(results, key=("id", "window"))
