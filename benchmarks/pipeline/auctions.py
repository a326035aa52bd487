"""Bids for auctions: as records, what a batch makes of them by auction and day, and what reads the results.

Bids have the fields of Nexmark's that count here, and its prices. Auctions open one after the other, and an eighth as
many as there are bids are open at a time: two million bids make some 977,000 groups, and so in proportion.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from benchmarks.pipeline.watcher import Watcher
from kohort.client import Producer

CHUNK = 50_000
"""Bids that are made and produced at a time."""
DAYS = 3
DAY_MS = 24 * 60 * 60 * 1000
START_MS = 1_704_067_200_000
"""2024 begins, and so do the bids; they go on for `DAYS`."""
OPEN, NEW = 0.125, 0.38
"""Auctions that take bids at a time, and those that open meanwhile, by how many bids there are."""
CHEAP, DEAR = 10_000, 1_000_000
"""The limits of price ranges, as in Nexmark's query 17."""
FIRST_AUCTION = 1_000

Groups = dict[str, npt.NDArray[np.float64]]
"""By result, its value in each group; a group's place is `_places`'. NaN: there is no such group."""

RESULTS: Final = ("bids", "cheap", "middling", "dear", "lowest", "highest", "mean", "total")
_SCHEMA: Final = pa.schema([
    ("auction", pa.int64()),
    ("window", pa.timestamp("ms", "UTC")),
    *((name, pa.float64() if name == "mean" else pa.int64()) for name in RESULTS),
])  # fmt: skip


def bids(records: int) -> Iterator[pa.Table]:
    """So many bids, `CHUNK` at a time: auction, price, dateTime (ms since 1970), and key and value of the record."""
    for start in range(0, records, CHUNK):
        draw = np.random.default_rng([17, start])
        numbers = np.arange(start, min(start + CHUNK, records))
        newest = FIRST_AUCTION + int(OPEN * records) + numbers * NEW
        auction = pa.array(newest.astype(np.int64) - draw.integers(0, int(OPEN * records) + 1, len(numbers)))
        bidder = pa.array(1_000 + draw.integers(0, numbers // 46 + 1))
        price = pa.array(np.round(10 ** (draw.random(len(numbers)) * 6) * 100).astype(np.int64))
        times = pa.array(START_MS + numbers * (DAYS * DAY_MS) // records)
        names = ('{"auction":', ',"bidder":', ',"price":', ',"dateTime":')
        texts = [column.cast(pa.string()) for column in (auction, bidder, price, times)]
        pieces = [piece for pair in zip(names, texts, strict=True) for piece in pair]
        value = pc.binary_join_element_wise(*pieces, "}", "").cast(pa.binary())
        key = texts[0].cast(pa.binary())
        yield pa.table({"auction": auction, "price": price, "dateTime": times, "key": key, "value": value})


def fill(servers: str, topic: str, records: int) -> None:
    """Produce bids, as fast as it goes."""
    asyncio.run(_fill(servers, topic, records))


async def _fill(servers: str, topic: str, records: int) -> None:
    async with Producer(servers, compression_type="lz4") as producer:
        for table in bids(records):
            await (await producer.send_table(topic, table.select(["key", "value"])))


def batch(records: int) -> Groups:
    """Each group of so many bids."""
    table = pa.concat_tables(part.select(["auction", "price", "dateTime"]) for part in bids(records))
    price = table["price"]
    cheap, dear = pc.less(price, CHEAP), pc.greater_equal(price, DEAR)
    ranges = {"cheap": cheap, "middling": pc.invert(pc.or_(cheap, dear)), "dear": dear}
    for name, within in ranges.items():
        table = table.append_column(name, within.cast(pa.int64()))
    day = pc.divide(pc.subtract(table["dateTime"], START_MS), DAY_MS)
    grouped = (
        table.append_column("day", day)
        .group_by(["auction", "day"])
        .aggregate([
            *((name, "sum") for name in ranges), ("price", "count"), ("price", "min"), ("price", "max"),
            ("price", "mean"), ("price", "sum"),
        ])
    )  # fmt: skip
    names = dict(
        zip(("bids", "lowest", "highest", "mean", "total"), ("count", "min", "max", "mean", "sum"), strict=True)
    )
    found = {name: grouped[f"price_{function}"] for name, function in names.items()}
    found |= {name: grouped[f"{name}_sum"] for name in ranges}
    groups = _none(records)
    places = _places(grouped["auction"].to_numpy(), grouped["day"].to_numpy())
    for name, column in found.items():
        groups[name][places] = column.to_numpy()
    return groups


class AuctionResults(Watcher[Groups]):
    """Reads the results of so many bids."""

    def __init__(self, servers: str, topic: str, partitions: int, records: int) -> None:
        super().__init__(servers, topic, partitions)
        self._latest = _none(records)
        self._unknown = 0

    def take(self, values: Sequence[bytes]) -> None:
        """Take results, in the order in which they were read."""
        results = pa.json.read_json(
            io.BytesIO(b"\n".join(values)),
            pa.json.ReadOptions(use_threads=False, block_size=64 * 1024 * 1024),
            pa.json.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="error"),
        )
        days = pc.divide(pc.subtract(results["window"].cast(pa.int64()), START_MS), DAY_MS)
        places = _places(results["auction"].to_numpy(), days.to_numpy())
        known = (places >= 0) & (places < len(self._latest["bids"]))
        self._unknown += int(len(known) - known.sum())
        # Of a group that is in it several times the last counts.
        places, last = np.unique(places[known][::-1], return_index=True)
        before = np.nan_to_num(self._latest["bids"][places]).sum()
        for name in RESULTS:
            self._latest[name][places] = results[name].to_numpy()[known][::-1][last]
        self.counted += int(self._latest["bids"][places].sum() - before)

    def differences(self, expected: Groups) -> list[str]:
        """Where the results aren't what a batch makes of the same bids."""
        differs = np.zeros(len(expected["bids"]), bool)
        for name in RESULTS:
            differs |= ~np.isclose(self._latest[name], expected[name], rtol=1e-12, atol=0, equal_nan=True)
        found = [f"{self._unknown} results are of no group"] if self._unknown else []
        return found + [f"{_group(place)}: {_row(self._latest, place)}, not {_row(expected, place)}"
                        for place in np.flatnonzero(differs)]  # fmt: skip


def _places(auctions: npt.NDArray[np.int64], days: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    places: npt.NDArray[np.int64] = np.where((days >= 0) & (days < DAYS), (auctions - FIRST_AUCTION) * DAYS + days, -1)
    return places


def _none(records: int) -> Groups:
    auctions = int(OPEN * records) + int(NEW * records) + 2
    return {name: np.full(auctions * DAYS, np.nan) for name in RESULTS}


def _group(place: int) -> str:
    return f"auction {FIRST_AUCTION + place // DAYS}, day {place % DAYS}"


def _row(groups: Groups, place: int) -> dict[str, float]:
    return {name: float(groups[name][place]) for name in RESULTS}
