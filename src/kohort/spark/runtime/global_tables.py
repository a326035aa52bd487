"""Keeps global tables: all partitions of their topics, in a store of this instance alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

import pyarrow.compute as pc

from kohort.client.errors import ClientError
from kohort.client.types import TopicInfo, TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.epoch import EpochInput, EpochStatistics, OffsetRange
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring
from kohort.spark.runtime.application_plan import GlobalTable
from kohort.spark.runtime.chain_runner import Jobs
from kohort.spark.runtime.epoch_limit import share
from kohort.spark.runtime.epoch_planning import lag
from kohort.spark.runtime.epoch_writes import first_dead
from kohort.spark.runtime.errors import unreadable
from kohort.spark.runtime.job_thread import JobThread
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.plain_errors import plain
from kohort.spark.state import Store
from kohort.spark.state.restore_progress import why_rebuild

log = logging.getLogger(__name__)

GLOBALS: Final = "globals"
"""Stands for a subtopology's id where global tables are meant: they belong to none."""

_RECORDS: Final = 100_000  # at a time
_FORMAT: Final = " "  # between a topic's id and a format, where the store has both
_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.5


class Topics(Protocol):
    """The topics there are, as `Cluster` knows them."""

    async def topic(self, name: str) -> TopicInfo:
        """A topic's metadata."""


class Ends(Protocol):
    """Where topics begin and end, as `EndOffsets` says."""

    async def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of partitions."""

    async def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Their beginnings."""

    async def pause(self) -> None:
        """Wait before they are asked for again."""


class GlobalTables:
    """Loads global tables to their end, then follows them.

    There is no transaction: the topic is the table's changelog, and the store knows how far it has it.
    What can't be read stops the application, or is left out and counted: dead letters there are none, since every
    instance would write its own.

    Args:
        make_jobs: makes the Spark jobs that read them, in their own thread.
        listener: told how far loading is, and of each load as of an epoch.
    """

    def __init__(
        self,
        tables: tuple[GlobalTable, ...],
        make_jobs: Callable[[], Jobs],
        stores: OpenStores,
        cluster: Topics,
        ends: Ends,
        listener: Listener,
        waiting: Callable[[str | None], None],
    ) -> None:
        self._tables, self._make_jobs, self._stores = tables, make_jobs, stores
        self._cluster, self._ends, self._listener, self._waiting = cluster, ends, listener, waiting
        self._thread = JobThread("kohort-globals")
        self._jobs: Jobs | None = None
        self._loaded = asyncio.Event()
        self._number = 0
        self._left: dict[str, int] = {}  # records, by table
        self._beginnings: dict[str, Mapping[TopicPartition, int]] = {}
        self._kept: dict[str, Store] = {}

    async def loaded(self) -> None:
        """Wait until all tables were loaded to their end, once or since one had to be cleared."""
        await self._loaded.wait()

    @property
    def ready(self) -> bool:
        """Whether they were."""
        return self._loaded.is_set()

    async def close(self) -> None:
        """End the thread; `run` must have ended."""
        await self._thread.stopped(lambda: self._jobs.cancel() if self._jobs is not None else None)
        await self._thread.closed()

    async def run(self) -> None:
        """Keep the tables.

        Raises:
            ApplicationError: a record can't be read, or reading always fails.
        """
        failures = 0
        await self._open()
        while True:
            try:
                read = await self.catch_up()
                failures = 0
                self._waiting(None)
                self._loaded.set()
                if not read:
                    await self._ends.pause()
            except ApplicationError:
                raise
            except (KafkaError, ClientError) as error:
                self._beginnings.clear()
                self._waiting(f"global tables can't be read: {error}")
                await asyncio.sleep(_PAUSE_S)
            except Exception as error:
                failures += 1
                self._beginnings.clear()  # perhaps records were gone before they were read
                log.warning("reading a global table failed", exc_info=error)
                self._listener.failed(f"global tables: {plain(error)}")
                if failures >= _ATTEMPTS:
                    raise ApplicationError(f"global tables can't be read: {plain(error)}") from error
                await asyncio.sleep(_PAUSE_S)

    async def catch_up(self) -> bool:
        """Read all tables up to where they end now; whether there was anything.

        Raises:
            ApplicationError: a record can't be read.
            whatever else goes wrong: it may be tried again.
        """
        await self._open()
        read = False
        for table in self._tables:
            read |= await self._follow(table, self._kept[table.name])
        return read

    async def _open(self) -> None:
        for table in self._tables:
            if table.name not in self._kept:
                self._kept[table.name] = await self._stores.open_global(table.name)

    async def _follow(self, table: GlobalTable, store: Store) -> bool:
        """Read a table up to where it ends now; whether there was anything."""
        info = await self._cluster.topic(table.topic)
        ends = await self._ends.of([TopicPartition(table.topic, number) for number in info.partitions])
        if table.name not in self._beginnings:
            self._beginnings[table.name] = await self._ends.beginnings(ends)
        await self._compare(table, store, info, ends)
        read = False
        while True:
            places = self._places(table, store, ends)
            shares = share(_RECORDS, {each: ends[each] - at for each, at in places.items()})
            if not shares:
                if read and not self._loaded.is_set():
                    self._tell(table, ends, places)
                return read
            read = True
            ranges = tuple(
                OffsetRange(each.topic, each.partition, places[each], places[each] + count)
                for each, count in shares.items()
            )
            self._number += 1
            await self._epoch(table, store, EpochInput(self._number, ranges), ends)
            if not self._loaded.is_set():
                self._tell(table, ends, places)

    def _places(
        self, table: GlobalTable, store: Store, ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Where to read on."""
        beginnings = self._beginnings[table.name]
        return {each: store.positions.get(each.partition, beginnings.get(each, 0)) for each in ends}

    async def _compare(
        self, table: GlobalTable, store: Store, topic: TopicInfo, ends: Mapping[TopicPartition, int]
    ) -> None:
        """Clear the store if it can't be read on from where it is.

        Its topic was created again, or lost records, or the program reads other columns of it.
        """
        known_id, _, known_format = store.topic_id.partition(_FORMAT)
        topic_id = str(topic.topic_id) if topic.topic_id.int else known_id
        here = f"{topic_id}{_FORMAT}{table.format}" if table.format else topic_id
        beginnings = self._beginnings[table.name]
        for each, end in ends.items():
            at = store.positions.get(each.partition)
            why = why_rebuild(at, known_id, topic_id, beginnings.get(each, 0), end)
            if why is None and at is not None and known_format != table.format:
                why = "the program reads other columns of it"
            if why:
                log.warning("global table %s is cleared, and loaded again from %s: %s", table.name, each, why)
                self._loaded.clear()  # nothing is joined with what is half there
                await self._thread.run(store.clear, here)
                return
        if store.topic_id != here:
            await self._thread.run(store.set_topic_id, here)

    async def _epoch(
        self, table: GlobalTable, store: Store, epoch_input: EpochInput, ends: Mapping[TopicPartition, int]
    ) -> None:
        """Read some more of a table, and report it as an epoch, so that what is dropped is counted."""
        started = time.monotonic()
        statistics, job_ms = await self._thread.run(self._load, table, store, epoch_input)
        self._left[table.name] = lag(self._places(table, store, ends), ends)
        self._listener.epoch(
            EpochDone(
                at=time.time(), subtopology=GLOBALS, number=epoch_input.epoch, input=table.name,
                records=statistics.records, bytes=statistics.bytes, out_records=0,
                dropped=statistics.dropped, reasons=statistics.reasons, late=0, lag=sum(self._left.values()),
                tasks=(), took_ms=(time.monotonic() - started) * 1000, job_ms=job_ms, commit_ms=0.0,
                positions={f"{each.topic}-{each.partition}": each.end for each in epoch_input.ranges},
                reads=tuple(statistics.reads),
            )
        )  # fmt: skip

    def _load(self, table: GlobalTable, store: Store, epoch_input: EpochInput) -> tuple[EpochStatistics, float]:
        """Read some more of a table into its store; what was read, and the milliseconds of the job."""
        if self._jobs is None:
            self._jobs = self._make_jobs()
        started = time.monotonic()
        output = self._jobs.run_table(table.name, epoch_input)
        job_ms = (time.monotonic() - started) * 1000
        if table.unreadable.stop and (record := first_dead(output.statistics.dead)) is not None:
            raise unreadable(record, of_group=False)
        (rows,) = output.rows.values()
        for each in epoch_input.ranges:
            mine = rows.filter(pc.equal(rows["partition"], each.partition))
            store.write(mine["key"].combine_chunks(), mine["value"].combine_chunks(), each.end, each.partition)
        return output.statistics, job_ms

    def _tell(
        self, table: GlobalTable, ends: Mapping[TopicPartition, int], places: Mapping[TopicPartition, int]
    ) -> None:
        position, end = sum(places.values()), sum(ends.values())
        self._listener.restoring(
            Restoring(
                at=time.time(), task="global", store=table.name, position=position, end=end,
                remaining=end - position, done=end <= position,
            )
        )  # fmt: skip
