"""What an epoch of a join as of a time costs, by how many versions keys have: `make bench-versions`.

Without Spark: the join over stores in RocksDB, which it asks by sockets as executors do. Processor time of both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from kohort.spark.executor_rpc.client import RpcAddress
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.processors.as_of_join import AsOfJoinProcessor
from kohort.spark.jobs.processors.interface import Rows, TaskState
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.stages.process import _Access
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import CLOCK, OFFSET_COLUMN, SIDE, TIME_COLUMN
from kohort.spark.program.table_operations import ENDING, PENDING, SINCE, VERSIONS, AsOfJoin
from kohort.spark.state.store import Store

DAY_MS: Final = 86_400_000
FIRST_MS: Final = 1_767_225_600_000
SPACE_MS: Final = 1_000
"""Between two versions of a key."""
STREAM: Final = [("key", pa.string()), ("n", pa.int64())]
ROWS: Final = pa.schema(
    [*STREAM, (SIDE, pa.int32()), (SINCE, pa.int64()), ("rate", pa.float64()), (DELETED, pa.bool_())]
)
_SINCE: Final = pa.schema([(SINCE, pa.timestamp("us", "UTC"))])
STATES: Final[dict[str, tuple[pa.Schema, ...]]] = {
    CLOCK: (pa.schema([("table", pa.int64()), ("stream", pa.int64())]),),
    VERSIONS: (pa.schema([*_SINCE, ("rate", pa.float64()), (DELETED, pa.bool_())]), _SINCE),
    ENDING: (pa.schema([]),),
    PENDING: (pa.schema([*STREAM, (TIME_COLUMN, pa.int64()), (OFFSET_COLUMN, pa.int64())]),),
}


class Joining:
    """A task of the join, with its stores and what an executor asks them through."""

    def __init__(self, directory: Path) -> None:
        join = AsOfJoin(("key",), ("key", "n"), ("rate",), "left", 3650 * DAY_MS, 0)
        self._processor = AsOfJoinProcessor(join, pa.schema([*STREAM, ("rate", pa.float64())]))
        self._stores = {name: Store(directory / name, name, 0) for name in STATES}
        self._server = RpcServer(
            lambda store, _, keys: self._stores[store].get_many(keys),
            scan=lambda store, _, *ranges: self._stores[store].scan_ranges(*ranges),
        )
        self._rpc = RpcAddress(self._server.address, self._server.token, self._server.handover)
        self._read = 0

    def epoch(self, keys: Sequence[str], sides: int | Sequence[int], times: Sequence[int]) -> tuple[float, int]:
        """Rows in their order; processor time until their writes are known (s), and how many were joined."""
        count = len(keys)
        table = np.broadcast_to(sides, count) == 1
        given = pa.table(
            {
                "key": pa.array(keys), "n": pa.array(np.arange(count)), SIDE: pa.array(table.astype(np.int32)),
                SINCE: pa.array(times, mask=~table), "rate": pa.array(np.arange(count) + 0.5, mask=~table),
                DELETED: pa.array(np.zeros(count, bool)),
            }, schema=ROWS,
        )  # fmt: skip
        began = time.process_time()
        writes: dict[str, list[pa.RecordBatch]] = {name: [] for name in STATES}
        states = {
            name: State(name, kept[0], _Access(self._rpc, name, 0, writes[name]), *kept[1:])
            for name, kept in STATES.items()
        }
        of_rows = pa.array(np.where(table, 0, times))
        offsets = pa.array(np.arange(self._read, self._read + count))
        stream_times = pa.array(np.maximum.accumulate(np.where(table, 0, times)))
        rows = Rows(given, group_keys(["key"], [given["key"].combine_chunks()]), of_rows, stream_times, offsets)
        made = self._processor.process(rows, TaskState(0, None, states))
        took = time.process_time() - began
        self._read += count
        for name, batches in writes.items():
            for batch in batches:
                self._stores[name].write(batch["key"], batch["value"], self._read)
        return took, made.rows.num_rows

    def close(self) -> None:
        """Ends what it has opened."""
        self._server.close()
        for store in self._stores.values():
            store.close()


def measured(keys: int, versions: int, epochs: int) -> dict[str, float]:
    """The median of each kind of epoch, in ms, once each of `keys` keys has so many versions."""
    names = [f"key-{number}" for number in range(keys)]
    end = FIRST_MS + versions * SPACE_MS
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        joining = Joining(Path(directory))
        try:
            for start in range(0, versions, 100_000):
                some = range(start, min(start + 100_000, versions))
                times = [FIRST_MS + number * SPACE_MS for number in some]
                for name in names:
                    joining.epoch([name] * len(times), 1, times)
            joining.epoch(names[:1], 0, [end])
            took: dict[str, list[float]] = {"now": [], "new": [], "late": []}

            def step(kind: str, sides: Any, times: Sequence[int]) -> None:
                taken, _ = joining.epoch(names * (len(times) // keys), sides, times)
                took[kind].append(taken)

            for _ in range(epochs):
                step("now", 0, [end] * keys)
                step("new", 1, [end] * keys)
                step("late", 0, [FIRST_MS + SPACE_MS] * keys + [end] * keys)
                end += SPACE_MS
        finally:
            joining.close()
    return {kind: 1000 * median(some) for kind, some in took.items()}


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.versions", description=__doc__)
    parser.add_argument("--keys", type=int, default=10, help="of each epoch")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few versions: for CI")
    options = parser.parse_args()
    sizes = (10, 100) if options.quick else (10, 1_000, 100_000)
    table = Table(
        "versions of a key", "a row of each key as of now", "a new version of each", "a row of now, and the first",
        title=f"ms of processor time an epoch of {options.keys} keys, the median of {options.epochs}",
    )  # fmt: skip
    for versions in sizes:
        found = measured(options.keys, versions, options.epochs)
        table.add_row(f"{versions:,}", *(f"{found[kind]:,.1f}" for kind in ("now", "new", "late")))
    Console(width=None if Console().is_terminal else 120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
