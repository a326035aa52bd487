"""Ranges of offsets against a real broker: exactly what was asked for, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Awaitable, Callable

import pyarrow as pa
import pytest

from kohort.client import Producer, TopicPartition
from kohort.client.admin import Admin
from kohort.client.errors import NoBrokerError
from kohort.log import Origin
from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.protocol.records.batch import read_header, scan_batches, write_header
from kohort.protocol.records.rows import encode_records
from kohort.spark.reading import RangeError, RangeReader, shared
from kohort.spark.reading.reader import CorruptBatch
from kohort.testing.broker import Broker
from kohort.testing.process import BrokerProcess

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def write(servers: str, work: Callable[[Producer], Awaitable[object]], **settings: object) -> None:
    async def main() -> None:
        async with Producer(servers, **settings) as producer:  # type: ignore[arg-type]
            await work(producer)

    asyncio.run(main())


def numbers(servers: str, first: int, count: int, **settings: object) -> None:
    table = pa.table({"value": [b"%d" % number for number in range(first, first + count)]})

    async def work(producer: Producer) -> None:
        await producer.send_table("t", table)
        await producer.flush()

    write(servers, work, **settings)


def found(reader: RangeReader, start: int, end: int, *, committed: bool = True) -> list[tuple[int, bytes]]:
    pairs = []
    for batch in reader.read("t", 0, start, end, committed=committed):
        assert batch.schema.equals(RECORD_SCHEMA) and batch.num_rows
        pairs += list(zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True))
    return pairs


def test_who_reads_nothing_yet_is_ready_for_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[None] = []
    monkeypatch.setattr("kohort.spark.reading.reader.load_columns", lambda: loaded.append(None))
    assert not list(RangeReader("localhost:1").read_all([("t", 0, 5, 5)]))
    assert loaded


def test_only_what_was_asked_for(kohort_fresh_broker: Broker) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    numbers(servers, 0, 3000, batch_size=4096, compression_type="lz4")
    reader = RangeReader(servers)
    for start, end in ((0, 3000), (1, 2), (7, 7), (1234, 2999), (2999, 3000)):
        assert found(reader, start, end) == [(n, b"%d" % n) for n in range(start, end)]
    ranges = [("t", 0, start, start + 5) for start in range(0, 100, 10)]
    by_range: dict[int, int] = {}
    for number, batch in reader.read_all([*ranges, ("t", 0, 5, 5)]):
        by_range[number] = by_range.get(number, 0) + batch.num_rows
    assert by_range == dict.fromkeys(range(10), 5)
    assert reader.partitions("t") == [0] and reader.topics() == ["t"]
    assert reader.offsets({TopicPartition("t", 0): -1}) == {TopicPartition("t", 0): 3000}
    left = reader.read("t", 0, 0, 3000)  # left in the middle: nothing stays behind
    next(left)
    left.close()
    assert len(found(reader, 0, 10)) == 10
    reader.close()
    assert len(found(reader, 0, 10)) == 10
    reader.close()
    reader.close()


def poison(broker: Broker, records: int, claimed: int) -> None:
    """Appends a batch that claims to have other records than it has, as another broker's log may have one."""
    data = bytearray(encode_records([(None, b"x" * 20)] * records, 1_000))
    header = read_header(data)._replace(record_count=claimed, last_offset_delta=claimed - 1)
    write_header(data, header)

    async def append() -> None:
        partition = broker.server.broker.topics.partition("t", 0)
        assert partition is not None
        partition.log.append(data, now=1_000, origin=Origin.COORDINATOR)

    assert broker._thread is not None
    broker._thread.run(append())


def flip(broker: Broker, offset: int) -> None:
    """Changes a byte of the records of the batch that begins at an offset: its checksum is wrong then."""
    (path,) = (broker.server.broker.log_manager.directory / "t-0").glob("*.log")
    data = bytearray(path.read_bytes())
    (at,) = (header.end - 1 for header in scan_batches(bytes(data)) if header.base_offset == offset)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([data[at] ^ 1]))


def test_corrupt_batches_are_left_out_if_somebody_is_told(kohort_fresh_broker: Broker) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    numbers(servers, 0, 10)
    poison(kohort_fresh_broker, 3, 5)
    numbers(servers, 10, 10)
    poison(kohort_fresh_broker, 5, 2)
    numbers(servers, 20, 10)
    flip(kohort_fresh_broker, 0)
    reader = RangeReader(servers)
    seen: list[CorruptBatch] = []
    values = [
        value
        for _, batch in reader.read_all([("t", 0, 0, 37)], corrupt=seen.append)
        for value in batch.column("value").to_pylist()
    ]
    assert values == [b"%d" % number for number in range(10, 30)]
    assert [(each.offset, each.next_offset) for each in seen] == [(0, 10), (10, 15), (25, 27)]
    assert [read_header(each.data).record_count for each in seen[1:]] == [5, 2]
    assert all(each.reason for each in seen)
    for start, end in ((0, 5), (10, 15), (12, 20), (20, 26)):
        with pytest.raises(RangeError, match="corrupt data"):
            found(reader, start, end)
    assert len(found(reader, 15, 25)) == 10
    seen.clear()
    assert not list(reader.read_all([("t", 0, 12, 14)], corrupt=seen.append))
    assert [(each.offset, each.next_offset) for each in seen] == [(12, 14)]
    reader.close()


def test_aborted_records_and_control_records_are_left_out(kohort_fresh_broker: Broker) -> None:
    async def work(producer: Producer) -> None:
        for name, commit in ((b"a", True), (b"b", False), (b"c", True), (b"d", False)):
            producer_transaction = producer.transaction()
            try:
                async with producer_transaction:
                    await producer.send("t", name)
                    await producer.flush()
                    if not commit:
                        raise InterruptedError
            except InterruptedError:
                pass

    servers = kohort_fresh_broker.bootstrap_servers
    write(servers, work, transactional_id="x")
    reader = RangeReader(servers)
    (end,) = reader.offsets({TopicPartition("t", 0): -1}).values()
    assert end == 8
    assert found(reader, 0, 8) == [(0, b"a"), (4, b"c")]
    assert found(reader, 0, 8, committed=False) == [(0, b"a"), (2, b"b"), (4, b"c"), (6, b"d")]
    assert found(reader, 5, 8) == []
    assert found(reader, 7, 8) == []  # nothing but a control record
    reader.close()


def test_a_range_beyond_the_end_is_waited_for_and_then_told(kohort_fresh_broker: Broker) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    numbers(servers, 0, 5)
    reader = RangeReader(servers, patience_ms=2_000)
    with pytest.raises(RangeError, match=r"topic t, partition 0, offsets 0 to 9 .*: .* offset is 5.*up to 5"):
        found(reader, 0, 9)
    with pytest.raises(RangeError, match=r"offsets 7 to 9 .*: the log has offsets 0 to 5 .*truncated") as caught:
        found(reader, 7, 9)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(RangeError, match="has no partition 3: it has partitions 0 to 0"):
        list(reader.read("t", 3, 0, 1))
    with pytest.raises(RangeError, match=r"no progress within 2 s"):
        list(reader.read("missing", 0, 0, 1))
    patient = RangeReader(servers, patience_ms=20_000)
    later = threading.Timer(0.5, numbers, (servers, 5, 4))
    later.start()
    assert found(patient, 0, 9) == [(n, b"%d" % n) for n in range(9)]
    later.join()
    patient.close()
    reader.close()


def test_a_start_that_was_deleted(kohort_fresh_broker: Broker) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    numbers(servers, 0, 10)

    async def delete() -> None:
        async with Admin(servers) as admin:
            await admin.topics.delete_records({TopicPartition("t", 0): 4})

    asyncio.run(delete())
    reader = RangeReader(servers)
    with pytest.raises(RangeError, match=r"topic t, partition 0, offsets 1 to 9 .* has offsets 4 to 10 .*retention"):
        found(reader, 1, 9)
    assert len(found(reader, 4, 9)) == 5
    reader.close()


def test_a_broker_that_restarts_is_waited_for(kohort_broker_process: BrokerProcess) -> None:
    servers = kohort_broker_process.bootstrap_servers
    numbers(servers, 0, 20_000)
    reader = RangeReader(servers)
    assert len(found(reader, 0, 10)) == 10
    kohort_broker_process.stop()
    starting = threading.Timer(0.5, kohort_broker_process.start)
    starting.start()
    assert found(reader, 0, 20_000) == [(n, b"%d" % n) for n in range(20_000)]
    starting.join()
    kohort_broker_process.kill()
    impatient = RangeReader(servers, patience_ms=500)
    started = time.monotonic()
    with pytest.raises((RangeError, NoBrokerError)):
        found(impatient, 0, 1)
    assert time.monotonic() - started < 25
    impatient.close()
    reader.close()


def _child(servers: str, results: multiprocessing.Queue[object]) -> None:
    results.put((os.getpid(), len(found(shared(servers), 0, 5))))


def test_a_fork_opens_connections_of_its_own(kohort_broker_process: BrokerProcess) -> None:
    servers = kohort_broker_process.bootstrap_servers
    numbers(servers, 0, 50)
    reader = shared(servers)
    assert shared(servers) is reader
    assert len(found(reader, 0, 50)) == 50
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[object] = context.Queue()
    child = context.Process(target=_child, args=(servers, results))
    child.start()
    assert results.get(timeout=60) == (child.pid, 5)
    child.join()
    assert child.exitcode == 0
    assert len(found(reader, 0, 50)) == 50
    reader.close()
