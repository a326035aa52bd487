"""A small HTTP server with metrics for Prometheus, and a health check."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.broker.metrics.exposition import Exposition
    from kohort.broker.metrics.sources import MetricSources

log = logging.getLogger("kohort.broker.metrics")

MAX_HEADER: Final = 16 * 1024
"""Bytes of the longest request."""

TIMEOUT_SECONDS: Final = 10
"""Time for a client to send its request and read the response."""

_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsEndpoint:
    """Serves GET /metrics and GET /healthz, in the broker's event loop.

    Args:
        host, port: the address to listen on; port 0 takes a free one.
    """

    def __init__(self, sources: MetricSources, host: str, port: int) -> None:
        self._sources = sources
        self._host = host
        self._server: asyncio.Server | None = None
        self._exposition: asyncio.Future[Exposition] | None = None
        self.port = port

    async def start(self) -> None:
        """Listens; for port 0, `port` is the free one that was taken.

        Raises:
            OSError: the address is in use, or can't be used.
        """
        self._server = await asyncio.start_server(self._serve, self._host, self.port, limit=MAX_HEADER)
        self.port = self._server.sockets[0].getsockname()[1]
        # Prometheus' library is slow to load, so it is loaded in a thread.
        self._exposition = asyncio.ensure_future(asyncio.to_thread(_load, self._sources))

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._exposition is not None:
            await asyncio.wait([self._exposition])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.wait_for(self._converse(reader, writer), TIMEOUT_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            pass  # the client went away, or isn't one
        finally:
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].split(b" ")
        status, kind, body = await self._answer(request)
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + (b"" if request[0] == b"HEAD" else body))
        await writer.drain()

    async def _answer(self, request: list[bytes]) -> tuple[str, str, bytes]:
        """Returns status, content type and body for the words of a request line."""
        if len(request) != 3 or not request[2].startswith(b"HTTP/1."):
            return "400 Bad Request", _TEXT, b"not HTTP/1\n"
        if request[0] not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed", _TEXT, b"only GET and HEAD\n"
        match request[1].split(b"?", 1)[0]:
            case b"/healthz":
                return "200 OK", _TEXT, b"ok\n"
            case b"/metrics":
                assert self._exposition is not None
                try:
                    return "200 OK", _METRICS, (await asyncio.shield(self._exposition)).text()
                except Exception:
                    log.exception("metrics could not be collected")
                    return "500 Internal Server Error", _TEXT, b"metrics could not be collected; see the log\n"
            case _:
                return "404 Not Found", _TEXT, b"/metrics and /healthz are all there is\n"


def _load(sources: MetricSources) -> Exposition:
    from kohort.broker.metrics.exposition import Exposition

    return Exposition(sources)
