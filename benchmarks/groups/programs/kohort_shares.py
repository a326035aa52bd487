"""Members of a share group with our ShareConsumer, on one event loop: the seconds from the first record until all are
there, and the last of them accepted.

python -m benchmarks.groups.programs.kohort_shares BOOTSTRAP GROUP MODE MEMBERS TOPIC RECORDS TOPIC RECORDS

The first topic and number are to warm up with. MODE is implicit; explicit, by lists of records; "one by one"; or
batches: Arrow record batches, accepted implicitly.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

import uvloop

from kohort.client import ShareConsumer
from kohort.client.column_codec import load_columns

POLL_MS = 100


class Shares:
    """What the members of one group do together."""

    def __init__(self, bootstrap: str, group: str, mode: str, topic: str, records: int) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.mode = mode
        self.topic = topic
        self.records = records
        self.accepted = 0
        self.first: float | None = None
        self.last = 0.0

    async def seconds(self, members: int) -> float:
        """Run as many until all is accepted."""
        async with asyncio.TaskGroup() as group:
            for _ in range(members):
                group.create_task(self.member())
        assert self.first is not None
        return self.last - self.first

    async def member(self) -> None:
        """Take and accept records."""
        explicit = self.mode in ("explicit", "one by one")
        async with ShareConsumer(
            self.bootstrap,
            group_id=self.group,
            share_acknowledgement_mode="explicit" if explicit else "implicit",
        ) as consumer:
            consumer.subscribe(self.topic)
            while self.accepted < self.records:
                if self.mode == "batches":
                    batch = await consumer.poll_batch(timeout_ms=POLL_MS)
                    number = batch.num_rows if batch is not None else 0
                else:
                    polled = await consumer.poll(timeout_ms=POLL_MS)
                    number = len(polled)
                    if self.mode == "explicit":
                        consumer.acknowledge(polled)
                    elif explicit:
                        for record in polled:
                            consumer.acknowledge(record)
                if number and self.first is None:
                    self.first = time.perf_counter()
                self.accepted += number
                if self.accepted >= self.records:
                    refused = [error for error in (await consumer.commit()).values() if error is not None]
                    if refused:
                        raise refused[0]
                    self.last = time.perf_counter()


async def run() -> float:
    """The warm-up, and what counts."""
    bootstrap, group, mode, members, warm_topic, warm_records, topic, records = sys.argv[1:]
    load_columns().result()  # what a process that has run for a while has loaded in the background
    await Shares(bootstrap, group + "-warm-up", mode, warm_topic, int(warm_records)).seconds(int(members))
    return await Shares(bootstrap, group, mode, topic, int(records)).seconds(int(members))


if __name__ == "__main__":
    print(json.dumps({"seconds": uvloop.run(run())}), flush=True)
    os._exit(0)
