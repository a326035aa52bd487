"""Local item suggestion: who sells in Oregon, Idaho or California, in category 10."""

from __future__ import annotations

from benchmarks.nexmark.sources import Sources


def program(nexmark: Sources, results: str) -> None:
    items = nexmark.auctions.where("category = 10").select("seller", "id", "dateTime AS opened")
    persons = nexmark.persons.where("state IN ('or', 'id', 'ca')").select("id", "name", "city", "state", "dateTime")
    sold = items.join_stream(persons, on={"seller": "id"}, within="1 hour", grace="1 minute")
    sold.select("name", "city", "state", "id").to(results)
