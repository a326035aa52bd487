"""The line, both ends of it, over real sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kohort.spark.executor_rpc import client
from kohort.spark.executor_rpc.client import RpcAddress, close_idle
from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import MAGIC
from kohort.spark.executor_rpc.server import RpcServer
from kohort.spark.jobs.epoch import DEAD_SCHEMA, EpochInput, EpochStatistics, OffsetRange

WORK = EpochInput(7, (OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 30)), {0: 1_000})


def lookup(store: str, partition: int | None, keys: pa.BinaryArray) -> pa.BinaryArray:
    if store == "broken":
        raise RuntimeError("the store is closed")
    name = f"{store}/{partition}/".encode()
    return pa.array([None if key == b"none" else name + key for key in keys.to_pylist()], pa.binary())


@pytest.fixture
def server() -> Iterator[RpcServer]:
    with RpcServer(lookup) as server:
        yield server
    close_idle()


@pytest.fixture
def line(server: RpcServer) -> RpcAddress:
    return RpcAddress(server.address, server.token)


def test_work_is_dealt_to_splits(server: RpcServer, line: RpcAddress) -> None:
    run = server.set_work("0", WORK)
    tasks = [line.work("0", split, 2) for split in range(2)]
    assert [task.run for task in tasks] == [run, run]
    assert tasks[0].ranges == (OffsetRange("t", 0, 10, 20), OffsetRange("t", 1, 0, 10))
    assert tasks[1].ranges == (OffsetRange("t", 1, 10, 30),)
    assert tasks[0].stream_times == {0: 1_000}


def test_a_lane_without_work_says_so(line: RpcAddress) -> None:
    with pytest.raises(RpcError, match="lane 9 has no work"):
        line.work("9", 0, 1)


def test_lookups_keep_the_order_of_the_keys(line: RpcAddress) -> None:
    partitions = pa.array([1, 0, 1, 0], pa.int32())
    keys = pa.array([b"a", b"b", b"none", b"d"], pa.binary())
    assert line.lookup("s", partitions, keys).to_pylist() == [b"s/1/a", b"s/0/b", None, b"s/0/d"]
    assert line.lookup("s", None, keys).to_pylist() == [b"s/None/a", b"s/None/b", None, b"s/None/d"]
    assert line.lookup("s", partitions[:0], keys[:0]).to_pylist() == []


def test_many_keys_go_in_several_frames(line: RpcAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_KEYS_AT_ONCE", 3)
    keys = pa.array([b"%d" % number for number in range(10)], pa.binary())
    assert line.lookup("s", None, keys).to_pylist() == [b"s/None/%d" % number for number in range(10)]


def test_large_values_come_in_several_answers(line: RpcAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.executor_rpc.server._KEYS_AT_ONCE", 2)
    monkeypatch.setattr("kohort.spark.executor_rpc.server._ANSWER_BYTES", 64)
    keys = pa.array([b"%d" % number * 40 for number in range(9)], pa.binary())
    asked = []
    ask = RpcAddress._ask
    monkeypatch.setattr(RpcAddress, "_ask", lambda *given: asked.append(given) or ask(*given))
    assert line.lookup("s", None, keys).to_pylist() == [b"s/None/" + key for key in keys.to_pylist()]
    assert len(asked) == 5


def test_a_store_that_fails_fails_the_lookup_alone(line: RpcAddress) -> None:
    with pytest.raises(RpcError, match="the store is closed"):
        line.lookup("broken", None, pa.array([b"a"], pa.binary()))
    assert line.lookup("s", None, pa.array([b"a"], pa.binary())).to_pylist() == [b"s/None/a"]


def test_a_retried_split_replaces_its_report(server: RpcServer, line: RpcAddress) -> None:
    run = server.set_work("0", WORK)
    dead = pa.Table.from_pylist(
        [{"topic": "t", "partition": 0, "offset": 3, "timestamp": 4, "key": None, "value": b"x", "error": "bad",
          "headers": [("h", None)]}],
        schema=DEAD_SCHEMA,
    )  # fmt: skip
    assert line.report("0", run, 0, 0, "fetch", EpochStatistics(1, 2, {"no key": 3}, 4, {0: 5}))
    assert line.report("0", run, 0, 0, "fetch", EpochStatistics(10, 20, {"no key": 30}, 40, {0: 50}, dead))
    assert line.report("0", run, 0, 1, "fetch", EpochStatistics(1, 1, {"no key": 1}, 1))
    reports = server.take_reports("0", run)
    assert [(report.split, report.records) for report, _ in reports] == [(0, 10), (1, 1)]
    assert (reports[0][0].reasons, reports[0][0].max_times) == ({"no key": 30}, {0: 50})
    assert reports[0][1] is not None and reports[0][1].to_pylist() == dead.to_pylist()
    assert reports[1][1] is None
    assert not line.report("0", run, 0, 0, "fetch", EpochStatistics(1))


def test_reports_of_an_earlier_run_are_not_taken(server: RpcServer, line: RpcAddress) -> None:
    old = server.set_work("0", WORK)
    new = server.set_work("0", WORK)
    assert not line.report("0", old, 0, 0, "fetch", EpochStatistics(1))
    assert server.take_reports("0", old) == []
    assert server.take_reports("0", new) == []


def test_connections_are_kept(server: RpcServer, line: RpcAddress) -> None:
    server.set_work("0", WORK)
    for _ in range(5):
        line.work("0", 0, 1)
    assert len(server._links) == 1


def test_a_kept_connection_that_broke_is_made_anew(server: RpcServer, line: RpcAddress) -> None:
    server.set_work("0", WORK)
    line.work("0", 0, 1)
    for link in list(server._links):
        link.shutdown(socket.SHUT_RDWR)
    line.work("0", 0, 1)


def test_a_forked_child_has_connections_of_its_own(server: RpcServer, line: RpcAddress) -> None:
    server.set_work("0", WORK)
    line.work("0", 0, 1)
    assert client._connections._idle
    client._connections._pid = -1  # as if this were a child
    line.work("0", 0, 1)
    assert client._connections._pid == os.getpid()


def test_the_driver_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = other.getsockname()[:2]
    with pytest.raises(RpcError, match="can't be reached"):
        RpcAddress(address, bytes(32)).work("0", 0, 1)


def test_a_wrong_token_gets_nothing(server: RpcServer) -> None:
    with pytest.raises(RpcError):
        RpcAddress(server.address, bytes(32)).work("0", 0, 1)


HOSTILE = {
    "nothing": b"",
    "garbage": os.urandom(200),
    "a browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 100,
    "half a greeting": MAGIC + b"123",
    "a wrong token": MAGIC + bytes(32) + struct.pack(">II", 10, 10) + b"x" * 20,
}


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE.keys())
def test_strangers_harm_nobody(server: RpcServer, line: RpcAddress, said: bytes) -> None:
    server.set_work("0", WORK)
    # The stranger may be sent away before it has said all.
    with contextlib.suppress(OSError), socket.create_connection(server.address, 5) as link:
        link.sendall(said)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(1) == b""
    assert line.work("0", 0, 1).ranges == WORK.ranges


FRAMES = {
    "huge lengths": struct.pack(">II", 2**32 - 1, 2**32 - 1),
    "a body that never comes": struct.pack(">II", 2, 2**31 - 1) + b"{}",
    "half a header": struct.pack(">II", 100, 0) + b"{",
    "not JSON": struct.pack(">II", 4, 0) + b"\xff\xfe{}",
    "an unknown request": struct.pack(">II", 14, 0) + b'{"type":"rm"} ',
    "a body that isn't Arrow": struct.pack(">II", 29, 4) + b'{"type":"lookup","store":"s"}' + b"1234",
    "split -1": struct.pack(">II", 47, 0) + b'{"type":"work","lane":"0","split":-1,"splits":1}'[:47],
}


@pytest.mark.parametrize("said", FRAMES.values(), ids=FRAMES.keys())
def test_bad_frames_end_or_fail_one_connection_alone(server: RpcServer, line: RpcAddress, said: bytes) -> None:
    server.set_work("0", WORK)
    with socket.create_connection(server.address, 5) as link:
        link.sendall(MAGIC + server.token)
        assert link.recv(4) == MAGIC
        link.sendall(said)
        link.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while link.recv(4096):
                pass
    assert line.work("0", 0, 1).ranges == WORK.ranges


def test_many_strangers_are_turned_away_and_leave_no_trace(server: RpcServer, line: RpcAddress) -> None:
    server.set_work("0", WORK)
    links = [socket.create_connection(server.address, 5) for _ in range(100)]
    for link in links:
        link.close()
    for _ in range(500):
        with server._lock:
            if server._strangers == 0 and not server._links:
                break
        threading.Event().wait(0.01)
    assert line.work("0", 0, 1).ranges == WORK.ranges


def test_closing_ends_all_connections(line: RpcAddress, server: RpcServer) -> None:
    server.set_work("0", WORK)
    line.work("0", 0, 1)
    server.close()
    with pytest.raises(RpcError):
        line.work("0", 0, 1)
