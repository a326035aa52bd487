"""Nexmark's events are drawn as the crate `nexmark` draws them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.nexmark.events import CHUNK, Events, Shape, generate, whole
from benchmarks.nexmark.letters import channels
from benchmarks.nexmark.topics import AUCTION, BID, PERSON, records, side_input

from .nexmark_crate import FACTS, SAMPLE, facts_of


def kinds(events: Events) -> dict[str, pa.Table]:
    return {"Person": events.persons, "Auction": events.auctions, "Bid": events.bids}


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    made = whole(CHUNK + 57)
    assert [table.num_rows for table in kinds(made).values()] == [1_002, 3_006, 46_049]
    numbers = sorted(number for table in kinds(made).values() for number in table["number"].to_pylist())
    assert numbers == list(range(CHUNK + 57))
    assert made.persons["id"].to_pylist() == list(range(1_000, 2_002))
    assert made.auctions["id"].to_pylist() == list(range(1_000, 4_006))


def test_a_seed_makes_the_same_events_and_another_seed_others() -> None:
    first, again, other = (whole(1_000, Shape(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.bids != other.bids
    assert [part.bids.num_rows for part in generate(CHUNK + 50)] == [46_000, 46]


def test_events_happen_at_their_rate() -> None:
    """Half a millisecond is rounded up."""
    times = Shape(start_ms=7, rate=2_000).time(np.arange(4))
    assert times.tolist() == [7, 8, 8, 9]
    made = whole(10_000, Shape(start_ms=0, rate=100))
    assert pc.max(made.bids["dateTime"]).as_py().timestamp() == 99.99


def test_a_record_has_its_key_and_all_columns_as_json() -> None:
    made = whole(50)
    for table, topic in ((made.persons, PERSON), (made.auctions, AUCTION), (made.bids, BID)):
        rows = table.drop_columns(["number"])
        for row, record in zip(rows.to_pylist(), records(rows, topic.key).to_pylist(), strict=True):
            assert record["key"] == str(row[topic.key]).encode()
            assert json.loads(record["value"]) == {
                name: value if isinstance(value, int | str) else round(value.timestamp() * 1000)
                for name, value in row.items()
            }
    assert json.loads(records(side_input(), "key")["value"][7].as_py()) == {"key": 7, "value": "side-7"}


def test_channels_have_ids_of_reversed_bits() -> None:
    """As the crate's: the bits of the channel's number in reverse, as a signed number, without its sign."""
    with_id = channels(np.random.default_rng(1)).slice(4).to_pylist()
    for number in (1, 2, 3, 4_711):
        reverse = int(f"{number:032b}"[::-1], 2)
        expected = abs(reverse - (1 << 32) if reverse >= 1 << 31 else reverse)
        assert with_id[number]["channel"] == f"channel-{number}"
        assert with_id[number]["url"].partition("&channel_id=")[2] in ("", str(expected))


def test_distributions_are_the_crates() -> None:
    """Of so many events: means, quantiles, shares and counts of distinct values, of every column."""
    theirs = json.loads(FACTS.read_text())
    for kind, table in kinds(whole(SAMPLE)).items():
        own = table.drop_columns(["number"])
        expected = theirs[kind]
        assert own.column_names == expected["columns"]
        assert own.num_rows == expected["rows"]
        facts = facts_of(own)
        assert facts == {name: pytest.approx(expected["facts"][name], rel=0.05, abs=0.02) for name in facts}, kind
