"""Serves HTTP on a port of its own, to a bounded number of connections, of which each says soon what it wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from kohort.http_access import HttpAccess
from kohort.spark.queries.listening_sockets import listening_sockets

MAX_CONNECTIONS: Final = 256
"""At a time. One more costs the oldest that has sent no request its connection, or is closed where there is none."""

FIRST_REQUEST_S: Final = 10.0
"""Time for a new connection to send a whole request."""

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


class BoundedServer:
    """Serves over HTTP in an event loop.

    Args:
        handler: answers a request.
        host, port: where it listens, as in `listening_sockets`.
        access: the TLS of the port. Who may ask is for the handler to say.
        options: of aiohttp's server.
    """

    def __init__(self, handler: Handler, host: str, port: int, access: HttpAccess, **options: Any) -> None:
        self._handler = handler
        self._address = (host, port)
        self._access = access
        self._options = options
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            OSError: the port is in use, or may not be listened on.
        """
        # Keys may be any bytes, so aiohttp's router, which matches text, isn't used.
        server = _Connections(self._handler, access_log=None, **self._options)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        for each in await listening_sockets(*self._address):
            await web.SockSite(self._runner, each, ssl_context=self._access.server).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._runner is not None, "the server isn't started"
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Stops; requests in progress have a second to end. May be called twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()


class _Connections(web.Server):
    """Closes connections that send no whole request in time, and those that are too many."""

    def __init__(self, handler: Handler, **options: Any) -> None:
        super().__init__(self._heard, **options)
        self._answer = handler
        self._silent: dict[web.RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > MAX_CONNECTIONS:
            next(iter(self._silent.values()), transport).abort()
        self._silent[handler] = transport
        asyncio.get_running_loop().call_later(FIRST_REQUEST_S, self._abort_silent, handler)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._silent.pop(handler, None)
        super().connection_lost(handler, exc)

    async def _heard(self, request: web.BaseRequest) -> web.Response:
        self._silent.pop(request.protocol, None)
        return await self._answer(request)

    def _abort_silent(self, handler: web.RequestHandler) -> None:
        if (transport := self._silent.pop(handler, None)) is not None:
            transport.abort()


def metrics_page(text: bytes) -> web.Response:
    """Metrics in Prometheus' text format."""
    response = web.Response(body=text, charset="utf-8")
    response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8"
    return response
