"""The driver's half of epochs that touch keys of a store, without Spark: executors are another process, prepared.

Usage: driver.py OPTIONS, JSON: servers, broker, touched, partitions, keys, epochs, directory. Prints `Figures` as JSON.
What is measured is the pipeline's own: the RPC server, `ChainRunner`, the transaction's producer, stores.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import socket
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from benchmarks.pipeline import tree
from benchmarks.pipeline.programs import executors
from benchmarks.restore.changelog import rows
from kohort.client import Admin, Producer
from kohort.client.cluster import Cluster
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.spark.epoch import EpochInput, EpochOutput, EpochStatistics
from kohort.spark.executor_rpc.client import RpcAddress
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.send_order import in_order
from kohort.spark.monitoring.events import STREAM
from kohort.spark.runtime.chain import chains_of
from kohort.spark.runtime.chain_runner import ChainRunner
from kohort.spark.runtime.effects import Epoch
from kohort.spark.runtime.epoch_committer import EpochCommitter
from kohort.spark.runtime.epoch_planning import EpochPlan, SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan
from kohort.spark.state import StateDirectory, Store
from kohort.streams.tasks import TaskId

if TYPE_CHECKING:
    from kohort.client.streams_member import StreamsMember

STORE, CHANGELOG, SOURCE, GROUP = "counts", "driven-counts-changelog", "driven", "driven"
LOOKUPS, ROWS, CHANGELOGS, COMMIT, STORES = STEPS = ("prior values", "rows", "changelog", "commit", "stores")
"""What the driver does in an epoch: it answers executors, takes rows from them and sorts them by what becomes of them,
encodes and sends them to changelogs, commits, and writes them to stores."""
_WARM_UP = 2
_FILL = 100_000


@dataclass(frozen=True)
class Figures:
    """What was measured.

    Attributes:
        touched: keys, in all epochs.
        seconds, cpu: by step; the processor time is this process', all its threads.
        broker: processor time of the broker meanwhile (s).
        memory: the most that was resident, MiB.
    """

    touched: int
    seconds: dict[str, float]
    cpu: dict[str, float]
    broker: float
    memory: float


class Clock:
    """Adds up the time, and the processor time, of steps that follow each other."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.cpu: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        """What was until now isn't measured."""
        self._at, self._used = time.perf_counter(), time.process_time()

    def end(self, step: str) -> None:
        """A step has ended."""
        at, used = time.perf_counter(), time.process_time()
        self.seconds[step] += at - self._at
        self.cpu[step] += used - self._used
        self._at, self._used = at, used


class PreparedJobs:
    """Jobs whose executors have done their part before: they ask for prior values, and give rows."""

    def __init__(self, control: Connection, stream: socket.socket, clock: Clock) -> None:
        self._control, self._stream, self._clock = control, stream, clock

    def prepare(self, epoch: int) -> None:
        """Have them do their part."""
        self._ask(("prepare", epoch))

    def run(self, epoch_input: EpochInput) -> EpochOutput:
        """Answer them, and take their rows."""
        self._ask(("look up",))
        self._clock.end(LOOKUPS)
        self._control.send(("send",))
        with self._stream.makefile("rb") as file, pa.ipc.open_stream(file) as reader:
            given = reader.read_all()
        self._control.recv()
        return EpochOutput({0: in_order(given)}, EpochStatistics(given.num_rows))

    def run_table(self, table: str, epoch_input: EpochInput) -> EpochOutput:
        """There are no tables."""
        raise AssertionError("there are no tables")

    def cancel(self) -> None:
        """It ends soon anyway."""

    def _ask(self, question: tuple[Any, ...]) -> None:
        self._control.send(question)
        if (answer := self._control.recv()) is not None:
            raise RuntimeError(answer)


class _Member:
    """Nobody else is in the group."""

    def group_metadata(self) -> GroupMetadata:
        return GroupMetadata(GROUP, -1, "")


async def main(
    servers: str, broker: int, touched: int, partitions: int, keys: int, epochs: int, directory: str
) -> None:
    """Fill stores, run epochs, print what was measured.

    Args:
        broker: its process id.
    """
    async with Admin(servers) as admin:
        for topic in (SOURCE, CHANGELOG):
            await admin.topics.create(topic, partitions=partitions, replication_factor=1)
    tasks = [TaskId("0", number) for number in range(partitions)]
    with StateDirectory(Path(directory), "driven") as state:
        stores = {task: state.open_store(task, STORE) for task in tasks}
        _fill(list(stores.values()), keys)

        def lookup(name: str, partition: int | None, wanted: pa.BinaryArray) -> pa.BinaryArray:
            return stores[tasks[partition or 0]].get_many(wanted)

        with RpcServer(lookup) as server:
            address = RpcAddress(server.address, server.token)
            figures = await _epochs(servers, broker, touched, stores, keys, epochs, address)
        for store in stores.values():
            store.close()
    print(json.dumps(asdict(figures)))


def _fill(stores: list[Store], keys: int) -> None:
    """All keys were written twice, in no order: caches of rows are past their first round."""
    generator = np.random.default_rng(2013)
    order = np.concatenate([generator.permutation(keys) for _ in range(2)])
    for start in range(0, len(order), _FILL):
        some = order[start : start + _FILL]
        for partition, store in enumerate(stores):
            table = rows(some[some % len(stores) == partition])
            store.write(table["key"], table["value"], 0, read_again=True)


async def _epochs(
    servers: str, broker: int, touched: int, stores: dict[TaskId, Store], keys: int, epochs: int, address: RpcAddress
) -> Figures:
    clock, spawn = Clock(), multiprocessing.get_context("spawn")
    (control, other), (stream, far) = spawn.Pipe(), socket.socketpair()
    process = spawn.Process(
        target=executors.serve, args=(other, far, address, STORE, keys, touched, len(stores)), daemon=True
    )
    process.start()
    far.close()
    plan = SubtopologyPlan("0", SubtopologyInputs(SOURCE, {}), {0: StoreOutput(STORE, CHANGELOG)})
    (chain,) = chains_of({plan.id: plan})
    jobs = PreparedJobs(control, stream, clock)
    async with Cluster(servers) as cluster:

        def producer() -> Producer:
            return Producer(servers, transactional_id=GROUP, compression_type="lz4")

        runner = ChainRunner(
            chain,
            lambda _: jobs,
            EpochCommitter(producer, cluster, cast("StreamsMember", _Member())),
            lambda task: {STORE: stores[task]},
        )
        for number in range(_WARM_UP + epochs):
            await asyncio.to_thread(jobs.prepare, number)
            if number == _WARM_UP:
                clock.seconds.clear()
                clock.cpu.clear()
                before = tree.cpu_seconds([broker])
            clock.start()
            await _epoch(runner, _planned(number, tuple(stores)), clock)
        used = tree.cpu_seconds([broker]) - before
        await runner.close()
    control.send(None)
    process.join()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Figures(touched * epochs, dict(clock.seconds), dict(clock.cpu), used, memory)


def _planned(number: int, tasks: tuple[TaskId, ...]) -> Epoch:
    offsets = {TopicPartition(SOURCE, task.partition): OffsetAndMetadata(number + 1) for task in tasks}
    return Epoch(
        EpochPlan("0", STREAM, (), tasks),
        EpochInput(number, ()),
        None,
        {task.partition: None for task in tasks},
        offsets=offsets,
    )


async def _epoch(runner: ChainRunner, epoch: Epoch, clock: Clock) -> None:
    await runner.run_job(epoch)
    clock.end(ROWS)
    await runner.send(epoch)
    clock.end(CHANGELOGS)
    await runner.commit()
    clock.end(COMMIT)
    await runner.store()
    clock.end(STORES)


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(main(**json.loads(sys.argv[1])))
