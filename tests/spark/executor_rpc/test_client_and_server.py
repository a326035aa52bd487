"""Both ends of the RPC, over real sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from kohort.spark.epoch import DEAD_SCHEMA, EpochInput, EpochStatistics, OffsetRange, Read
from kohort.spark.executor_rpc import client
from kohort.spark.executor_rpc.client import RpcAddress, close_idle
from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import MAGIC
from kohort.spark.executor_rpc.messages import FETCHED_RECORDS, STORE_WRITES
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.executor_rpc.tls import connected, driver_tls, executor_context
from kohort.spark.state import ScannedRanges

INPUT = EpochInput(7, (OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 30)), {0: 1_000})


def lookup(store: str, partition: int | None, keys: pa.BinaryArray) -> pa.BinaryArray:
    if store == "broken":
        raise RuntimeError("the store is closed")
    name = f"{store}/{partition}/".encode()
    return pa.array([None if key == b"none" else name + key for key in keys.to_pylist()], pa.binary())


def scan(
    store: str,
    partition: int,
    starts: Sequence[bytes],
    ends: Sequence[bytes],
    most_bytes: int,
    neighbours_from: Sequence[bytes | None],
    neighbours_to: Sequence[bytes | None],
) -> ScannedRanges:
    """Each range has the keys from its start to its end that are two letters long; few rows at a time."""
    every = [bytes([first, second]) for first in range(97, 100) for second in range(97, 100)]
    rows = []
    asked = zip(starts, ends, neighbours_from, neighbours_to, strict=True)
    for number, (start, end, first, last) in enumerate(asked):
        keys = [key for key in every if start <= key < end]
        keys = [*[key for key in every if first is not None and first <= key < start][-1:], *keys]
        keys += [key for key in every if last is not None and max(start, end) <= key < last][:1]
        rows += [(number, key, f"{store}/{partition}".encode()) for key in keys]
    some, rest = rows[: max(most_bytes // 64, 1)], rows[max(most_bytes // 64, 1) :]
    numbers, keys, values = (list(column) for column in zip(*some, strict=True)) if some else ([], [], [])
    return ScannedRanges(
        pa.array(numbers, pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary()),
        (rest[0][0], rest[0][1]) if rest else None,
    )  # fmt: skip


@pytest.fixture(params=["plain", "TLS"])
def server(request: pytest.FixtureRequest) -> Iterator[RpcServer]:
    tls = None if request.param == "plain" else driver_tls(None, datetime.now(UTC))
    with RpcServer(lookup, tls=tls, secrets={"sasl_password": "sesame"}, scan=scan) as server:
        yield server
    close_idle()


@pytest.fixture
def driver(server: RpcServer) -> RpcAddress:
    return RpcAddress(server.address, server.token, server.handover)


def opened(server: RpcServer) -> socket.socket:
    """A connection of somebody who may have one, before the token is sent."""
    connection = socket.create_connection(server.address, 5)
    return connected(executor_context(server.handover), connection) if server.handover else connection


def test_ranges_are_divided_among_splits(server: RpcServer, driver: RpcAddress) -> None:
    run = server.begin_epoch("0", INPUT)
    inputs = [driver.request_input("0", split, 2) for split in range(2)]
    assert [each.run for each in inputs] == [run, run]
    assert inputs[0].ranges == (OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 10))
    assert inputs[1].ranges == (OffsetRange("t", 1, 10, 30),)
    assert inputs[0].stream_times == {0: 1_000}


def test_records_that_the_driver_has_come_with_the_input() -> None:
    def fetch(ranges: Sequence[OffsetRange]) -> pa.RecordBatch:
        records = [record(each.partition, offset) for each in ranges for offset in range(each.start, each.end)]
        return pa.RecordBatch.from_pylist(records, schema=FETCHED_RECORDS)

    with RpcServer(lookup, fetch=fetch) as server:
        driver = RpcAddress(server.address, server.token, server.handover)
        server.begin_epoch("0", INPUT)
        inputs = [driver.request_input("0", split, 2) for split in range(2)]
        server.begin_epoch("0", EpochInput(8, ()))
        empty = driver.request_input("0", 0, 1)
    close_idle()
    read = [(row["partition"], row["offset"]) for each in inputs for row in _rows(each.records)]
    assert read == [*((0, offset) for offset in range(10, 20)), *((1, offset) for offset in range(30))]
    assert _rows(empty.records) == []


def record(partition: int, offset: int) -> dict[str, object]:
    time = datetime(1970, 1, 1, tzinfo=UTC)
    return {"offset": offset, "timestamp": time, "key": None, "value": b"v", "headers": [], "partition": partition}


def _rows(records: pa.RecordBatch | None) -> list[dict[str, object]]:
    assert records is not None
    rows: list[dict[str, object]] = records.to_pylist()
    return rows


def test_no_epoch_runs(driver: RpcAddress) -> None:
    with pytest.raises(RpcError, match="no epoch of subtopology 9 runs"):
        driver.request_input("9", 0, 1)


def test_lookups_keep_the_order_of_the_keys(driver: RpcAddress) -> None:
    partitions = pa.array([1, 0, 1, 0], pa.int32())
    keys = pa.array([b"a", b"b", b"none", b"d"], pa.binary())
    assert driver.lookup("s", partitions, keys).to_pylist() == [b"s/1/a", b"s/0/b", None, b"s/0/d"]
    assert driver.lookup("s", None, keys).to_pylist() == [b"s/None/a", b"s/None/b", None, b"s/None/d"]
    assert driver.lookup("s", partitions[:0], keys[:0]).to_pylist() == []


def test_many_keys_go_in_several_frames(driver: RpcAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_KEYS_AT_ONCE", 3)
    keys = pa.array([b"%d" % number for number in range(10)], pa.binary())
    assert driver.lookup("s", None, keys).to_pylist() == [b"s/None/%d" % number for number in range(10)]


def test_large_values_come_in_several_responses(driver: RpcAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.executor_rpc.server._KEYS_AT_ONCE", 2)
    monkeypatch.setattr("kohort.spark.executor_rpc.server._RESPONSE_BYTES", 64)
    keys = pa.array([b"%d" % number * 40 for number in range(9)], pa.binary())
    requests = []
    request = RpcAddress._request
    monkeypatch.setattr(RpcAddress, "_request", lambda *given: requests.append(given) or request(*given))
    assert driver.lookup("s", None, keys).to_pylist() == [b"s/None/" + key for key in keys.to_pylist()]
    assert len(requests) == 5


def test_a_few_are_looked_up_at_a_time_where_values_are_large(
    driver: RpcAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.spark.executor_rpc.server._KEYS_AT_ONCE", 6)
    monkeypatch.setattr("kohort.spark.executor_rpc.server._FEW_KEYS", 2)
    monkeypatch.setattr("kohort.spark.executor_rpc.server._RESPONSE_BYTES", 64)
    numbers = list(range(9))
    keys = pa.array([b"%d" % number * (1 if number < 6 else 40) for number in numbers], pa.binary())
    partitions = pa.array([None if number == 4 else number % 2 for number in numbers], pa.int32())
    requests = []
    request = RpcAddress._request
    monkeypatch.setattr(RpcAddress, "_request", lambda *given: requests.append(given) or request(*given))
    expected = [f"s/{at}/".encode() + key for at, key in zip(partitions.to_pylist(), keys.to_pylist(), strict=True)]
    assert driver.lookup("s", partitions, keys).to_pylist() == expected
    assert len(requests) > 1


def test_a_store_that_fails_fails_the_lookup_alone(driver: RpcAddress) -> None:
    with pytest.raises(RpcError, match="the store is closed"):
        driver.lookup("broken", None, pa.array([b"a"], pa.binary()))
    assert driver.lookup("s", None, pa.array([b"a"], pa.binary())).to_pylist() == [b"s/None/a"]


@pytest.mark.parametrize("most", [1, 130, 10_000])
@pytest.mark.parametrize("at_once", [1, 100])
def test_ranges_are_scanned_in_as_many_responses_as_it_takes(
    driver: RpcAddress, monkeypatch: pytest.MonkeyPatch, most: int, at_once: int
) -> None:
    monkeypatch.setattr("kohort.spark.executor_rpc.server._RESPONSE_BYTES", most)
    monkeypatch.setattr(client, "_RANGES_AT_ONCE", at_once)
    rows = driver.scan("s", 4, pa.array([b"a", b"x", b"bb", b"ab"]), pa.array([b"b", b"z", b"ca", b"bb"]))
    assert [(row["range"], row["key"].decode()) for row in rows.to_pylist()] == [
        (0, "aa"), (0, "ab"), (0, "ac"), (2, "bb"), (2, "bc"), (3, "ab"), (3, "ac"), (3, "ba"),
    ]  # fmt: skip
    assert set(rows["value"].to_pylist()) == {b"s/4"}
    assert driver.scan("s", 4, pa.array([], pa.binary()), pa.array([], pa.binary())).num_rows == 0
    assert driver.scan("s", 4, pa.array([b"a"]), pa.array([b"z"]), 1)["key"].to_pylist() == [b"aa"]
    nexts = pa.array([b"a", None, b"bb"]), pa.array([b"b", b"zz", None])
    rows = driver.scan("s", 4, pa.array([b"ab", b"ba", b"bb"]), pa.array([b"ac", b"bb", b"bc"]), None, *nexts)
    assert [(row["range"], row["key"].decode()) for row in rows.to_pylist()] == [
        (0, "aa"), (0, "ab"), (0, "ac"), (1, "ba"), (1, "bb"), (2, "bb")
    ]  # fmt: skip


def test_ranges_that_are_done_are_not_sent_again(driver: RpcAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many responses it takes: each request has some, of which the first alone is another."""
    monkeypatch.setattr("kohort.spark.executor_rpc.server._RESPONSE_BYTES", 1)
    monkeypatch.setattr(client, "_RANGES_AT_ONCE", 3)
    sent: list[list[dict[str, bytes]]] = []
    to_ipc = client.to_ipc

    def noted(batch: pa.RecordBatch) -> pa.Buffer:
        sent.append(batch.to_pylist())
        return to_ipc(batch)

    monkeypatch.setattr(client, "to_ipc", noted)
    starts = pa.array([b"aa", b"ab", b"ba", b"bb", b"bc", b"ca"])
    befores, afters = pa.array([b"a"] * 6), pa.array([b"d"] * 6)
    rows = driver.scan("s", 0, starts, starts, None, befores, afters)
    wanted = ["aa", "aa", "ab", "ac", "ba", "ba", "bb", "bb", "bc", "bc", "ca"]
    assert [row["key"].decode() for row in rows.to_pylist()] == wanted
    assert [row["range"] for row in rows.to_pylist()] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert max(map(len, sent)) == 3
    for ranges in sent:
        assert [each["start"] == each["end"] for each in ranges[1:]] == [True] * (len(ranges) - 1)
        assert all(each["neighbours_from"] == b"a" for each in ranges[1:])


def writes(*rows: tuple[bytes, bytes | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"partition": 0, "key": key, "value": value, "timestamp": None} for key, value in rows], STORE_WRITES
    )


def test_what_stages_write_is_kept_once_for_the_run(
    server: RpcServer, driver: RpcAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is tried again replaces what it wrote; of branches with a processor in common the first counts."""
    monkeypatch.setattr(client, "_ROWS_AT_ONCE", 2)
    run = server.begin_epoch("0", INPUT)
    assert driver.write("0", run, 1, 0, "s", writes((b"a", b"0"), (b"b", b"0"), (b"c", b"0")))
    assert driver.write("0", run, 1, 0, "s", writes((b"a", b"1"), (b"b", None), (b"c", b"1")))
    assert driver.write("0", run, 1, 1, "s", writes((b"d", b"0"), (b"e", b"0"), (b"f", b"0")))
    assert driver.write("0", run, 1, 1, "s", writes((b"d", b"1")))
    assert driver.write("0", run, 3, 0, "s", writes((b"a", b"3")))
    assert driver.write("0", run, 3, 0, "of another", writes((b"a", b"3")))
    written = {store: table.to_pylist() for store, table in server.store_writes("0", run).items()}
    found = {store: [(row["key"], row["value"]) for row in rows] for store, rows in written.items()}
    assert found == {
        "s": [(b"a", b"1"), (b"b", None), (b"c", b"1"), (b"d", b"1")],
        "of another": [(b"a", b"3")],
    }
    server.end_epoch("0", run)
    assert server.store_writes("0", run) == {}
    assert not driver.write("0", run, 1, 0, "s", writes((b"a", b"4")))


def test_what_a_processor_has_made_is_kept_for_the_run(server: RpcServer, driver: RpcAddress) -> None:
    run, made = server.begin_epoch("0", INPUT), pa.record_batch({"n": [1, 2]})
    assert driver.kept("0", run, "sort", 3, made.schema) is None
    assert driver.keep("0", run, "sort", 3, made)
    found = driver.kept("0", run, "sort", 3, made.schema)
    assert found is not None and found.equals(made)
    assert driver.kept("0", run, "sort", 4, made.schema) is None and driver.kept("0", run, "x", 3, made.schema) is None
    assert driver.kept("0", server.begin_epoch("0", INPUT), "sort", 3, made.schema) is None
    assert not driver.keep("0", run, "sort", 3, made)


def test_a_retried_split_replaces_its_report(server: RpcServer, driver: RpcAddress) -> None:
    run = server.begin_epoch("0", INPUT)
    dead = pa.Table.from_pylist(
        [{"topic": "t", "partition": 0, "offset": 3, "timestamp": 4, "key": None, "value": b"x", "error": "bad",
          "headers": [("h", None)]}],
        schema=DEAD_SCHEMA,
    )  # fmt: skip
    assert driver.report("0", run, 0, 0, "fetch", EpochStatistics(1, 2, {"no key": 3}, 4, {0: 5}))
    assert driver.report("0", run, 0, 0, "fetch", EpochStatistics(10, 20, {"no key": 30}, 40, {0: 50}, dead=dead))
    assert driver.report("0", run, 0, 1, "fetch", EpochStatistics(1, 1, {"no key": 1}, 1))
    reports = server.end_epoch("0", run)
    assert [(report.split, report.records) for report, _ in reports] == [(0, 10), (1, 1)]
    assert (reports[0][0].reasons, reports[0][0].max_times) == ({"no key": 30}, {0: 50})
    assert reports[0][1] is not None and reports[0][1].to_pylist() == dead.to_pylist()
    assert reports[1][1] is None
    assert not driver.report("0", run, 0, 0, "fetch", EpochStatistics(1))


def test_when_a_read_has_ended_is_told_by_the_drivers_clock(server: RpcServer, driver: RpcAddress) -> None:
    """Whatever the executor takes for the time."""
    run, before = server.begin_epoch("0", INPUT), time.time()
    read = Read(10, 200, took_ms=5.5, fetch_ms=2.5, decode_ms=1.25, partitions=("t-0", "t-1"), ended=7.0)
    assert driver.report("0", run, 2, 0, "rows", EpochStatistics(10, 200, reads=[read]))
    ((report, _),) = server.end_epoch("0", run)
    assert report.read is not None and before <= report.read.ended <= time.time()
    assert report.read == replace(read, ended=report.read.ended, branch=2)


def test_reports_of_an_earlier_run_are_refused(server: RpcServer, driver: RpcAddress) -> None:
    old = server.begin_epoch("0", INPUT)
    new = server.begin_epoch("0", INPUT)
    assert not driver.report("0", old, 0, 0, "fetch", EpochStatistics(1))
    assert server.end_epoch("0", old) == []
    assert server.end_epoch("0", new) == []


def test_connections_are_reused(server: RpcServer, driver: RpcAddress) -> None:
    server.begin_epoch("0", INPUT)
    for _ in range(5):
        driver.request_input("0", 0, 1)
    assert len(server._connections) == 1


def test_an_idle_connection_that_broke_is_replaced(server: RpcServer, driver: RpcAddress) -> None:
    server.begin_epoch("0", INPUT)
    driver.request_input("0", 0, 1)
    for connection in list(server._connections):
        connection.shutdown(socket.SHUT_RDWR)
    driver.request_input("0", 0, 1)


def test_a_forked_child_has_connections_of_its_own(server: RpcServer, driver: RpcAddress) -> None:
    server.begin_epoch("0", INPUT)
    driver.request_input("0", 0, 1)
    assert client._connections._idle
    client._connections._pid = -1  # as if this were a child
    driver.request_input("0", 0, 1)
    assert client._connections._pid == os.getpid()


def test_no_driver() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = other.getsockname()[:2]
    with pytest.raises(RpcError, match="can't be reached"):
        RpcAddress(address, bytes(32)).request_input("0", 0, 1)


def test_a_wrong_token_is_refused(server: RpcServer) -> None:
    with pytest.raises(RpcError):
        RpcAddress(server.address, bytes(32), server.handover).request_input("0", 0, 1)


def test_passwords_come_with_the_input_and_are_in_no_text(server: RpcServer, driver: RpcAddress) -> None:
    server.begin_epoch("0", INPUT)
    given = driver.request_input("0", 0, 1)
    assert given.secrets == {"sasl_password": "sesame"}
    assert "sesame" not in repr(given)
    assert repr(server.token) not in repr(driver)
    assert repr(server.handover) not in repr(driver) or not server.handover


HOSTILE = {
    "nothing": b"",
    "garbage": os.urandom(200),
    "a browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 100,
    "half a greeting": MAGIC + b"123",
    "a wrong token": MAGIC + bytes(32) + struct.pack(">II", 10, 10) + b"x" * 20,
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_clients_affect_nobody(server: RpcServer, driver: RpcAddress, sent: bytes) -> None:
    server.begin_epoch("0", INPUT)
    # The server may close the connection before all is sent.
    with contextlib.suppress(OSError), socket.create_connection(server.address, 5) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) in ((b"",) if not server.handover else (b"", b"\x15"))  # an alert of TLS
    assert driver.request_input("0", 0, 1).ranges == INPUT.ranges


NEGATIVE = b'{"type":"input","subtopology":"0","split":-1,"splits":1}'
FRAMES = {
    "huge lengths": struct.pack(">II", 2**32 - 1, 2**32 - 1),
    "a body that never comes": struct.pack(">II", 2, 2**31 - 1) + b"{}",
    "half a header": struct.pack(">II", 100, 0) + b"{",
    "not JSON": struct.pack(">II", 4, 0) + b"\xff\xfe{}",
    "an unknown request": struct.pack(">II", 14, 0) + b'{"type":"rm"} ',
    "a body that isn't Arrow": struct.pack(">II", 29, 4) + b'{"type":"lookup","store":"s"}' + b"1234",
    "split -1": struct.pack(">II", len(NEGATIVE), 0) + NEGATIVE,
}


@pytest.mark.parametrize("sent", FRAMES.values(), ids=FRAMES.keys())
def test_a_bad_frame_affects_only_its_connection(server: RpcServer, driver: RpcAddress, sent: bytes) -> None:
    server.begin_epoch("0", INPUT)
    with opened(server) as connection:
        connection.sendall(MAGIC + server.token)
        assert connection.recv(4) == MAGIC
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    assert driver.request_input("0", 0, 1).ranges == INPUT.ranges


def test_many_unauthenticated_connections_leave_no_trace(server: RpcServer, driver: RpcAddress) -> None:
    server.begin_epoch("0", INPUT)
    connections = [socket.create_connection(server.address, 5) for _ in range(100)]
    for connection in connections:
        connection.close()
    for _ in range(500):
        with server._lock:
            if not server._unauthenticated and not server._connections:
                break
        threading.Event().wait(0.01)
    assert driver.request_input("0", 0, 1).ranges == INPUT.ranges


def test_closing_ends_all_connections(driver: RpcAddress, server: RpcServer) -> None:
    server.begin_epoch("0", INPUT)
    driver.request_input("0", 0, 1)
    server.close()
    with pytest.raises(RpcError):
        driver.request_input("0", 0, 1)
