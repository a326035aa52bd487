"""The executors' end of the line: connections which a Python worker keeps from task to task."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
import pyarrow as pa

from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import MAGIC, from_ipc, receive_exactly, receive_frame, send_frame, to_ipc
from kohort.spark.executor_rpc.messages import (
    LOOKUP_KEYS,
    LOOKUP_VALUES,
    Answer,
    ErrorAnswer,
    LookupAnswer,
    LookupRequest,
    ReportAnswer,
    ReportRequest,
    Request,
    WorkAnswer,
    WorkRequest,
)
from kohort.spark.jobs.epoch import EpochStatistics, OffsetRange

_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 120.0
_KEYS_AT_ONCE: Final = 65_536

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Answer)

_AnswerType = TypeVar("_AnswerType", WorkAnswer, LookupAnswer, ReportAnswer)


@dataclass(frozen=True)
class Task:
    """What a split has to do: ranges in order, and what to know beside them."""

    run: int
    ranges: tuple[OffsetRange, ...]
    stream_times: Mapping[int, int]
    partitions: int = 0


@dataclass(frozen=True)
class RpcAddress:
    """Where the driver is, and the token that it wants. Small and picklable: it travels in Spark's functions.

    All methods raise `RpcError` if the driver can't be reached or can't answer.
    """

    address: tuple[str, int]
    token: bytes

    def work(self, lane: str, split: int, splits: int, *, whole: bool = False) -> Task:
        """What split `split` of `splits` of a lane reads now; `whole`: no partition is divided."""
        answer, _ = self._ask(WorkRequest(lane, split, splits, whole), WorkAnswer)
        ranges = tuple(OffsetRange(*each) for each in answer.ranges)
        return Task(answer.run, ranges, answer.stream_times, answer.partitions)

    def lookup(self, store: str, partitions: pa.Array | None, keys: pa.Array) -> pa.Array:
        """The values of keys, in their order, null where a store has none. No partitions: of a global store."""
        if partitions is None:
            partitions = pa.nulls(len(keys), pa.int32())
        asked = pa.RecordBatch.from_arrays([partitions.cast(pa.int32()), keys.cast(pa.binary())], schema=LOOKUP_KEYS)
        found: list[pa.Array] = []
        start = 0
        while start < len(asked):
            some = asked.slice(start, _KEYS_AT_ONCE)
            _, body = self._ask(LookupRequest(store), LookupAnswer, to_ipc(some))
            values = from_ipc(body, LOOKUP_VALUES).column(0)
            if not 0 < len(values) <= len(some):
                raise RpcError(f"the driver answered {len(values)} values for {len(some)} keys")
            found.append(values)
            start += len(values)
        return pa.concat_arrays(found) if found else pa.array([], pa.binary())

    def report(self, lane: str, run: int, branch: int, split: int, stage: str, read: EpochStatistics) -> bool:
        """Tell what a stage did. A second report of the same replaces the first. False: the run is over."""
        request = ReportRequest(
            lane, run, branch, split, stage, read.records, read.bytes, read.reasons, read.late, read.max_times
        )
        dead = read.dead.combine_chunks().to_batches()
        answer, _ = self._ask(request, ReportAnswer, to_ipc(dead[0]) if dead else b"")
        return answer.noted

    def _ask(
        self, request: Request, kind: type[_AnswerType], body: bytes | pa.Buffer = b""
    ) -> tuple[_AnswerType, bytearray]:
        header = _encoder.encode(request)
        link, kept = _connections.take(self)
        try:
            try:
                head, out = _exchange(link, header, body)
            except (OSError, RpcError):
                if not kept:
                    raise
                link.close()  # it was idle, and the driver may have closed it long ago; every request may be repeated
                link = connect(self)
                head, out = _exchange(link, header, body)
            answer = _decoder.decode(head)
        except (OSError, msgspec.MsgspecError) as error:
            link.close()
            raise RpcError(f"the line to the driver at {self.address[0]}:{self.address[1]} broke: {error}") from error
        except BaseException:
            link.close()
            raise
        _connections.give(self, link)
        if isinstance(answer, ErrorAnswer):
            raise RpcError(f"the driver could not answer: {answer.error}")
        if not isinstance(answer, kind):
            raise RpcError(f"the driver answered {type(answer).__name__} to {type(request).__name__}")
        return answer, out


def connect(line: RpcAddress) -> socket.socket:
    """A new connection, greeted.

    Raises:
        RpcError: it isn't the line, or it doesn't know the token.
    """
    host, port = line.address
    try:
        link = socket.create_connection((host, port), _CONNECT_S)
    except OSError as error:
        raise RpcError(
            f"the driver can't be reached at {host}:{port} ({error}): executors need a way to the address "
            "that the driver's line listens on"
        ) from error
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(MAGIC + line.token)
        if receive_exactly(link, len(MAGIC)) != MAGIC:
            raise RpcError(f"what answers at {host}:{port} isn't the line")
        link.settimeout(_ANSWER_S)
    except BaseException:
        link.close()
        raise
    return link


def _exchange(link: socket.socket, header: bytes, body: bytes | pa.Buffer) -> tuple[bytes, bytearray]:
    send_frame(link, header, body)
    return receive_frame(link)


class _Connections:
    """Idle connections of this process. A forked child starts with none: the parent's aren't its to use."""

    def __init__(self) -> None:
        self._idle: dict[RpcAddress, list[socket.socket]] = {}
        self._newest: RpcAddress | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self._forget)

    def take(self, line: RpcAddress) -> tuple[socket.socket, bool]:
        """A connection, and whether it was kept from before."""
        self._check()
        with self._lock:
            idle = self._idle.get(line)
            link = idle.pop() if idle else None
        return (connect(line), False) if link is None else (link, True)

    def give(self, line: RpcAddress, link: socket.socket) -> None:
        with self._lock:
            if self._newest != line:  # another application runs now: its worker shouldn't hold the last one's
                self._newest = line
                for old in [each for each in self._idle if each != line]:
                    for stale in self._idle.pop(old):
                        stale.close()
            self._idle.setdefault(line, []).append(link)

    def close(self) -> None:
        """Close all that are idle."""
        with self._lock:
            links = [link for each in self._idle.values() for link in each]
            self._idle.clear()
        for link in links:
            link.close()

    def _check(self) -> None:
        if self._pid != os.getpid():  # forked in a way that Python didn't see
            self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        for links in self._idle.values():
            for link in links:
                link.close()  # our copy alone: the parent's stays open
        self._idle = {}
        self._newest = None
        self._pid = os.getpid()


_connections = _Connections()


def close_idle() -> None:
    """Close the connections which this process keeps."""
    _connections.close()
