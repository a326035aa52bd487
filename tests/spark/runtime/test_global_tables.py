"""Global tables: loaded whole, followed, kept over a restart."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from kohort.client.admin import Admin
from kohort.client.cluster import Cluster
from kohort.client.config import client_config
from kohort.client.producer import Producer
from kohort.client.streams_member import Subtopology, Topology
from kohort.client.types import TopicPartition
from kohort.spark.epoch import DEAD_SCHEMA, ROWS_SCHEMA, EpochInput, EpochOutput, EpochStatistics
from kohort.spark.errors import ApplicationError
from kohort.spark.jobs.drop_reasons import UNREADABLE
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring
from kohort.spark.reading.reader import RangeReader
from kohort.spark.runtime.application_plan import ApplicationPlan, GlobalTable
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.global_tables import GlobalTables
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.subtopology_plan import Unreadable
from kohort.spark.state import StateDirectory
from kohort.testing.broker import Broker


class _Heard(Listener):
    def __init__(self) -> None:
        self.restores: list[Restoring] = []
        self.failures: list[str] = []
        self.epochs: list[EpochDone] = []

    def epoch(self, done: EpochDone) -> None:
        self.epochs.append(done)

    def restoring(self, progress: Restoring) -> None:
        self.restores.append(progress)

    def failed(self, text: str) -> None:
        self.failures.append(text)


class _Jobs:
    """Takes records as they are; those that are "?" can't be read."""

    def __init__(self, servers: str) -> None:
        self._reader = RangeReader(client_config(servers))
        self.read = 0

    def run(self, work: EpochInput) -> EpochOutput:
        raise AssertionError("there is no stream")

    def run_table(self, table: str, work: EpochInput) -> EpochOutput:
        rows, dead = [], []
        for each in work.ranges:
            for batch in self._reader.read(each.topic, each.partition, each.start, each.end):
                for row in batch.select(["offset", "key", "value"]).to_pylist():
                    self.read += 1
                    if row["value"] == b"?":
                        dead.append({**row, "topic": each.topic, "partition": each.partition, "error": "no JSON"})
                    else:
                        rows.append({"key": row["key"], "value": row["value"], "partition": each.partition})
        table_rows = pa.Table.from_pylist(rows, schema=ROWS_SCHEMA)
        read = EpochStatistics(
            len(rows) + len(dead), reasons={UNREADABLE: len(dead)}, dead=pa.Table.from_pylist(dead, schema=DEAD_SCHEMA)
        )
        return EpochOutput({0: table_rows}, read)

    def cancel(self) -> None:
        """It is quick."""

    def close(self) -> None:
        self._reader.close()


class _Table:
    """The topic of a global table, and what an instance makes of it, time after time."""

    def __init__(self, broker: Broker, path: Path, *, stop: bool = True) -> None:
        self.servers, self.topic = broker.bootstrap_servers, f"airlines-{uuid.uuid4().hex[:8]}"
        self.path, self.stop, self.format = path, stop, ""

    @asynccontextmanager
    async def made(self, jobs: _Jobs, heard: _Heard | None = None) -> AsyncIterator[GlobalTables]:
        """Its tables, which nobody runs yet; `get` reads them."""
        plan = ApplicationPlan("app", Topology({"0": Subtopology(source_topics=["s"])}), "p", {})
        async with Cluster(self.servers) as cluster:
            with StateDirectory(self.path, "app") as directory:
                self.stores, ends = OpenStores(plan, directory), EndOffsets(cluster, pause_ms=10)
                tables = GlobalTables(
                    (GlobalTable("airlines", self.topic, Unreadable(stop=self.stop), self.format),), lambda: jobs,
                    self.stores, cluster, ends, heard or _Heard(), lambda reason: None,
                )  # fmt: skip
                try:
                    yield tables
                finally:
                    await tables.close()
                    await ends.close()
                    jobs.close()

    @asynccontextmanager
    async def running(self, jobs: _Jobs, heard: _Heard | None = None) -> AsyncIterator[GlobalTables]:
        """The same, while they are kept."""
        async with self.made(jobs, heard) as tables:
            running = asyncio.create_task(tables.run())
            try:
                async with asyncio.timeout(20):
                    yield tables
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self.stores.lookup("airlines", None, pa.array([key], pa.binary())).to_pylist()[0]
        return value


def test_global_tables(kohort_broker: Broker, tmp_path: Path) -> None:
    async def scenario() -> None:
        table = _Table(kohort_broker, tmp_path, stop=False)
        topic, get = table.topic, table.get
        async with Admin(table.servers) as admin, Producer(table.servers) as producer:
            await admin.topics.create(topic, partitions=2)
            for number in range(100):
                await producer.send(topic, b"v%d" % number, key=b"k%d" % number, partition=number % 2)
            await producer.send(topic, b"?", key=b"k1", partition=1)
            await producer.flush()
            read = []
            for time in range(2):
                heard, jobs = _Heard(), _Jobs(table.servers)
                async with table.running(jobs, heard) as tables:
                    await tables.loaded()
                    assert get(b"k7") == b"v7" and get(b"k1") == b"v1"
                    await producer.send(topic, None, key=b"k8", partition=0)
                    await producer.send(topic, b"new%d" % time, key=b"k9", partition=1)
                    await producer.flush()
                    while get(b"k8") is not None or get(b"k9") != b"new%d" % time:
                        await asyncio.sleep(0.01)
                    # It tells when it is stored; and the second time, k8 was deleted before.
                    while jobs.read < (2 if time else 103) or sum(each.records for each in heard.epochs) < jobs.read:
                        await asyncio.sleep(0.01)
                assert not heard.failures and {each.subtopology for each in heard.epochs} == {"globals"}
                dropped = sum(each.dropped for each in heard.epochs)
                read.append((jobs.read, dropped, heard.epochs[-1].lag, [each.done for each in heard.restores][-1:]))
            assert read == [(103, 1, 0, [True]), (2, 0, 0, [])]

    asyncio.run(scenario())


def test_a_table_is_loaded_again_for_other_columns(kohort_broker: Broker, tmp_path: Path) -> None:
    """What is in its store was made of those columns that a program before has read."""

    async def scenario() -> None:
        table = _Table(kohort_broker, tmp_path)
        async with Admin(table.servers) as admin, Producer(table.servers) as producer:
            await admin.topics.create(table.topic, partitions=1)
            await producer.send(table.topic, b"v", key=b"k")
        read = []
        for each in ("", "one", "one", "two"):
            table.format = each
            jobs = _Jobs(table.servers)
            async with table.running(jobs) as tables:
                await tables.loaded()
                assert table.get(b"k") == b"v"
            read.append(jobs.read)
        assert read == [1, 1, 0, 1]

    asyncio.run(scenario())


def test_a_record_that_cant_be_read_stops_the_application(kohort_broker: Broker, tmp_path: Path) -> None:
    async def scenario() -> None:
        table = _Table(kohort_broker, tmp_path)
        async with Admin(table.servers) as admin, Producer(table.servers) as producer:
            await admin.topics.create(table.topic, partitions=1)
            for value in (b"v", b"?"):
                await producer.send(table.topic, value, key=b"k")
        async with table.made(_Jobs(table.servers)) as tables:
            said = rf"can't be taken: {table.topic}-0, offset 1: no JSON\..* say on_error="
            with pytest.raises(ApplicationError, match=said):
                await asyncio.wait_for(tables.run(), 20)
            assert not tables.ready

    asyncio.run(scenario())


def test_a_topic_that_was_made_anew_or_has_lost_records(kohort_broker: Broker, tmp_path: Path) -> None:
    async def scenario() -> None:
        table = _Table(kohort_broker, tmp_path)
        servers, topic = table.servers, table.topic

        async def loaded(expected: dict[bytes, bytes | None]) -> None:
            async with table.running(_Jobs(servers)) as tables:
                assert not tables.ready
                await tables.loaded()
                assert tables.ready
                assert {key: table.get(key) for key in expected} == expected

        async with Admin(servers) as admin:
            await admin.topics.create(topic, partitions=1)
            async with Producer(servers) as producer:
                for number in range(5):
                    await producer.send(topic, b"old", key=b"k%d" % number)
            await loaded({b"k0": b"old", b"k4": b"old"})
            await admin.topics.delete(topic)
            await admin.topics.create(topic, partitions=1)
            async with Producer(servers) as producer:
                await producer.send(topic, b"new", key=b"k0")
            await loaded({b"k0": b"new", b"k4": None})
            async with Producer(servers) as producer:
                for number in range(1, 4):
                    await producer.send(topic, b"newer", key=b"k%d" % number)
            await admin.topics.delete_records({TopicPartition(topic, 0): 2})
            await loaded({b"k0": None, b"k1": None, b"k2": b"newer", b"k3": b"newer"})

    asyncio.run(scenario())


def test_what_is_loaded_anew_isnt_ready_meanwhile(
    kohort_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[str] = []
    monkeypatch.setattr(
        "kohort.spark.runtime.global_tables.why_rebuild", lambda *_, **__: again.pop() if again else None
    )

    async def scenario() -> None:
        table = _Table(kohort_broker, tmp_path)
        was_ready = []

        class Watched(_Jobs):
            def run_table(self, table: str, work: EpochInput) -> EpochOutput:
                was_ready.append(tables.ready)
                return super().run_table(table, work)

        async with Admin(table.servers) as admin, Producer(table.servers) as producer:
            await admin.topics.create(table.topic, partitions=1)
            await producer.send(table.topic, b"v", key=b"k")
        async with table.running(Watched(table.servers)) as tables:
            await tables.loaded()
            again.append("its topic was made anew")
            while len(was_ready) < 2:
                await asyncio.sleep(0.01)
            await tables.loaded()
            assert table.get(b"k") == b"v"
        assert was_ready == [False, False]

    asyncio.run(scenario())
