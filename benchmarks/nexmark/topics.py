"""Nexmark's topics: one for each kind of event, as JSON, and the small table that q13 joins.

There are two customs. Flink's and RisingWave's Nexmark write one topic of events, each of three structs of which two
are null, and have three views over it; ksqlDB's and Timeplus' write three topics. Here it is three, as applications on
Kafka have it: a record's key is what its topic is partitioned by, so that a table can be made of auctions, bids can be
joined to them where they lie, and no query decodes what it doesn't want. What it costs: topics have no order between
them.

Times are numbers of ms since 1970, as in the crate's JSON; columns have the names of Nexmark's own tables.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark.events import NUMBER, Events, Shape, closing, generate
from kohort.client import Admin, Producer

SIDE_KEYS: Final = 10_000
"""Of the table that q13 joins."""


@dataclass(frozen=True)
class Topic:
    """A topic: what its name ends with, the column that is its records' key, and its columns as Spark says them."""

    name: str
    key: str
    schema: str


PERSON: Final = Topic(
    "person",
    "id",
    "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP, "
    "extra STRING",
)
AUCTION: Final = Topic(
    "auction",
    "id",
    "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
)
BID: Final = Topic(
    "bid",
    "auction",
    "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING",
)
SIDE_INPUT: Final = Topic("side-input", "key", "key BIGINT, value STRING")
TOPICS: Final = (PERSON, AUCTION, BID, SIDE_INPUT)


def side_input() -> pa.Table:
    """The table that q13 joins: each of `SIDE_KEYS` numbers, and a text."""
    numbers = pa.array(range(SIDE_KEYS), pa.int64())
    return pa.table({"key": numbers, "value": pc.binary_join_element_wise("side", numbers.cast(pa.string()), "-")})


def records(table: pa.Table, key: str) -> pa.Table:
    """Rows as records: the key column as text, and all columns as JSON. Texts must need no escapes."""
    pieces: list[pa.ChunkedArray | str] = []
    for name in table.column_names:
        column = table[name]
        quoted = '"' if pa.types.is_string(column.type) else ""
        number = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        pieces += [f'{"," if pieces else "{"}"{name}":{quoted}', number.cast(pa.string()), quoted]
    value = pc.binary_join_element_wise(*pieces, "}", "")
    return pa.table({"key": table[key].cast(pa.string()).cast(pa.binary()), "value": value.cast(pa.binary())})


def create(servers: str, prefix: str, partitions: int) -> None:
    """All topics; `prefix` and a topic's name make its name, with "-" between."""
    asyncio.run(_create(servers, prefix, partitions))


def fill(servers: str, prefix: str, events: int, shape: Shape | None = None, *, closed: bool = False) -> None:
    """Produce so many events, as fast as it goes, and the table that q13 joins; if `closed`, the closing events too."""
    asyncio.run(_fill(servers, prefix, events, shape, closed))


async def _create(servers: str, prefix: str, partitions: int) -> None:
    async with Admin(servers) as admin:
        for topic in TOPICS:
            await admin.topics.create(f"{prefix}-{topic.name}", partitions=partitions, replication_factor=1)


async def _fill(servers: str, prefix: str, events: int, shape: Shape | None, closed: bool) -> None:
    async with Producer(servers, compression_type="lz4") as producer:

        async def send(topic: Topic, table: pa.Table) -> None:
            await (await producer.send_table(f"{prefix}-{topic.name}", records(table, topic.key)))

        async def send_all(some: Events) -> None:
            for topic, table in ((PERSON, some.persons), (AUCTION, some.auctions), (BID, some.bids)):
                if table.num_rows:
                    await send(topic, table.drop_columns([NUMBER]))

        await send(SIDE_INPUT, side_input())
        for some in generate(events, shape):
            await send_all(some)
        if closed:
            await send_all(closing(events, shape))
