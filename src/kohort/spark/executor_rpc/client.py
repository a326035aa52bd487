"""The executors' end of the RPC, with connections that a Python worker keeps from task to task."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics, Mergers, OffsetRange
from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import MAGIC, from_ipc, receive_exactly, receive_frame, send_frame, to_ipc
from kohort.spark.executor_rpc.messages import (
    FETCHED_RECORDS,
    LOOKUP_KEYS,
    LOOKUP_VALUES,
    SCAN_RANGES,
    SCANNED_ROWS,
    ErrorResponse,
    InputRequest,
    InputResponse,
    KeepRequest,
    KeptRequest,
    LookupRequest,
    LookupResponse,
    ReportRequest,
    ReportResponse,
    Request,
    Response,
    ScanRequest,
    ScanResponse,
    WritesRequest,
)
from kohort.spark.executor_rpc.tls import connected, executor_context

_CONNECT_S: Final = 10.0
_RESPONSE_S: Final = 120.0
_KEYS_AT_ONCE: Final = 65_536
_RANGES_AT_ONCE: Final = 16_384
_ROWS_AT_ONCE: Final = 65_536

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Response)

_ResponseType = TypeVar("_ResponseType", InputResponse, LookupResponse, ScanResponse, ReportResponse)


@dataclass(frozen=True)
class SplitInput:
    """What a split reads: offset ranges in order, and what it needs beside them; as in `InputResponse`.

    Attributes:
        records: those of the ranges (`FETCHED_RECORDS`), where the driver has them; None: brokers do.
    """

    run: int
    ranges: tuple[OffsetRange, ...]
    stream_times: Mapping[int, int]
    partitions: int = 0
    mergers: Mapping[int, Mergers] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    records: pa.RecordBatch | None = field(default=None, repr=False)
    positions: Mapping[int, int] = field(default_factory=dict)
    now: int = 0
    ahead: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RpcAddress:
    """Where the driver is, its token, and what TLS needs (`DriverTls.handover`; b"" without TLS).

    Small and picklable: Spark sends it to executors with its functions.

    All methods raise `RpcError` if the driver can't be reached or can't answer.
    """

    address: tuple[str, int]
    token: bytes = field(repr=False)
    handover: bytes = field(default=b"", repr=False)

    def request_input(
        self, subtopology: str, split: int, splits: int, *, whole_partitions: bool = False, topic: str = ""
    ) -> SplitInput:
        """What split `split` of `splits` reads of the epoch that runs; as in `InputRequest`."""
        request = InputRequest(subtopology, split, splits, whole_partitions, topic)
        response, body = self._request(request, InputResponse)
        ranges = tuple(OffsetRange(*each) for each in response.ranges)
        mergers = {branch: Mergers(*each) for branch, each in response.mergers.items()}
        records = from_ipc(body, FETCHED_RECORDS) if body else None
        return SplitInput(
            response.run,
            ranges,
            response.stream_times,
            response.partitions,
            mergers,
            response.secrets,
            records,
            response.positions,
            response.now,
            response.ahead,
        )

    def lookup(self, store: str, partitions: pa.Array | None, keys: pa.Array) -> pa.Array:
        """The values of keys, in their order, null where the store has none. No partitions: of a global store."""
        if partitions is None:
            partitions = pa.nulls(len(keys), pa.int32())
        batch = pa.RecordBatch.from_arrays([partitions.cast(pa.int32()), keys.cast(pa.binary())], schema=LOOKUP_KEYS)
        found: list[pa.Array] = []
        start = 0
        while start < len(batch):
            some = batch.slice(start, _KEYS_AT_ONCE)
            _, body = self._request(LookupRequest(store), LookupResponse, to_ipc(some))
            values = from_ipc(body, LOOKUP_VALUES).column(0)
            if not 0 < len(values) <= len(some):
                raise RpcError(f"the driver answered {len(values)} values for {len(some)} keys")
            found.append(values)
            start += len(values)
        return pa.concat_arrays(found) if found else pa.array([], pa.binary())

    def scan(
        self,
        store: str,
        partition: int,
        starts: pa.Array,
        ends: pa.Array,
        most_bytes: int | None = None,
        neighbours_from: pa.Array | None = None,
        neighbours_to: pa.Array | None = None,
    ) -> pa.Table:
        """The rows of ranges of keys (`SCANNED_ROWS`), each from its start (included) to its end (not included).

        Args:
            most_bytes: about how much of them, from the first on, in one response; None: all.
            neighbours_from: of each range, from which key on the row before it is given, too; None for none.
            neighbours_to: of each range, up to which key (not included) the row after it is given, too; None for none.
        """
        none = pa.nulls(len(starts))
        columns = [starts, ends, *(none if each is None else each for each in (neighbours_from, neighbours_to))]
        ranges = pa.RecordBatch.from_arrays([each.cast(pa.binary()) for each in columns], schema=SCAN_RANGES)
        found: list[pa.RecordBatch] = []
        done = 0
        begun: dict[str, bytes | None] | None = None
        while done < len(ranges):
            some = ranges.slice(done, _RANGES_AT_ONCE)
            if begun is not None:
                some = _first_replaced(some, begun)
                begun = None
            response, body = self._request(ScanRequest(store, partition, most_bytes), ScanResponse, to_ipc(some))
            rows = from_ipc(body, SCANNED_ROWS)
            numbers = pc.add(rows.column(0), pa.scalar(done, pa.int32()))
            found.append(pa.RecordBatch.from_arrays([numbers, *rows.columns[1:]], schema=SCANNED_ROWS))
            if most_bytes is not None:
                break
            if response.rest is None:
                done += len(some)
                continue
            more, key = response.rest
            if not 0 <= more < len(some):
                raise RpcError(f"the driver has answered up to range {more} of {len(some)}")
            done += more
            begun = some.slice(more, 1).to_pylist()[0] | {"start": key, "neighbours_from": None}  # which was given
        return pa.Table.from_batches(found, SCANNED_ROWS)

    def write(self, subtopology: str, run: int, branch: int, split: int, store: str, writes: pa.Table) -> bool:
        """Says what a stage writes to a store (`STORE_WRITES`). False: the run is over."""
        for piece, batch in enumerate(writes.to_batches(max_chunksize=_ROWS_AT_ONCE)):
            request = WritesRequest(subtopology, run, branch, split, store, piece)
            if not self._request(request, ReportResponse, to_ipc(batch))[0].accepted:
                return False
        return True

    def keep(self, subtopology: str, run: int, processor: str, partition: int, made: pa.RecordBatch) -> bool:
        """Keeps what a processor has made of a task's rows for the run's other branches. False: the run is over."""
        request = KeepRequest(subtopology, run, processor, partition)
        return self._request(request, ReportResponse, to_ipc(made))[0].accepted

    def kept(
        self, subtopology: str, run: int, processor: str, partition: int, schema: pa.Schema
    ) -> pa.RecordBatch | None:
        """What a branch has kept so; None if there is nothing."""
        _, body = self._request(KeptRequest(subtopology, run, processor, partition), ReportResponse)
        return from_ipc(body, schema) if body else None

    def report(self, subtopology: str, run: int, branch: int, split: int, stage: str, read: EpochStatistics) -> bool:
        """Reports what a stage did; a second report of the same replaces the first. False: the run is over."""
        request = ReportRequest(
            subtopology, run, branch, split, stage, read.records, read.bytes, read.reasons, read.late, read.max_times,
            next(iter(read.reads), None),
        )  # fmt: skip
        dead = read.dead.combine_chunks().to_batches()
        response, _ = self._request(request, ReportResponse, to_ipc(dead[0]) if dead else b"")
        return response.accepted

    def _request(
        self, request: Request, kind: type[_ResponseType], body: bytes | pa.Buffer = b""
    ) -> tuple[_ResponseType, bytearray]:
        header = _encoder.encode(request)
        connection, reused = _connections.take(self)
        try:
            try:
                head, out = _exchange(connection, header, body)
            except (OSError, RpcError):
                if not reused:
                    raise
                connection.close()  # the driver may have closed it while it was idle; every request may be repeated
                connection = connect(self)
                head, out = _exchange(connection, header, body)
            response = _decoder.decode(head)
        except (OSError, msgspec.MsgspecError) as error:
            connection.close()
            raise RpcError(
                f"the connection to the driver at {self.address[0]}:{self.address[1]} broke: {error}"
            ) from error
        except BaseException:
            connection.close()
            raise
        _connections.give(self, connection)
        if isinstance(response, ErrorResponse):
            raise RpcError(f"the driver could not answer: {response.error}")
        if not isinstance(response, kind):
            raise RpcError(f"the driver answered {type(response).__name__} to {type(request).__name__}")
        return response, out


def connect(driver: RpcAddress) -> socket.socket:
    """A new connection, authenticated.

    Raises:
        RpcError: no driver answers there, or it doesn't accept the token.
    """
    host, port = driver.address
    try:
        connection = socket.create_connection((host, port), _CONNECT_S)
    except OSError as error:
        raise RpcError(
            f"the driver can't be reached at {host}:{port} ({error}): executors need a way to the address "
            "that the driver listens on"
        ) from error
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if driver.handover:
            connection = connected(executor_context(driver.handover), connection)
        connection.sendall(MAGIC + driver.token)
        if receive_exactly(connection, len(MAGIC)) != MAGIC:
            raise RpcError(f"what answers at {host}:{port} isn't a driver of Kohort")
        connection.settimeout(_RESPONSE_S)
    except OSError as error:
        connection.close()
        raise RpcError(
            f"what answers at {host}:{port} isn't the driver of this run, or takes this process for a stranger: {error}"
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _first_replaced(ranges: pa.RecordBatch, first: Mapping[str, bytes | None]) -> pa.RecordBatch:
    """Ranges (`SCAN_RANGES`) with another first one."""
    columns = [
        pa.concat_arrays([pa.array([first[name]], pa.binary()), column.slice(1)])
        for name, column in zip(SCAN_RANGES.names, ranges.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCAN_RANGES)


def _exchange(connection: socket.socket, header: bytes, body: bytes | pa.Buffer) -> tuple[bytes, bytearray]:
    send_frame(connection, header, body)
    return receive_frame(connection)


class _Connections:
    """The idle connections of this process. A forked child starts with none: it can't share the parent's."""

    def __init__(self) -> None:
        self._idle: dict[RpcAddress, list[socket.socket]] = {}
        self._newest: RpcAddress | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self._forget)

    def take(self, driver: RpcAddress) -> tuple[socket.socket, bool]:
        """A connection, and whether it was used before."""
        self._check()
        with self._lock:
            idle = self._idle.get(driver)
            connection = idle.pop() if idle else None
        return (connect(driver), False) if connection is None else (connection, True)

    def give(self, driver: RpcAddress, connection: socket.socket) -> None:
        with self._lock:
            if self._newest != driver:  # another application runs now: the connections of the last one are closed
                self._newest = driver
                for old in [each for each in self._idle if each != driver]:
                    for stale in self._idle.pop(old):
                        stale.close()
            self._idle.setdefault(driver, []).append(connection)

    def close(self) -> None:
        with self._lock:
            connections = [connection for each in self._idle.values() for connection in each]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def _check(self) -> None:
        if self._pid != os.getpid():  # forked without Python's hooks
            self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        for connections in self._idle.values():
            for connection in connections:
                connection.close()  # closes this process' copy: the parent's stays open
        self._idle = {}
        self._newest = None
        self._pid = os.getpid()


_connections = _Connections()


def close_idle() -> None:
    """Closes the idle connections of this process."""
    _connections.close()
