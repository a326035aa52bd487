"""The year, replayed into topics at a steady pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from kohort.cli.demo.compare import KEYS
from kohort.cli.demo.flights import Year
from kohort.cli.demo.plan import PARTITIONS
from kohort.cli.demo.records import as_records
from kohort.client import Admin, Producer

_TICKS: Final = 5
"""Times a second that flights are sent."""


async def create_topics(admin: Admin) -> None:
    """Creates the application's topics. Tables and results are compacted."""
    await admin.topics.create("flights", partitions=PARTITIONS)
    tables = ("airlines", "weather", *KEYS)
    await admin.topics.create(*tables, partitions=PARTITIONS, configs={"cleanup.policy": "compact"})


async def send_tables(servers: str, year: Year) -> None:
    """Sends airlines and weather, which come before the first flight."""
    async with Producer(servers, compression_type="lz4") as producer:
        await (await producer.send_table("airlines", as_records(year.airlines, "carrier")))
        await (await producer.send_table("weather", as_records(year.weather, ("origin", "time_hour"))))


async def replay(servers: str, flights: pa.Table, seconds: float, sent: Callable[[int], None]) -> None:
    """Sends the flights in `seconds`, or as fast as the broker takes them.

    Args:
        flights: records, from `as_records`.
        seconds: the duration.
        sent: called several times a second with the number of acknowledged flights.
    """
    clock = asyncio.get_running_loop().time
    ticks = max(1, round(seconds * _TICKS))
    total = flights.num_rows
    async with Producer(servers, compression_type="lz4", linger_ms=20) as producer:
        began = clock()
        for tick in range(1, ticks + 1):
            first, last = total * (tick - 1) // ticks, total * tick // ticks
            await (await producer.send_table("flights", flights.slice(first, last - first)))
            sent(last)
            await asyncio.sleep(max(0.0, began + tick / _TICKS - clock()))
