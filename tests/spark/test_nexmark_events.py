"""Nexmark's events are drawn as the crate `nexmark` draws them."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pytest

from benchmarks.nexmark.events import CHUNK, Events, Shape, generate, whole
from benchmarks.nexmark.letters import channels
from benchmarks.nexmark.topics import AUCTION, BID, PERSON, records, side_input
from tests.interop.built_once import CACHE, built_once

CRATE = "0.2.0"
BUILD_S = 900
"""A first build on a busy machine."""
SAMPLE = 200_000
CAMEL = {
    "email_address": "emailAddress", "credit_card": "creditCard", "date_time": "dateTime", "item_name": "itemName",
    "initial_bid": "initialBid",
}  # fmt: skip
HOT = {"seller": 0, "bidder": 1, "auction": 0}
"""Of a hundred persons or auctions the hot one's place."""


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


@pytest.mark.long
@pytest.mark.timeout(BUILD_S + 120)
def test_distributions_are_the_crates(crate: Path) -> None:
    """Of so many events: means, quantiles, shares and counts of distinct values, of every column."""
    theirs = _read(subprocess.run([crate, "--number", str(SAMPLE), "--no-wait"], stdout=subprocess.PIPE, check=True))
    ours = kinds(whole(SAMPLE))
    for kind, table in theirs.items():
        own = ours[kind].drop_columns(["number"])
        assert own.column_names == table.column_names
        assert own.num_rows == table.num_rows
        facts, expected = _facts(own), _facts(table)
        assert {name: facts[name] for name in facts} == {
            name: pytest.approx(expected[name], rel=0.05, abs=0.02) for name in facts
        }, kind


@pytest.fixture(scope="module")
def crate() -> Path:
    """The crate's program, built once."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo of a newer Rust is missing, which builds the crate that Nexmark's events are compared with")

    def build(target: Path) -> None:
        command = [cargo, "install", "nexmark", "--version", CRATE, "--features", "bin", "--root", str(target)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "CARGO_BUILD_JOBS": "2"})

    return built_once(CACHE / "toolchains", "nexmark", [CRATE.encode()], build) / "bin" / "nexmark"


def _read(done: subprocess.CompletedProcess[bytes]) -> dict[str, pa.Table]:
    read = pa.json.read_json(io.BytesIO(done.stdout), pa.json.ReadOptions(block_size=len(done.stdout)))
    tables = {}
    for kind in read.column_names:
        some = read.filter(pc.is_valid(read[kind]))[kind].combine_chunks()
        table = pa.Table.from_struct_array(some)
        tables[kind] = table.rename_columns([CAMEL.get(name, name) for name in table.column_names])
    return tables


def _facts(table: pa.Table) -> dict[str, Any]:
    """What columns are like, and how they go together."""
    facts: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_string(column.type):
            lengths = pc.utf8_length(column)
            facts[f"{name}: length"] = [pc.min(lengths).as_py(), pc.mean(lengths).as_py(), pc.max(lengths).as_py()]
            column = column.dictionary_encode()
        elif name not in ("dateTime", "expires"):
            numbers = np.log(column.to_numpy())
            facts[name] = [float(numbers.mean()), *np.quantile(numbers, [0.05, 0.25, 0.5, 0.75, 0.95])]
        counts = np.sort(column.value_counts().field("counts").to_numpy())[::-1]
        facts[f"{name}: distinct"] = len(counts)
        facts[f"{name}: the most frequent"] = counts[:10].sum() / len(column)
        if name in HOT:
            facts[f"{name}: hot"] = float(((column.to_numpy() - 1_000) % 100 == HOT[name]).mean())
    times = table["dateTime"].cast(pa.int64()).to_numpy()
    facts["span"] = int(times[-1] - times[0])
    if "expires" in table.column_names:
        open_for = table["expires"].cast(pa.int64()).to_numpy() - times
        facts["open for"] = [float(open_for.mean()), *np.quantile(open_for, [0, 0.25, 0.5, 0.75, 1])]
    if "auction" in table.column_names:
        pairs = table.group_by(["auction", "bidder"]).aggregate([])
        facts["pairs of auction and bidder"] = pairs.num_rows
        facts["bids with a channel id"] = pc.mean(
            pc.match_substring(table["url"], "channel_id=").cast(pa.int8())
        ).as_py()
    return facts
