"""Executors that have done their part of an epoch: they only ask the driver for prior values, and give it rows."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
import pyarrow as pa

from benchmarks.restore.changelog import rows
from kohort.spark.epoch import ROWS_SCHEMA
from kohort.spark.executor_rpc.client import RpcAddress
from kohort.spark.jobs.subtopology_jobs import SMALL_EPOCH

AT_ONCE = 16_384
"""Rows that the stage which merges asks for at once."""
BATCH = 10_000
"""Rows of a batch of Spark's results, by default."""


def serve(
    control: Connection, stream: socket.socket, address: RpcAddress, store: str, keys: int, touched: int, cores: int
) -> None:
    """Do what is asked for: prepare an epoch; look prior values up, with a connection for each core; send rows.

    Each core has keys of all partitions, as those have that merge rows at once. There are as many as partitions; of a
    small epoch one core does all.
    """
    table = ROWS_SCHEMA.empty_table()
    with ThreadPoolExecutor(cores) as pool:
        while (question := control.recv()) is not None:
            answer = None
            match question:
                case ("prepare", epoch):
                    table = _touched(np.random.default_rng(epoch).choice(keys, touched, replace=False), cores)
                case ("look up",):
                    missing = sum(
                        pool.map(
                            lambda part: _look_up(address, store, part),
                            _parts(table, cores if touched > SMALL_EPOCH else 1),
                        )
                    )
                    answer = f"{missing} keys have no value" if missing else None
                case ("send",):
                    with stream.makefile("wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
                        writer.write_table(table, max_chunksize=BATCH)
            control.send(answer)


def _touched(numbers: np.ndarray, partitions: int) -> pa.Table:
    made = rows(numbers)
    columns = {
        "key": made["key"],
        "value": made["value"],
        "partition": pa.array(numbers % partitions, pa.int32()),
        "route": pa.nulls(len(numbers), pa.binary()),
        "timestamp": pa.nulls(len(numbers), pa.int64()),
    }
    return pa.table(columns, schema=ROWS_SCHEMA).combine_chunks()


def _parts(table: pa.Table, cores: int) -> list[pa.RecordBatch]:
    """No more rows at once than a core has."""
    return table.to_batches(max_chunksize=min(AT_ONCE, -(-table.num_rows // cores)))


def _look_up(address: RpcAddress, store: str, batch: pa.RecordBatch) -> int:
    return address.lookup(store, batch["partition"], batch["key"]).null_count
