"""A changelog as an aggregate's epochs write it: a transaction an epoch, each key once, in no order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client import Admin, Producer

EPOCH = 50_000
"""Records of a transaction."""
_DAYS = 30


def rows(numbers: np.ndarray) -> pa.Table:
    """The rows of groups with these numbers: of an auction by day, some 50 bytes of key and 90 of value."""
    count, total = numbers % 97 + 1, numbers * 7_919 % 1_000_003
    days = [f'{{"window":"2013-04-{day + 1:02}T00:00:00.000Z","auction":' for day in range(_DAYS)]
    numbered, counted, summed = (pc.cast(pa.array(each), pa.string()) for each in (numbers, count, total))
    keys = pc.binary_join_element_wise(pa.array(days).take(pa.array(numbers % _DAYS)), numbered, "}", "")
    values = pc.binary_join_element_wise(
        '{"n":',
        counted,
        ',"sum":',
        summed,
        ',"worst":218,"state":{"n":',
        counted,
        ',"sum":',
        summed,
        ',"worst":218}}',
        "",
    )
    return pa.table({"key": keys.cast(pa.binary()), "value": values.cast(pa.binary())})


async def fill(servers: str, topic: str, keys: int, partitions: int) -> None:
    """Make the topic, and write so many keys, each to the partition of its number."""
    async with Admin(servers) as admin:
        await admin.topics.create(
            topic, partitions=partitions, replication_factor=1, configs={"cleanup.policy": "compact"}
        )
    order = np.random.default_rng(2013).permutation(keys)
    async with Producer(servers, transactional_id=topic, compression_type="lz4") as producer:
        for start in range(0, keys, EPOCH):
            epoch = order[start : start + EPOCH]
            await producer.begin_transaction()
            for partition in range(partitions):
                await producer.send_table(topic, rows(epoch[epoch % partitions == partition]), partition=partition)
            await producer.commit_transaction()
