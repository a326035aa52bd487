"""The driver's end of the line."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

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
from kohort.spark.executor_rpc.splits import ranges_of_split
from kohort.spark.jobs.epoch import DEAD_SCHEMA, EpochInput

Lookup = Callable[[str, int | None, pa.BinaryArray], pa.BinaryArray]
"""The values of a store's keys: (store, partition or None for a global store, keys) -> values, null where none is.
Called from several threads at once."""

_GREETING_S: Final = 5.0
_MAX_STRANGERS: Final = 64
_KEYS_AT_ONCE: Final = 1_024
_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Values of so many keys are looked up at once, until there are so many bytes: a record has 1 MiB unless brokers say
otherwise, so an answer has little more than 1 GiB at most."""

_log = logging.getLogger(__name__)
_requests = msgspec.json.Decoder(Request)
_answers = msgspec.json.Encoder()


class _Lane:
    """What one lane works on, and what was reported of it."""

    def __init__(self, run: int, work: EpochInput) -> None:
        self.run = run
        self.work = work
        self.reports: dict[tuple[int, str, int], tuple[ReportRequest, pa.RecordBatch | None]] = {}


class RpcServer:
    """Answers executors: what to read, what a store has; and takes their reports.

    A few threads serve, one a connection. A stranger has a few seconds to show the token, and may send no more than
    that; whatever else comes to the port closes that connection and harms no other.

    Args:
        lookup: prior values, see `Lookup`.
        host: the address to listen on, which executors must reach: the Spark driver's on a cluster.
        advertised: what executors connect to, where that differs.

    Raises:
        OSError: the address can't be listened on.
    """

    def __init__(self, lookup: Lookup, host: str = "127.0.0.1", *, advertised: str | None = None) -> None:
        self._lookup = lookup
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self._lock = threading.Lock()
        self._runs = 0
        self._lanes: dict[str, _Lane] = {}
        self._links: set[socket.socket] = set()
        self._strangers = 0
        self._closed = False
        self._listener = socket.create_server((host, 0), backlog=128)
        self.address: tuple[str, int] = (advertised or host, self._listener.getsockname()[1])
        """Where executors find it."""
        self._thread = threading.Thread(target=self._accept, name="kohort-line", daemon=True)
        self._thread.start()

    def set_work(self, lane: str, work: EpochInput) -> int:
        """From now on, this is what the lane works on. Returns the run's number, which reports must name."""
        with self._lock:
            self._runs += 1
            self._lanes[lane] = _Lane(self._runs, work)
            return self._runs

    def take_reports(self, lane: str, run: int) -> list[tuple[ReportRequest, pa.RecordBatch | None]]:
        """End a run, and take what was reported of it: each with its unreadable records (`DEAD_SCHEMA`), if any.

        Nothing, if the lane has gone on to another run.
        """
        with self._lock:
            current = self._lanes.get(lane)
            if current is None or current.run != run:
                return []
            del self._lanes[lane]
            return [current.reports[name] for name in sorted(current.reports)]

    def close(self) -> None:
        """Listen no more, and close all connections."""
        with self._lock:
            self._closed = True
            links = list(self._links)
        _shut(self._listener)  # a close alone doesn't wake accept()
        self._listener.close()
        for link in links:
            _shut(link)
        self._thread.join(5)

    def __enter__(self) -> RpcServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                link, peer = self._listener.accept()
            except OSError as error:
                if self._closed:
                    return
                _log.warning("the line could not take a connection: %s", error)
                threading.Event().wait(0.1)  # out of files, say: others may close some
                continue
            with self._lock:
                refused = self._closed or self._strangers >= _MAX_STRANGERS
                if not refused:
                    self._strangers += 1
                    self._links.add(link)
            if refused:
                link.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(link, peer), name="kohort-line-peer", daemon=True).start()
            except RuntimeError:  # no more threads
                with self._lock:
                    self._strangers -= 1
                    self._links.discard(link)
                link.close()

    def _serve(self, link: socket.socket, peer: object) -> None:
        try:
            with link:
                if self._greet(link):
                    link.settimeout(None)
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    while True:
                        header, body = receive_frame(link)
                        answer, out = self._answer(header, body)
                        send_frame(link, _answers.encode(answer), out)
        except (RpcError, OSError) as error:
            _log.debug("line to %s: %s", peer, error)
        except Exception:
            _log.exception("line to %s", peer)
        finally:
            with self._lock:
                self._links.discard(link)

    def _greet(self, link: socket.socket) -> bool:
        try:
            link.settimeout(_GREETING_S)
            said = receive_exactly(link, len(MAGIC) + TOKEN_BYTES)
            known = hmac.compare_digest(bytes(said), MAGIC + self.token)
            if known:
                link.sendall(MAGIC)
            return known
        finally:
            with self._lock:
                self._strangers -= 1

    def _answer(self, header: bytes, body: bytearray) -> tuple[Answer, bytes | pa.Buffer]:
        try:
            request: Request = _requests.decode(header)
            match request:
                case WorkRequest():
                    return self._work(request), b""
                case LookupRequest():
                    return LookupAnswer(), self._values(request, body)
                case ReportRequest():
                    return self._note(request, body), b""
        except (RpcError, msgspec.MsgspecError) as error:
            return ErrorAnswer(str(error)), b""
        except Exception as error:  # a store that fails, say: the executor's task fails with it, and says why
            _log.exception("a request on the line failed")
            return ErrorAnswer(f"{type(error).__name__}: {error}"), b""

    def _work(self, request: WorkRequest) -> WorkAnswer:
        with self._lock:
            lane = self._lanes.get(request.lane)
        if lane is None:
            raise RpcError(f"lane {request.lane} has no work: its run is over")
        if not 0 <= request.split < request.splits:
            raise RpcError(f"split {request.split} of {request.splits}")
        mine = ranges_of_split(lane.work.ranges, request.split, request.splits, whole=request.whole)
        return WorkAnswer(
            lane.run,
            [(each.topic, each.partition, each.start, each.end) for each in mine],
            dict(lane.work.stream_times),
            lane.work.partitions,
        )

    def _values(self, request: LookupRequest, body: bytearray) -> pa.Buffer:
        asked = from_ipc(body, LOOKUP_KEYS)
        found: list[pa.Array] = []
        start = size = 0
        while start < len(asked) and size < _ANSWER_BYTES:
            some = asked.slice(start, _KEYS_AT_ONCE)
            found.append(self._found(request.store, some.column(0), some.column(1)))
            size += found[-1].nbytes
            start += len(some)
        values = pa.concat_arrays(found) if found else pa.array([], pa.binary())
        return to_ipc(pa.RecordBatch.from_arrays([values], schema=LOOKUP_VALUES))

    def _found(self, store: str, partitions: pa.Array, keys: pa.Array) -> pa.Array:
        places, found = [], []
        for partition in pc.unique(partitions).to_pylist():
            mine = pc.is_null(partitions) if partition is None else pc.equal(partitions, partition)
            rows = pc.indices_nonzero(pc.fill_null(mine, False))
            places.append(rows)
            found.append(self._lookup(store, partition, keys if len(rows) == len(keys) else keys.take(rows)))
        return _in_order(places, found, len(keys))

    def _note(self, request: ReportRequest, body: bytearray) -> ReportAnswer:
        dead = from_ipc(body, DEAD_SCHEMA) if body else None
        with self._lock:
            lane = self._lanes.get(request.lane)
            noted = lane is not None and lane.run == request.run
            if lane is not None and noted:
                lane.reports[(request.branch, request.stage, request.split)] = (request, dead)
        return ReportAnswer(noted)


def _in_order(places: list[pa.Array], found: list[pa.Array], total: int) -> pa.Array:
    """Values found partition by partition, in the order in which they were asked for."""
    if len(found) == 1:
        values = found[0]
    else:
        values = pa.concat_arrays(found) if found else pa.array([], pa.binary())
        if places:
            values = values.take(pc.sort_indices(pa.concat_arrays(places)))
    if len(values) != total:
        raise RpcError(f"{len(values)} values were found for {total} keys")
    return values.cast(pa.binary())


def _shut(link: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        link.shutdown(socket.SHUT_RDWR)
