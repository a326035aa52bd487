"""The part of an instance that restores, without Spark: opens a task's store for each partition, and restores it.

Usage: kohort.py OPTIONS, JSON: servers, changelog, partitions, keys, directory. Tells `phase SECONDS CPU NAME` of the
start of restoring and its end, and stays until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.restore.changelog import rows
from kohort.client.types import TopicPartition
from kohort.spark.state import ChangelogReader, StateDirectory, Store
from kohort.streams.tasks import TaskId

SAMPLE = 1_000


def tell(name: str) -> None:
    """A phase has begun."""
    print(f"phase {time.time()} {time.process_time()} {name}", flush=True)


def check(stores: list[Store], keys: int) -> None:
    """Some of the keys have their values."""
    numbers = np.unique(np.linspace(0, keys - 1, SAMPLE).astype(np.int64))
    for partition, store in enumerate(stores):
        wanted = rows(numbers[numbers % len(stores) == partition])
        if store.get_many(wanted["key"]).to_pylist() != wanted["value"].to_pylist():
            raise SystemExit(f"partition {partition}: not what the changelog has")


async def main(servers: str, changelog: str, partitions: int, keys: int, directory: str) -> None:
    """Restore, and wait for SIGTERM."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    with StateDirectory(Path(directory) / "state", "restore") as state:
        async with ChangelogReader(servers) as reader:
            tell("opening")
            stores = [state.open_store(TaskId("0", number), "counts") for number in range(partitions)]
            tell("restoring")
            async with asyncio.TaskGroup() as group:
                for number, store in enumerate(stores):
                    group.create_task(reader.restore(store, TopicPartition(changelog, number)))
            tell("restored")
            check(stores, keys)
            tell("ready")
            await over.wait()
        for store in stores:
            store.close()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
