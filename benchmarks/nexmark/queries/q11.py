"""User sessions: bids of a bidder with 10 s or less between."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import count, session


def program(nexmark: Sources, results: str) -> None:
    sessions = nexmark.bids.group_by("bidder", session("dateTime", "10 seconds", end="ended"))
    sessions.aggregate("q11", bid_count=count()).to(results)
