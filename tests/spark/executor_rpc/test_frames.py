"""Frames: what is sent arrives, and no bytes do harm."""

from __future__ import annotations

import socket
import threading

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import from_ipc, receive_frame, send_frame, to_ipc
from kohort.spark.executor_rpc.messages import LOOKUP_KEYS


@given(st.binary(max_size=200), st.binary(max_size=200_000))
@settings(max_examples=30, deadline=None)
def test_frames_arrive_as_sent(header: bytes, body: bytes) -> None:
    one, other = socket.socketpair()
    with one, other:
        sender = threading.Thread(target=send_frame, args=(one, header, body))
        sender.start()
        assert receive_frame(other) == (header, body)
        sender.join()


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes_end_in_a_frame_or_an_error(sent: bytes) -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
        try:
            header, body = receive_frame(other)
        except RpcError:
            return
        assert len(header) + len(body) + 8 <= len(sent)


def test_memory_grows_with_what_arrives() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"\x00\x00\x00\x00\x7f\xff\xff\xff" + b"x" * 1000)
        one.shutdown(socket.SHUT_WR)
        with pytest.raises(RpcError, match="1000 of 2147483647"):
            receive_frame(other)


BATCH = pa.RecordBatch.from_arrays(
    [pa.array([1, None, 3], pa.int32()), pa.array([b"a", b"bc", b""], pa.binary())], schema=LOOKUP_KEYS
)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_corrupt_bodies_are_refused_or_read(data: st.DataObject) -> None:
    body = bytearray(to_ipc(BATCH).to_pybytes())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))]
    try:
        batch = from_ipc(bytes(body), LOOKUP_KEYS)
    except RpcError:
        return
    batch.to_pylist()


def test_bodies_round_trip() -> None:
    assert from_ipc(to_ipc(BATCH).to_pybytes(), LOOKUP_KEYS).equals(BATCH)
    with pytest.raises(RpcError):
        from_ipc(to_ipc(BATCH.select(["key"])).to_pybytes(), LOOKUP_KEYS)
