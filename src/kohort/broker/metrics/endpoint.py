"""A small HTTP server with metrics for Prometheus, and checks of health and readiness."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.broker.audit import Audit
from kohort.broker.config.listeners import Endpoint
from kohort.broker.descriptors import refusal
from kohort.broker.newcomers import Newcomers
from kohort.broker.refusal import Refusal
from kohort.broker.tls_acceptor import TlsAcceptor
from kohort.http_access import CHALLENGE, LOOPBACK, OPEN, HttpAccess, warn_if_exposed

if TYPE_CHECKING:
    from kohort.broker.metrics.exposition import Exposition
    from kohort.broker.metrics.sources import MetricSources

log = logging.getLogger("kohort.broker.metrics")

MAX_HEADER: Final = 16 * 1024
"""Bytes of the longest request."""

TIMEOUT_SECONDS: Final = 10
"""Time for a client's TLS handshake, and again to send its request and read the response."""

MAX_CONNECTIONS: Final = 64
"""At a time; one more costs the oldest its connection."""

MAX_HANDSHAKES: Final = 256
"""Connections with TLS that haven't finished their handshake; one more is closed."""

_TEXT: Final = "text/plain; charset=utf-8"
_UNAUTHORIZED: Final = "401 Unauthorized"
_UNAVAILABLE: Final = "503 Service Unavailable"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPort(NamedTuple):
    """Where metrics are served, and who may ask.

    Attributes:
        host, port: the address to listen on; "" is this machine's loopback, port 0 a free one.
        access: who may ask.
    """

    host: str
    port: int
    access: HttpAccess = OPEN

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host or LOOPBACK, self.port)


class MetricsEndpoint:
    """Serves GET /metrics, /healthz and /readyz, in the broker's event loop.

    The token is asked for /metrics alone: checks that say no more than "ok", or what is waited for, give nothing away.

    Args:
        host, port, access: as in `MetricsPort`.
        unready: returns why clients aren't served; None if they are.
    """

    def __init__(
        self,
        sources: MetricSources,
        host: str,
        port: int,
        access: HttpAccess = OPEN,
        *,
        unready: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._unready = unready
        self._sources = sources
        self._host = host or LOOPBACK
        self._access = access
        self._open: dict[asyncio.StreamWriter, None] = {}
        self._server: asyncio.Server | None = None
        self._acceptor: TlsAcceptor | None = None
        self._newcomers = Newcomers(MAX_CONNECTIONS)
        self._audit = Audit()
        self._exposition: asyncio.Future[Exposition] | None = None
        self.port = port

    async def start(self) -> None:
        """Listens; for port 0, `port` is the free one that was taken.

        Raises:
            OSError: the address is in use, or can't be used.
        """
        tls, loop = self._access.server, asyncio.get_running_loop()
        self._server = await loop.create_server(self._conversation, self._host, self.port, start_serving=tls is None)
        if tls is not None:
            sockets = [socket.socket(fileno=os.dup(each.fileno())) for each in self._server.sockets]
            self._acceptor = TlsAcceptor(
                sockets, lambda: tls, self._conversation, self._admit, _left, self._newcomers, self._audit
            )
            self._acceptor.start(MAX_CONNECTIONS)
        warn_if_exposed("/metrics", self._host, self._access, "--metrics-token-file or --metrics-cafile")
        self.port = self._server.sockets[0].getsockname()[1]
        # Prometheus' library is slow to load, so it is loaded in a thread.
        self._exposition = asyncio.ensure_future(asyncio.to_thread(_load, self._sources))

    async def stop(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        if self._server is not None:
            self._server.close()
        if self._exposition is not None:
            await asyncio.wait([self._exposition])

    def _conversation(self) -> asyncio.Protocol:
        reader = asyncio.StreamReader(MAX_HEADER)
        return asyncio.StreamReaderProtocol(reader, self._serve)

    def _admit(self, host: str, descriptor: int) -> Refusal | None:
        if len(self._newcomers) >= MAX_HANDSHAKES:
            return Refusal(f"{MAX_HANDSHAKES} handshakes with the port of metrics are unfinished")
        reason = refusal(descriptor)
        return None if reason is None else Refusal(reason)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            next(iter(self._open)).transport.abort()
        self._open[writer] = None
        try:
            await asyncio.wait_for(self._converse(reader, writer), TIMEOUT_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError):
            writer.transport.abort()  # the client went away, isn't one, or doesn't read: nothing is kept for it
        else:
            writer.close()
        finally:
            self._open.pop(writer)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *headers = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        request = first.split(b" ")
        status, kind, body = await self._answer(request, self._access.allows(_header(headers, b"authorization")))
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        if status == _UNAUTHORIZED:
            head += f"WWW-Authenticate: {CHALLENGE}\r\n"
        writer.write(head.encode() + b"\r\n" + (b"" if request[0] == b"HEAD" else body))
        await writer.drain()

    async def _answer(self, request: list[bytes], allowed: bool) -> tuple[str, str, bytes]:
        """Returns status, content type and body for the words of a request line."""
        if len(request) != 3 or not request[2].startswith(b"HTTP/1."):
            return "400 Bad Request", _TEXT, b"not HTTP/1\n"
        if request[0] not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed", _TEXT, b"only GET and HEAD\n"
        match request[1].split(b"?", 1)[0]:
            case b"/healthz":
                return "200 OK", _TEXT, b"ok\n"
            case b"/readyz":
                reason = self._unready()
                return ("200 OK", _TEXT, b"ok\n") if reason is None else (_UNAVAILABLE, _TEXT, f"{reason}\n".encode())
            case b"/metrics" if not allowed:
                return _UNAUTHORIZED, _TEXT, b"a token is needed, in the header Authorization: Bearer TOKEN\n"
            case b"/metrics":
                assert self._exposition is not None
                try:
                    return "200 OK", _METRICS, await (await asyncio.shield(self._exposition)).text()
                except Exception:
                    log.exception("metrics could not be collected")
                    return "500 Internal Server Error", _TEXT, b"metrics could not be collected; see the log\n"
            case _:
                return "404 Not Found", _TEXT, b"/metrics, /healthz and /readyz are all there is\n"


def _left(host: str) -> None:
    """Nobody counts connections to this port by their addresses."""


def _header(lines: list[bytes], name: bytes) -> bytes | None:
    """The value of a header's first line; None without one."""
    for line in lines:
        found, _, value = line.partition(b":")
        if found.lower() == name:
            return value.strip()
    return None


def _load(sources: MetricSources) -> Exposition:
    from kohort.broker.metrics.exposition import Exposition

    return Exposition(sources)
