"""Reading the topics that the program writes, committed records only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

import pyarrow as pa

from kohort.cli.demo.compare import Groups
from kohort.cli.demo.errors import DemoError
from kohort.client import Consumer, TopicPartition

_STUCK: Final = 30.0
"""Seconds without progress after which reading fails."""


async def read_groups(servers: str, topic: str, columns: tuple[str, ...]) -> Groups:
    """The last value of each key, by the key columns of the groups.

    Raises:
        DemoError: the end isn't reached, as a transaction stays open.
    """
    latest: dict[bytes, bytes | None] = {}
    async for batch in _batches(servers, topic):
        latest.update(zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True))
    groups: Groups = {}
    for value in latest.values():
        if value is not None:
            row = json.loads(value)
            groups[tuple(str(row[name]) for name in columns)] = row
    return groups


async def _batches(servers: str, topic: str) -> AsyncIterator[pa.RecordBatch]:
    """All records of a topic that are committed by now."""
    clock = asyncio.get_running_loop().time
    async with Consumer(servers, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in await consumer.partitions_for(topic)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(*partitions)
        last = clock()
        while any((consumer.position(at) or 0) < end for at, end in ends.items()):
            batch = await consumer.poll_batch(timeout_ms=500)
            if batch is not None:
                last = clock()
                yield batch
            elif clock() - last > _STUCK:
                raise DemoError(f"can't read {topic} to its end: is a transaction still open?")
