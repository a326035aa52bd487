"""Local item suggestion: who sells in Oregon, Idaho or California, in category 10."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    items = nexmark.auctions.transform(
        lambda auctions: auctions.where("category = 10").select("seller", "id", "opened")
    )
    locals_ = nexmark.persons.transform(
        lambda persons: persons.where("state IN ('or', 'id', 'ca')").select("id", "name", "city", "state", "registered")
    )
    sold = items.join_stream(locals_, on={"seller": "id"}, within="1 hour", grace="1 minute")
    sold.transform(lambda rows: rows.select("name", "city", "state", "id")).to(results)
