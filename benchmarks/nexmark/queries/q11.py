"""User sessions: bids of a bidder with less than 10 s between."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources
from kohort.spark import count, session


def program(nexmark: Sources, results: str) -> None:
    sessions = nexmark.bids.group_by("bidder", session("dateTime", "9999 milliseconds", end="ended"))
    sessions.aggregate("q11", bid_count=count()).to(results)
