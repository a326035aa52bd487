"""The driver's end of the RPC."""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from secrets import token_bytes
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from kohort.spark.epoch import DEAD_SCHEMA, EpochInput, OffsetRange
from kohort.spark.executor_rpc.errors import RpcError
from kohort.spark.executor_rpc.frames import (
    MAGIC,
    TOKEN_BYTES,
    from_ipc,
    receive_exactly,
    receive_frame,
    send_frame,
    to_ipc,
)
from kohort.spark.executor_rpc.messages import (
    LOOKUP_KEYS,
    LOOKUP_VALUES,
    SCAN_RANGES,
    SCANNED_ROWS,
    STORE_WRITES,
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
from kohort.spark.executor_rpc.splits import ahead_of, positions_of, ranges_of_split
from kohort.spark.executor_rpc.strangers import Strangers
from kohort.spark.executor_rpc.tls import DriverTls
from kohort.spark.runs import runs_of
from kohort.spark.state import ScannedRanges

Lookup = Callable[[str, int | None, pa.BinaryArray], pa.BinaryArray]
"""Returns the values of keys: (store, partition or None for a global store, keys) -> values, null where
there is none. Called from several threads at once."""

Neighbours = Sequence[bytes | None]
Scan = Callable[[str, int, Sequence[bytes], Sequence[bytes], int, Neighbours, Neighbours], ScannedRanges]
"""Returns the rows of ranges: (store, partition, starts, ends, most bytes) -> rows. Called as `Lookup`."""

Fetch = Callable[[Sequence[OffsetRange]], pa.RecordBatch]
"""Returns the records of ranges (`FETCHED_RECORDS`), in their order. Called from several threads at once."""

_GREETING_S: Final = 5.0
_MAX_UNAUTHENTICATED: Final = 64
_KEYS_AT_ONCE: Final = 16_384
_FEW_KEYS: Final = 1_024
_RESPONSE_BYTES: Final = 64 * 1024 * 1024
"""Looks up `_KEYS_AT_ONCE` keys at a time, store by store, until their values have so many bytes; a few at a time where
those are large. Records have at most 1 MiB unless brokers are configured otherwise, so a response has little more than
1 GiB."""
_GLOBAL: Final = -(2**31)
"""Stands for no partition."""

_log = logging.getLogger(__name__)
_requests = msgspec.json.Decoder(Request)
_responses = msgspec.json.Encoder()


class _Epoch:
    """The epoch of a subtopology that runs, and the reports of its stages."""

    def __init__(self, run: int, epoch_input: EpochInput) -> None:
        self.run = run
        self.input = epoch_input
        self.reports: dict[tuple[int, str, int], tuple[ReportRequest, pa.RecordBatch | None]] = {}
        self.writes: dict[tuple[str, int, int, int], pa.RecordBatch] = {}  # by store, branch, split, piece
        self.kept: dict[tuple[str, int], bytes] = {}  # by processor and partition


class RpcServer:
    """Tells executors what to read and what stores have, and collects their reports.

    Each connection has a thread. A client has a few seconds to send the token, and may send nothing else before;
    anything else closes its connection, affects no other, and is logged.

    Args:
        lookup, scan: read stores.
        host: the address to listen on, which executors must reach: the Spark driver's on a cluster.
        advertised: the host that executors connect to, where it differs.
        tls: certificates of the run, for connections that leave this machine; None for none.
        secrets: passwords that executors need to read, by their names in `ClientConfig`.
        fetch: has the records of topics, where there are no brokers that executors could fetch them from.

    Attributes:
        address: where executors connect to.
        token, handover: what they need for that; see `kohort.spark.executor_rpc.client.RpcAddress`.

    Raises:
        OSError: the address can't be listened on.
    """

    def __init__(
        self,
        lookup: Lookup,
        host: str = "127.0.0.1",
        *,
        advertised: str | None = None,
        tls: DriverTls | None = None,
        secrets: Mapping[str, str] | None = None,
        scan: Scan | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self._lookup, self._scan, self._fetch = lookup, scan, fetch
        self._tls = None if tls is None else tls.context
        self._secrets = dict(secrets or {})
        self._strangers = Strangers()
        self.handover = b"" if tls is None else tls.handover
        self.token = token_bytes(TOKEN_BYTES)
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(_cores())  # more lookups at once would wait for each other
        self._at_once: dict[str, int] = {}
        self._runs = 0
        self._epochs: dict[str, _Epoch] = {}
        self._connections: set[socket.socket] = set()
        self._unauthenticated: dict[socket.socket, None] = {}
        self._closed = False
        self._listener = socket.create_server((host, 0), backlog=128)
        self.address: tuple[str, int] = (advertised or host, self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, name="kohort-rpc", daemon=True)
        self._thread.start()

    def begin_epoch(self, subtopology: str, epoch_input: EpochInput) -> int:
        """Begins an epoch of a subtopology, in place of one that runs. Returns the run's number, which reports name."""
        with self._lock:
            self._runs += 1
            self._epochs[subtopology] = _Epoch(self._runs, epoch_input)
            return self._runs

    def end_epoch(self, subtopology: str, run: int) -> list[tuple[ReportRequest, pa.RecordBatch | None]]:
        """Ends a run, and returns its reports, each with its unreadable records (`DEAD_SCHEMA`), if any.

        Returns none if another epoch of the subtopology has begun.
        """
        with self._lock:
            epoch = self._epochs.get(subtopology)
            if epoch is None or epoch.run != run:
                return []
            del self._epochs[subtopology]
            return [epoch.reports[name] for name in sorted(epoch.reports)]

    def store_writes(self, subtopology: str, run: int) -> dict[str, pa.Table]:
        """What the stages of a run have written to stores (`STORE_WRITES`), by store.

        Of branches that have a processor in common one's count: the first's, which ran it.
        """
        with self._lock:
            epoch = self._epochs.get(subtopology)
            writes = {} if epoch is None or epoch.run != run else dict(epoch.writes)
        of: dict[str, list[pa.RecordBatch]] = {}
        branches: dict[str, int] = {}
        for store, branch, split, piece in sorted(writes):
            if branches.setdefault(store, branch) == branch:
                of.setdefault(store, []).append(writes[store, branch, split, piece])
        return {store: pa.Table.from_batches(batches, STORE_WRITES) for store, batches in of.items()}

    def close(self) -> None:
        """Stops listening, and closes all connections."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        _shut_down(self._listener)  # a close alone doesn't wake accept()
        self._listener.close()
        for connection in connections:
            _shut_down(connection)
        self._thread.join(5)

    def __enter__(self) -> RpcServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._listener.accept()
            except OSError as error:
                if self._closed:
                    return
                _log.warning("the RPC server could not accept a connection: %s", error)
                threading.Event().wait(0.1)  # out of file descriptors, for instance: others may be closed
                continue
            if self._tls is not None:
                try:
                    connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                except OSError as error:  # the client has gone already
                    self._strangers.tell(peer, error)
                    continue
            with self._lock:
                if self._closed:
                    connection.close()
                    continue
                if len(self._unauthenticated) >= _MAX_UNAUTHENTICATED:  # executors are quick: the oldest isn't one
                    oldest = next(iter(self._unauthenticated))
                    del self._unauthenticated[oldest]
                    _shut_down(oldest)
                self._unauthenticated[connection] = None
                self._connections.add(connection)
            try:
                threading.Thread(
                    target=self._serve, args=(connection, peer), name="kohort-rpc-connection", daemon=True
                ).start()
            except RuntimeError:  # no thread can be started
                with self._lock:
                    self._unauthenticated.pop(connection, None)
                    self._connections.discard(connection)
                connection.close()

    def _serve(self, connection: socket.socket, peer: object) -> None:
        try:
            with connection:
                if self._authenticate(connection, peer):
                    connection.settimeout(None)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    while True:
                        header, body = receive_frame(connection)
                        response, out = self._respond(header, body)
                        send_frame(connection, _responses.encode(response), out)
        except (RpcError, OSError) as error:
            _log.debug("connection of %s: %s", peer, error)
        except Exception:
            _log.exception("connection of %s", peer)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _authenticate(self, connection: socket.socket, peer: object) -> bool:
        """Whether it is somebody with the run's certificate, where there is TLS, and with its token."""
        try:
            connection.settimeout(_GREETING_S)
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
            greeting = receive_exactly(connection, len(MAGIC) + TOKEN_BYTES)
            if not hmac.compare_digest(bytes(greeting), MAGIC + self.token):
                raise RpcError("a wrong token")
            connection.sendall(MAGIC)
            return True
        except (RpcError, OSError) as error:
            if not self._closed:
                self._strangers.tell(peer, error)
            return False
        finally:
            with self._lock:
                self._unauthenticated.pop(connection, None)

    def _respond(self, header: bytes, body: bytearray) -> tuple[Response, bytes | pa.Buffer]:
        try:
            request: Request = _requests.decode(header)
            match request:
                case InputRequest():
                    return self._input(request)
                case LookupRequest():
                    return LookupResponse(), self._values(request, body)
                case ScanRequest():
                    return self._scanned(request, body)
                case WritesRequest():
                    return self._add_writes(request, body), b""
                case KeepRequest():
                    return self._keep(request, body), b""
                case KeptRequest():
                    return self._kept(request)
                case ReportRequest():
                    return self._add_report(request, body), b""
        except (RpcError, msgspec.MsgspecError) as error:
            return ErrorResponse(str(error)), b""
        except Exception as error:  # a store that fails, for instance: the executor's task fails with this error
            _log.exception("a request of an executor failed")
            return ErrorResponse(f"{type(error).__name__}: {error}"), b""

    def _input(self, request: InputRequest) -> tuple[InputResponse, bytes | pa.Buffer]:
        with self._lock:
            epoch = self._epochs.get(request.subtopology)
        if epoch is None:
            raise RpcError(f"no epoch of subtopology {request.subtopology} runs: it is over")
        if not 0 <= request.split < request.splits:
            raise RpcError(f"split {request.split} of {request.splits}")
        ranges = ranges_of_split(
            epoch.input.ranges, request.split, request.splits, whole_partitions=request.whole_partitions
        )
        if request.topic:
            ranges = [each for each in ranges if each.topic == request.topic]
        response = InputResponse(
            epoch.run,
            [(each.topic, each.partition, each.start, each.end) for each in ranges],
            dict(epoch.input.stream_times),
            epoch.input.partitions,
            {branch: (each.partitions, dict(each.stream_times)) for branch, each in epoch.input.mergers.items()},
            self._secrets,
            positions_of(epoch.input.ranges),
            epoch.input.now,
            ahead_of(epoch.input.ranges, request.topic) if request.topic else {},
        )
        return response, b"" if self._fetch is None else to_ipc(self._fetch(ranges))

    def _values(self, request: LookupRequest, body: bytearray) -> pa.Buffer:
        batch = from_ipc(body, LOOKUP_KEYS)
        found: list[pa.Array] = []
        start = size = 0
        at_once = self._at_once.get(request.store, _KEYS_AT_ONCE)
        while start < len(batch) and size < _RESPONSE_BYTES:
            some = batch.slice(start, at_once)
            with self._turns:
                values = self._looked_up(request.store, some.column(0), some.column(1))
            if values is None:
                at_once = self._at_once[request.store] = _FEW_KEYS
            else:
                found.append(values)
                size += values.nbytes
                start += len(some)
        values = pa.concat_arrays(found) if found else pa.array([], pa.binary())
        return to_ipc(pa.RecordBatch.from_arrays([values], schema=LOOKUP_VALUES))

    def _looked_up(self, store: str, partitions: pa.Array, keys: pa.Array) -> pa.Array | None:
        """The values of keys, in their order; None if more than a few are too large together."""
        order, runs = runs_of(partitions.fill_null(_GLOBAL).to_numpy())
        mine = keys if len(runs) == 1 else keys.take(pa.array(order))
        found, size = [], 0
        for number, start, end in runs:
            partition = None if number == _GLOBAL else number
            for first in range(start, end, _FEW_KEYS):
                if len(keys) > _FEW_KEYS and size >= _RESPONSE_BYTES:
                    return None
                some = mine.slice(first, min(_FEW_KEYS, end - first))
                found.append(self._lookup(store, partition, some))
                size += found[-1].nbytes
                if len(found[-1]) != len(some):
                    raise RpcError(f"{len(found[-1])} values were found for {len(some)} keys")
        values = pa.concat_arrays(found).cast(pa.binary())
        return values if len(runs) == 1 else values.take(pa.array(np.argsort(order)))

    def _scanned(self, request: ScanRequest, body: bytearray) -> tuple[ScanResponse, pa.Buffer]:
        if self._scan is None:
            raise RpcError(f"store {request.store} can't be scanned here")
        starts, ends, neighbours_from, neighbours_to = (
            column.to_pylist() for column in from_ipc(body, SCAN_RANGES).columns
        )
        most = min(_RESPONSE_BYTES, request.most_bytes or _RESPONSE_BYTES)
        with self._turns:
            found = self._scan(request.store, request.partition, starts, ends, most, neighbours_from, neighbours_to)
        rows = pa.RecordBatch.from_arrays([found.ranges, found.keys, found.values], schema=SCANNED_ROWS)
        return ScanResponse(found.rest), to_ipc(rows)

    def _add_writes(self, request: WritesRequest, body: bytearray) -> ReportResponse:
        writes = from_ipc(body, STORE_WRITES)
        with self._lock:
            epoch = self._epochs.get(request.subtopology)
            if epoch is None or epoch.run != request.run:
                return ReportResponse(False)
            if not request.piece:  # of a task that is tried again, which may have fewer pieces
                same = request.store, request.branch, request.split
                epoch.writes = {key: value for key, value in epoch.writes.items() if key[:3] != same}
            epoch.writes[request.store, request.branch, request.split, request.piece] = writes
        return ReportResponse(True)

    def _keep(self, request: KeepRequest, body: bytearray) -> ReportResponse:
        with self._lock:
            epoch = self._epochs.get(request.subtopology)
            if epoch is None or epoch.run != request.run:
                return ReportResponse(False)
            epoch.kept[request.processor, request.partition] = bytes(body)
        return ReportResponse(True)

    def _kept(self, request: KeptRequest) -> tuple[ReportResponse, bytes]:
        with self._lock:
            epoch = self._epochs.get(request.subtopology)
            found = None if epoch is None or epoch.run != request.run else epoch.kept
        kept = b"" if found is None else found.get((request.processor, request.partition), b"")
        return ReportResponse(bool(kept)), kept

    def _add_report(self, request: ReportRequest, body: bytearray) -> ReportResponse:
        dead = from_ipc(body, DEAD_SCHEMA) if body else None
        if request.read is not None:
            read = replace(request.read, ended=time.time(), branch=request.branch)
            request = msgspec.structs.replace(request, read=read)
        with self._lock:
            epoch = self._epochs.get(request.subtopology)
            if epoch is None or epoch.run != request.run:
                return ReportResponse(False)
            epoch.reports[(request.branch, request.stage, request.split)] = (request, dead)
        return ReportResponse(True)


def _cores() -> int:
    """That this process may use, as far as the system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        connection.shutdown(socket.SHUT_RDWR)
