"""What goes over a connection: a greeting, then frames.

A client sends `MAGIC` and the token, 32 bytes, nothing whose length it may choose; the server answers with `MAGIC`.
Then requests and responses alternate, each a frame: two unsigned 32-bit lengths (big endian), a JSON header, a body.
A body is an Arrow IPC stream of one record batch, or empty.

Lengths aren't trusted: memory grows as bytes arrive, not by what is announced.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

import pyarrow as pa

from kohort.spark.executor_rpc.errors import RpcError

MAGIC: Final = b"KHL1"
TOKEN_BYTES: Final = 32
MAX_HEADER: Final = 16 * 1024 * 1024
MAX_BODY: Final = 2**31 - 1

_LENGTHS: Final = struct.Struct(">II")
_FIRST_BUFFER: Final = 64 * 1024


def receive_exactly(connection: socket.socket, length: int) -> bytearray:
    """Reads `length` bytes.

    Raises:
        RpcError: the peer closed the connection before.
        OSError: the connection broke, or its timeout passed.
    """
    buffer = bytearray(min(length, _FIRST_BUFFER))
    filled = 0
    while filled < length:
        if filled == len(buffer):
            buffer.extend(bytes(min(length - filled, len(buffer))))
        with memoryview(buffer) as view:
            count = connection.recv_into(view[filled:])
        if not count:
            raise RpcError(f"the connection was closed after {filled} of {length} bytes")
        filled += count
    return buffer


def receive_frame(connection: socket.socket) -> tuple[bytes, bytearray]:
    """Reads one frame: its header and its body.

    Raises:
        RpcError: the lengths are out of range, or the peer closed the connection.
        OSError: the connection broke.
    """
    header_length, body_length = _LENGTHS.unpack(receive_exactly(connection, _LENGTHS.size))
    if header_length > MAX_HEADER or body_length > MAX_BODY:
        raise RpcError(f"a frame of {header_length} and {body_length} bytes")
    return bytes(receive_exactly(connection, header_length)), receive_exactly(connection, body_length)


def send_frame(connection: socket.socket, header: bytes, body: bytes | pa.Buffer = b"") -> None:
    """Sends one frame.

    Raises:
        RpcError: the frame is too long.
        OSError: the connection broke.
    """
    length = memoryview(body).nbytes
    if len(header) > MAX_HEADER or length > MAX_BODY:
        raise RpcError(f"{len(header)} and {length} bytes are too many for a frame")
    start = _LENGTHS.pack(len(header), length) + header
    if length <= _FIRST_BUFFER:
        connection.sendall(start + bytes(body))
    else:
        connection.sendall(start)
        connection.sendall(body)


def to_ipc(batch: pa.RecordBatch) -> pa.Buffer:
    """A record batch as the body of a frame."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_ipc(body: bytes | bytearray | memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The record batch of a body.

    Raises:
        RpcError: it isn't a batch of this schema.
    """
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            if reader.schema != schema:
                raise RpcError(f"a batch of {schema.names} was expected, not of {reader.schema.names}")
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, StopIteration) as error:
        raise RpcError(f"not an Arrow batch: {error}") from None
    return batch
