from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kohort.client import Admin, Producer, TopicPartition
from kohort.client.errors import ClosedError
from kohort.spark.state import ChangelogReader, RestoreProgress, StateError, Store, StoreClosedError
from kohort.spark.state.rocksdb_rows import SortedRows
from kohort.testing.broker import Broker
from kohort.testing.process import BrokerProcess
from tests.waiting import run, until

_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}) as broker:
        yield broker


class Log:
    """A changelog, and a producer for it."""

    def __init__(self, servers: str, path: Path, *, partitions: int = 1) -> None:
        self.servers = servers
        self.path = path
        self.name = f"log-{next(_numbers)}"
        self.at = TopicPartition(self.name, 0)
        self.partitions = partitions
        self.waits: list[str | None] = []

    async def create(self, admin: Admin) -> None:
        await admin.topics.create(
            self.name, partitions=self.partitions, replication_factor=1, configs={"cleanup.policy": "compact"}
        )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Admin, ChangelogReader]]:
        async with Admin(self.servers) as admin, ChangelogReader(self.servers, self.waits.append) as reader:
            await self.create(admin)
            yield admin, reader

    async def put(self, records: Mapping[str, str | None], partition: int = 0) -> None:
        async with Producer(self.servers) as producer:
            await self._send(producer, records, partition)
            await producer.flush()

    async def transaction(
        self, producer: Producer, records: Mapping[str, str | None], *, commit: bool = True, partition: int = 0
    ) -> None:
        await producer.begin_transaction()
        await self._send(producer, records, partition)
        if commit:
            await producer.commit_transaction()
        else:
            await producer.flush()
            await producer.abort_transaction()

    async def _send(self, producer: Producer, records: Mapping[str, str | None], partition: int) -> None:
        table = pa.table(
            {
                "key": pa.array([key.encode() for key in records], pa.binary()),
                "value": pa.array([None if v is None else v.encode() for v in records.values()], pa.binary()),
            }
        )
        await producer.send_table(self.name, table, partition=partition)

    def store(self, partition: int = 0) -> Store:
        return Store(self.path / f"{self.name}-{partition}", "s", partition)


@pytest.fixture
def log(broker: Broker, tmp_path: Path) -> Log:
    return Log(broker.bootstrap_servers, tmp_path)


def content(store: Store) -> dict[str, str]:
    rows = store.scan()
    return {
        key.decode(): value.decode()
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
    }


def test_a_store_is_restored_with_what_was_committed(log: Log) -> None:
    progress: list[RestoreProgress] = []

    async def test() -> None:
        async with log.opened() as (_, reader), Producer(log.servers, transactional_id=log.name) as producer:
            await log.transaction(producer, {"a": "1", "b": "2", "c": "3"})
            await log.transaction(producer, {"a": "aborted", "d": "aborted"}, commit=False)
            await log.transaction(producer, {"b": None, "c": "4"})
            store = log.store()
            assert await reader.restore(store, log.at, progress.append) == 10  # with three markers
            assert content(store) == {"a": "1", "c": "4"}
            assert store.position in (9, 10) and store.topic_id
            assert reader.positions() == {}
            await log.transaction(producer, {"e": "not followed any more"})
            await asyncio.sleep(0.2)
            assert content(store) == {"a": "1", "c": "4"}
            store.close()
            store = log.store()  # after a restart
            assert await reader.restore(store, log.at) == 12
            assert "e" in content(store)
            store.close()

    run(test(), timeout_s=60)
    assert progress[-1].finished and progress[-1].done == progress[-1].total == 10
    assert [each for each in log.waits if each] == []


def test_an_empty_changelog_is_restored_at_once(log: Log) -> None:
    async def test() -> None:
        async with log.opened() as (_, reader):
            store = log.store()
            assert await reader.restore(store, log.at) == 0
            assert store.position is None and store.topic_id
            store.close()

    run(test(), timeout_s=60)


def test_a_standby_follows_its_changelog_and_is_promoted(log: Log) -> None:
    async def test() -> None:
        async with log.opened() as (_, reader), Producer(log.servers, transactional_id=log.name) as producer:
            store = log.store()
            reader.follow(store, log.at)
            for number in range(3):
                await log.transaction(producer, {"a": str(number), str(number): "x"})
            await until(lambda: reader.positions().get(log.at) == (9, 9))
            assert content(store) == {"a": "2", "0": "x", "1": "x", "2": "x"}
            began = time.monotonic()
            assert await reader.restore(store, log.at) == 9
            assert time.monotonic() - began < 10
            store.write(pa.array([b"a"]), pa.array([b"written by the task"]), 9)
            reader.follow(store, log.at)  # demoted
            await log.transaction(producer, {"b": "1"})
            await until(lambda: content(store).get("b") == "1")
            await reader.unfollow(log.at)
            await reader.unfollow(log.at)
            store.close()

    run(test(), timeout_s=60)


def test_a_restore_waits_for_records_behind_an_open_transaction(log: Log) -> None:
    async def test() -> None:
        async with log.opened() as (_, reader):
            zombie = Producer(log.servers, transactional_id=f"{log.name}-zombie")
            await zombie.start()
            await zombie.begin_transaction()
            await log._send(zombie, {"a": "zombie"}, 0)
            await zombie.flush()
            await log.put({"b": "committed behind it"})
            store = log.store()
            restoring = asyncio.create_task(reader.restore(store, log.at))
            await asyncio.sleep(0.5)
            assert not restoring.done()
            async with Producer(log.servers, transactional_id=f"{log.name}-zombie"):  # fences it
                assert await restoring == 3
            assert content(store) == {"b": "committed behind it"}
            store.close()
            await zombie.close()

    run(test(), timeout_s=60)


def test_many_stores_with_thousands_of_keys(log: Log) -> None:
    log.partitions = 8

    async def test() -> None:
        async with log.opened() as (_, reader):
            expected = {}
            for partition in range(8):
                records = {f"{number}": f"{partition} {number}" for number in range(3_000)}
                await log.put(records, partition)
                await log.put(expected := dict.fromkeys(list(records)[:10], "again"), partition)
            stores = [log.store(partition) for partition in range(8)]
            places = [TopicPartition(log.name, partition) for partition in range(8)]
            for store, at in zip(stores[:4], places[:4], strict=True):
                reader.follow(store, at)
            restored = await asyncio.gather(*(reader.restore(stores[n], places[n]) for n in range(4, 8)))
            assert restored == [3_010] * 4
            await until(lambda: reader.positions() == dict.fromkeys(places[:4], (3_010, 3_010)))
            for number, store in enumerate(stores):
                assert content(store) == {f"{each}": f"{number} {each}" for each in range(3_000)} | expected
                store.close()

    run(test(), timeout_s=90)


def test_a_store_that_does_not_fit_its_changelog_is_rebuilt(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with log.opened() as (_, reader):
            await log.put({"a": "1", "b": "2", "c": "3"})
            store = log.store()
            store.write(pa.array([b"x"]), pa.array([b"from elsewhere"]), 1_000)
            assert await reader.restore(store, log.at) == 3
            assert content(store) == {"a": "1", "b": "2", "c": "3"}
            assert "the store is at offset 1000, and the changelog ends at 3" in caplog.text

            store.clear("another topic")
            store.write(pa.array([b"x"]), pa.array([b"another topic's"]), 2)
            assert await reader.restore(store, log.at) == 3
            assert content(store) == {"a": "1", "b": "2", "c": "3"}
            assert "the topic was deleted and created again" in caplog.text
            store.close()

    run(test(), timeout_s=60)


def test_a_store_behind_the_beginning_of_its_changelog_is_rebuilt(log: Log) -> None:
    async def test() -> None:
        async with Admin(log.servers) as admin, ChangelogReader(log.servers) as reader:
            await admin.topics.create(log.name, partitions=1, replication_factor=1)
            await log.put({"a": "1", "b": "2"})
            store = log.store()
            await reader.restore(store, log.at)
            await log.put({"c": "3", "d": "4"})
            await admin.topics.delete_records({log.at: 3})
            assert await reader.restore(store, log.at) == 4
            assert content(store) == {"d": "4"}
            await admin.topics.delete_records({log.at: 4})
            store.clear()
            assert await reader.restore(store, log.at) == 4
            assert content(store) == {}
            store.close()

    run(test(), timeout_s=60)


def test_a_changelog_is_deleted_and_created_again_while_it_is_followed(log: Log) -> None:
    async def test() -> None:
        async with log.opened() as (admin, reader):
            other = Log(log.servers, log.path)
            await other.create(admin)
            await log.put({"a": "1", "b": "2"})
            store, others = log.store(), other.store()
            reader.follow(store, log.at)
            reader.follow(others, other.at)
            await until(lambda: len(content(store)) == 2)
            await admin.topics.delete(log.name)
            await asyncio.sleep(0.3)
            await other.put({"k": "goes on"})
            await until(lambda: content(others) == {"k": "goes on"})
            await log.create(admin)
            await log.put({"n": "1", "o": "2", "p": "3"})
            await until(lambda: content(store) == {"n": "1", "o": "2", "p": "3"}, timeout_s=30)
            assert await reader.restore(store, log.at) == 3
            store.close()
            others.close()

    run(test(), timeout_s=90)


def test_a_restore_ends_with_an_error_when_its_store_or_the_reader_is_closed(log: Log) -> None:
    async def interrupted(reader: ChangelogReader, store: Store, end: Callable[[], Awaitable[object]]) -> None:
        restoring = asyncio.create_task(reader.restore(store, log.at))
        await asyncio.sleep(0.3)
        await end()
        await restoring

    async def test() -> None:
        async with log.opened() as (_, reader), Producer(log.servers, transactional_id=log.name) as producer:
            await producer.begin_transaction()
            await log._send(producer, {"a": "open"}, 0)
            await producer.flush()
            store = log.store()
            with pytest.raises(StoreClosedError, match="isn't restored any more"):
                await interrupted(reader, store, lambda: reader.unfollow(log.at))
            restoring = asyncio.create_task(reader.restore(store, log.at))
            await asyncio.sleep(0.2)
            with pytest.raises(ValueError, match="is being restored already"):
                await reader.restore(store, log.at)
            another = log.store(1)
            with pytest.raises(ValueError, match="another store follows"):
                reader.follow(another, log.at)
            another.close()
            restoring.cancel()
            with pytest.raises(asyncio.CancelledError):
                await restoring
            assert reader.positions() == {}
            reader.follow(store, log.at)
            await asyncio.sleep(0.2)
            store.close()
            await producer.commit_transaction()
            await until(lambda: not reader._changelogs)
            with pytest.raises(StoreClosedError):
                await reader.restore(store, log.at)
            store = log.store()
            assert await reader.restore(store, log.at) == 2
            assert reader.positions() == {}
            await producer.begin_transaction()
            await log._send(producer, {"a": "open"}, 0)
            await producer.flush()
            with pytest.raises(ClosedError):
                await interrupted(reader, store, reader.close)
            with pytest.raises(ClosedError):
                reader.follow(store, log.at)
            store.close()

    run(test(), timeout_s=60)


def test_a_broker_restarts_during_a_restore(tmp_path: Path) -> None:
    with BrokerProcess() as broker:
        log = Log(broker.bootstrap_servers, tmp_path)

        async def test() -> None:
            async with log.opened() as (_, reader):
                store = log.store()
                reader.follow(store, log.at)
                await log.put({"a": "1"})
                await until(lambda: content(store) == {"a": "1"})
                await asyncio.to_thread(broker.kill)
                promoting = asyncio.create_task(reader.restore(store, log.at))
                await asyncio.sleep(0.5)
                assert not promoting.done()
                await asyncio.to_thread(broker.start)
                assert await promoting == 1
                reader.follow(store, log.at)
                await log.put({"b": "2"})
                await until(lambda: content(store) == {"a": "1", "b": "2"}, timeout_s=20)
                store.close()

        run(test(), timeout_s=90)


def test_a_compacted_changelog_is_restored_to_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with Broker() as broker:
            log = Log(broker.bootstrap_servers, tmp_path)
            server = broker.server
            async with ChangelogReader(log.servers) as reader, Producer(log.servers, transactional_id="t") as producer:
                configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
                [partition] = server.broker.topics.create(log.name, 1, configs).partitions
                partition.log.config = replace(partition.log.config, segment_bytes=2_000)
                early = log.store()
                for number in range(40):
                    await log.transaction(producer, {f"{each}": f"{number}" for each in range(number % 7, 20)})
                    await log.transaction(producer, {"gone": None, "x" * 100: "aborted"}, commit=number % 2 == 0)
                    if number == 20:
                        assert await reader.restore(early, log.at) > 300
                assert sum(path.stat().st_size for path in partition.log.directory.glob("*.log")) > 20_000
                await server.broker.periodic_tasks.clean_logs()
                assert sum(path.stat().st_size for path in partition.log.directory.glob("*.log")) < 15_000
                late = Store(tmp_path / "late", "s", 0)
                expected = {f"{each}": f"{min(39, 35 + each)}" for each in range(20)}
                expected["x" * 100] = "aborted"  # as some were committed
                for store in (early, late):
                    assert await reader.restore(store, log.at) == partition.log.log_end_offset
                    assert content(store) == expected
                    store.close()

    run(test(), timeout_s=90)


def test_what_waits_for_the_write_of_another_store_does_not_count(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    write, may_write = Store.write, threading.Event()

    def held_up(store: Store, *args: Any) -> None:
        if store.name == "other":
            assert may_write.wait(30)
        write(store, *args)

    monkeypatch.setattr(Store, "write", held_up)

    async def test() -> None:
        other = Log(log.servers, log.path)
        async with log.opened() as (admin, reader):
            await other.create(admin)
            store, others = log.store(), Store(log.path / "other", "other", 0)
            reader.follow(store, log.at)
            reader.follow(others, other.at)
            await until(lambda: len(reader.positions()) == 2)
            with monkeypatch.context() as patched:
                # A poll without records would wait for the write.
                patched.setattr("kohort.spark.state.changelog_reader._POLL_MS", 60_000)
                await other.put({"b": "1"})
                await until(lambda: reader._pending_write is not None)
                await log.put({"a": "1"})
                await until(lambda: reader._consumer.position(log.at) == 1)
            positions, written = reader.positions(), store.position
            may_write.set()
            assert positions[log.at][0] == 0 and written is None
            await until(lambda: reader.positions() == {log.at: (1, 1), other.at: (1, 1)})
            assert content(store) == {"a": "1"} and content(others) == {"b": "1"}
            for each in (log, other):
                await reader.unfollow(each.at)
            store.close()
            others.close()

    run(test(), timeout_s=60)


# Far behind.


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores gather records, and files are written, where there are a few."""
    monkeypatch.setattr("kohort.spark.state.changelog_reader.FAR_BEHIND", 50)
    monkeypatch.setattr("kohort.spark.state.changelog_reader.FULL", 3_000)
    monkeypatch.setattr("kohort.spark.state.changelog_reader._FETCH_BYTES", 2_000)
    monkeypatch.setattr("kohort.spark.state.restore_buffer._WORTH_A_FILE", 1)


@pytest.mark.usefixtures("gathering")
def test_a_store_that_is_far_behind_is_restored_by_files(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    ingested: list[int] = []
    ingest = Store.ingest

    def counted(store: Store, rows: SortedRows, position: int, partition: int | None = None) -> None:
        ingest(store, rows, position, partition)
        ingested.append(position)

    monkeypatch.setattr(Store, "ingest", counted)
    expected: dict[str, str] = {}
    progress: list[RestoreProgress] = []

    async def test() -> None:
        async with log.opened() as (_, reader), Producer(log.servers, transactional_id=log.name) as producer:
            for number in range(20):
                records = {f"{key}": f"{number}" if key % 7 else None for key in range(number, number + 40)}
                await log.transaction(producer, records)
                expected.update({key: value for key, value in records.items() if value is not None})
                await log.transaction(producer, {"0": "aborted"}, commit=False)
            store = log.store()
            assert await reader.restore(store, log.at, progress.append) == 20 * 43
            assert content(store) == expected
            store.close()
            store = log.store()
            assert store.position is not None and 19 * 43 < store.position <= 20 * 43
            assert content(store) == expected
            store.close()

    run(test(), timeout_s=60)
    assert len(ingested) > 1 and ingested == sorted(ingested)
    done = [each.done for each in progress]
    assert done == sorted(done) and done[-1] == 20 * 43


@pytest.mark.usefixtures("gathering")
def test_what_is_gathered_is_written_before_an_open_transaction(log: Log) -> None:
    async def test() -> None:
        async with log.opened() as (_, reader), Producer(log.servers, transactional_id=log.name) as producer:
            await log.put({str(key): "1" for key in range(20)})
            await producer.begin_transaction()
            await log._send(producer, {str(key): "2" for key in range(200)}, 0)
            await producer.flush()
            store = log.store()
            reader.follow(store, log.at)
            await until(lambda: store.position == 20)
            assert content(store) == {str(key): "1" for key in range(20)}
            await producer.commit_transaction()
            assert await reader.restore(store, log.at) == 221
            assert len(content(store)) == 200
            store.close()

    run(test(), timeout_s=60)


@pytest.mark.usefixtures("gathering")
def test_what_is_gathered_is_written_when_it_has_caught_up_though_more_comes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.spark.state.changelog_reader.FULL", 1 << 30)
    for poll in ("_POLL_MS", "_RESTORE_POLL_MS"):  # no poll is in vain
        monkeypatch.setattr(f"kohort.spark.state.changelog_reader.{poll}", 60_000)

    async def test() -> None:
        async with log.opened() as (_, reader), Producer(log.servers) as producer:
            await log._send(producer, {str(key): "1" for key in range(200)}, 0)
            await producer.flush()

            async def more() -> None:
                for number in count():
                    await log._send(producer, {str(number): "2"}, 0)
                    await asyncio.sleep(0.002)

            writing = asyncio.create_task(more())
            store = log.store()
            reader.follow(store, log.at)
            await until(lambda: (store.position or 0) >= 200)
            writing.cancel()
            store.close()

    run(test(), timeout_s=60)


@pytest.mark.usefixtures("gathering")
@pytest.mark.parametrize("tail", ["aborted", "open"])
def test_what_is_gathered_is_written_before_a_tail_without_records_though_others_have_more(
    log: Log, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    monkeypatch.setattr("kohort.spark.state.changelog_reader.FULL", 1 << 30)
    idle = 0.25 if tail == "open" else 1e9
    monkeypatch.setattr("kohort.spark.state.changelog_reader._IDLE_BESIDE_OTHERS_S", idle)
    for poll in ("_POLL_MS", "_RESTORE_POLL_MS"):  # no poll is in vain
        monkeypatch.setattr(f"kohort.spark.state.changelog_reader.{poll}", 60_000)

    async def test() -> None:
        other = Log(log.servers, log.path)
        async with log.opened() as (admin, reader), Producer(log.servers, transactional_id=log.name) as producer:
            await other.create(admin)
            await log.put({str(key): "1" for key in range(200)})
            if tail == "aborted":
                await log.transaction(producer, {str(key): "2" for key in range(100)}, commit=False)
            else:
                await producer.begin_transaction()
                await log._send(producer, {str(key): "2" for key in range(100)}, 0)
                await producer.flush()

            async def more() -> None:
                async with Producer(log.servers) as producer:
                    for number in count():
                        await other._send(producer, {str(number): "2"}, 0)
                        await asyncio.sleep(0.002)

            writing = asyncio.create_task(more())
            store, others = log.store(), other.store()
            reader.follow(others, other.at)
            await until(lambda: others.position is not None)
            reader.follow(store, log.at)
            await until(lambda: (store.position or 0) >= 200)
            assert content(store) == {str(key): "1" for key in range(200)}
            writing.cancel()
            for each in (log, other):
                await reader.unfollow(each.at)
            store.close()
            others.close()

    run(test(), timeout_s=60)


@pytest.mark.usefixtures("gathering")
def test_what_could_not_be_written_is_gathered_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest, failures = Store.ingest, iter([StateError("the disk is full")])

    def sometimes(store: Store, *args: Any) -> None:
        if error := next(failures, None):
            raise error
        ingest(store, *args)

    monkeypatch.setattr(Store, "ingest", sometimes)

    async def test() -> None:
        async with log.opened() as (_, reader):
            for number in range(10):
                await log.put({f"{number} {key}": "x" * 20 for key in range(50)})
            store = log.store()
            assert await reader.restore(store, log.at) == 500
            assert len(content(store)) == 500
            store.close()

    run(test(), timeout_s=60)
    assert "the disk is full" in log.waits


@pytest.mark.usefixtures("gathering")
def test_a_store_that_is_not_followed_any_more_is_left_where_it_was_written_last(log: Log) -> None:
    async def test() -> None:
        async with log.opened() as (_, reader):
            await log.put({str(key): "1" for key in range(60)})
            store = log.store()
            reader.follow(store, log.at)
            await until(lambda: bool(reader._changelogs[log.at].buffer) or store.position is not None)
            await reader.unfollow(log.at)
            position = store.position
            await asyncio.sleep(0.5)
            assert store.position == position
            assert await reader.restore(store, log.at) == 60
            assert len(content(store)) == 60
            store.close()

    run(test(), timeout_s=60)
