"""JSON values to typed columns, beside `pyarrow.json`: flights as the demo has them, and bids of Nexmark's shape.

    make bench-json
    python -m benchmarks.json_columns --quick

Values of a topic are given as an Arrow column of bytes, and wanted as Arrow columns of a declared schema.
Kohort reads what is flat by a compiled loop, and has `pyarrow.json` read the other rows; it knows which row is which
and which is bad, where that alone fails for all or crashes. `pyarrow.json` takes text, so the values are joined by
newlines for it; of several ways to read that the fastest counts.
Each figure is the best of repeated runs, in turns: of processor time on one core, but for the last columns.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from rich.console import Console
from rich.table import Table

from kohort.cli.demo.flights import fetch, load
from kohort.cli.demo.records import as_records
from kohort.spark.formats import decoder

CACHE: Final = Path(__file__).parents[1] / ".cache"
BATCHES: Final = (1_000, 10_000, 100_000)
"""Records that are decoded at a time."""

BLOCKS: Final = (1 << 20, 1 << 24, (1 << 31) - 1)
"""Bytes that `pyarrow.json` takes at a time: its default, and more."""

HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")


class Values(NamedTuple):
    """Values of a topic, and the columns that a program declares of them."""

    name: str
    values: pa.Array
    schema: StructType


def flights(records: int) -> pa.Array:
    """The demo's flights, over and over: 20 fields each."""
    with tempfile.TemporaryDirectory() as files:
        year = load(asyncio.run(fetch(CACHE)), Path(files)).flights
    values = as_records(year.slice(0, records), "carrier")["value"].combine_chunks().cast(pa.binary())
    return values.take(pa.array([number % len(values) for number in range(records)]))


def bids(records: int) -> pa.Array:
    """Bids with the fields, and about the sizes, of Nexmark's generator."""
    draw = random.Random(1)
    start = datetime.datetime(2024, 1, 1)
    encoder = msgspec.json.Encoder()

    def word() -> str:
        return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz_", k=draw.randint(3, 5)))

    def bid(number: int) -> bytes:
        at = start + datetime.timedelta(milliseconds=number // 10)
        url = f"https://www.nexmark.com/{word()}/{word()}/{word()}/item.htm?query=1"
        if draw.random() < 0.5:
            channel = draw.choice(HOT_CHANNELS)
        else:
            channel = f"channel-{draw.randrange(10_000)}"
            url += f"&channel_id={draw.getrandbits(31)}"
        return encoder.encode({
            "auction": 1_000 + number * 3 // 46 - draw.randrange(100),
            "bidder": 1_000 + number // 46 - draw.randrange(1_000),
            "price": round(10 ** (draw.random() * 6) * 100),
            "channel": channel,
            "url": url,
            "dateTime": at.isoformat(" ", "milliseconds"),
            "extra": "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(54, 82))),
        })  # fmt: skip

    return pa.array(map(bid, range(records)), pa.binary())


def columns(**types: type) -> StructType:
    return StructType([StructField(name, kind()) for name, kind in types.items()])


def all_values(records: int) -> list[Values]:
    flown, bidden = flights(records), bids(records)
    whole, text, instant = LongType, StringType, TimestampType
    few = columns(carrier=text, origin=text, dep_delay=IntegerType, time_hour=instant)
    every = columns(
        year=whole, month=whole, day=whole, dep_time=whole, sched_dep_time=whole, dep_delay=whole, arr_time=whole,
        sched_arr_time=whole, arr_delay=whole, carrier=text, flight=whole, tailnum=text, origin=text, dest=text,
        air_time=whole, distance=whole, hour=whole, minute=whole, time_hour=instant,
    )  # fmt: skip
    bid = columns(auction=whole, bidder=whole, price=whole, channel=text, url=text, dateTime=instant, extra=text)
    return [
        Values("flights, 4 of 20 columns", flown, few),
        Values("flights, 19 of 20 columns", flown, every),
        Values("bids, all 7 columns", bidden, bid),
    ]


def with_pyarrow(values: pa.Array, schema: pa.Schema, block: int, threads: bool, newlines: bool) -> pa.Table:
    rows = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    text = pc.binary_join(rows, b"\n")[0].as_buffer()
    return pa.json.read_json(
        pa.BufferReader(text),
        pa.json.ReadOptions(use_threads=threads, block_size=block),
        pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore", newlines_in_values=newlines),
    )


@contextmanager
def one_core() -> Iterator[None]:
    """Meanwhile this thread, and those it starts, have one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def best(rounds: int, groups: list[list[Callable[[], object]]], clock: Callable[[], float]) -> list[float]:
    """Seconds of the fastest call within each group, measured in turns."""
    fastest = [float("inf")] * len(groups)
    for _ in range(rounds):
        for number, group in enumerate(groups):
            for call in group:
                begun = clock()
                call()
                fastest[number] = min(fastest[number], clock() - begun)
    return fastest


def measured(values: Values, batch: int, rounds: int) -> tuple[float, float, float, float]:
    """Records a second: Kohort, without bad ones and with; `pyarrow.json` on one core, and with threads."""
    kohort = decoder("json", values.schema)
    some = values.values.slice(0, batch)
    decoded = kohort.decode(some)
    assert not decoded.errors

    def ways(threads: bool) -> list[Callable[[], object]]:
        size = sum(len(each) for each in some.buffers() if each)
        blocks = [each for number, each in enumerate(BLOCKS) if not number or BLOCKS[number - 1] < size]
        return [
            partial(with_pyarrow, some, kohort.schema, block, threads, newlines)
            for block in blocks
            for newlines in (False, True)
        ]

    every_100th = pa.array([number % 100 == 50 for number in range(batch)])
    dirty = pc.if_else(every_100th, pa.scalar(b"nonsense"), some)
    for way in ways(False):
        assert way() == pa.Table.from_batches([decoded.columns])
    with one_core():
        groups = [[lambda: kohort.decode(some)], [lambda: kohort.decode(dirty)], ways(False)]
        ours, with_bad, theirs = best(rounds, groups, time.process_time)
    (threaded,) = best(rounds, [ways(True)], time.perf_counter)
    return batch / ours, batch / with_bad, batch / theirs, batch / threaded


def main() -> None:
    parser = argparse.ArgumentParser(description="JSON values to columns, beside pyarrow.json")
    parser.add_argument("--quick", action="store_true", help="fewer records and rounds")
    quick = parser.parse_args().quick
    batches = BATCHES[:2] if quick else BATCHES
    rounds = 3 if quick else 15
    table = Table(title="JSON to columns: thousand records a second (best), and how many times as fast Kohort is")
    table.add_column("Values")
    for column in ("bytes", "at a time", "Kohort", "1 % bad", "pyarrow.json", "×", "with threads", "×"):
        table.add_column(column, justify="right")
    for values in all_values(batches[-1]):
        for batch in batches:
            ours, with_bad, theirs, threaded = measured(values, batch, rounds)
            some = values.values.slice(0, batch)
            table.add_row(
                values.name, f"{pc.mean(pc.binary_length(some)).as_py():.0f}", f"{batch:,}",
                f"{ours / 1e3:,.0f}", f"{with_bad / 1e3:,.0f}", f"{theirs / 1e3:,.0f}", f"{ours / theirs:.1f}",
                f"{threaded / 1e3:,.0f}", f"{ours / threaded:.1f}",
            )  # fmt: skip
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
