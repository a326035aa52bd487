"""The server: a listening socket, its connections, start and stop."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from kohort.broker.authorizer import Authorizer
from kohort.broker.bound import Bound
from kohort.broker.broker import Broker, now_ms
from kohort.broker.config import Settings
from kohort.broker.config.listeners import Endpoint
from kohort.broker.connection import Connection
from kohort.broker.descriptors import refusal
from kohort.broker.dispatch import Dispatcher
from kohort.broker.metrics import MetricsEndpoint
from kohort.broker.request_memory import RequestMemory

log = logging.getLogger("kohort.broker.server")

BACKLOG: Final = 1024
"""Connections that the kernel queues until they are accepted."""

UNREAD_BYTES: Final = 256 * 1024 * 1024
"""Bytes of answers that clients may leave unread, in all."""

DRAIN_SECONDS: Final = 10
"""How long a stopping server waits for current requests; not for long polls."""


class Server:
    """Serves one broker on one address.

    Args:
        host, port: the address to listen on; port 0 takes a free one.
        advertised: host and port that clients connect to, if they differ from the listener's.
        metrics: host and port of the Prometheus endpoint; None for none.
        durable: whether appends are synced to the disk before they are acknowledged.
        authorizer: decides which operations are allowed; None allows all.

    Raises:
        OSError: the directory can't be used, or another server uses it.
        ConfigError: the directory belongs to another node.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        data_dir: Path,
        host: str,
        port: int,
        advertised: tuple[str, int] | None = None,
        metrics: tuple[str, int] | None = None,
        durable: bool = False,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.now = now_ms
        self.broker = Broker.build(settings, data_dir=data_dir, durable=durable, authorizer=authorizer)
        self.dispatcher = Dispatcher(self.broker)
        self.max_frame = settings.int("socket.request.max.bytes")
        self._idle_seconds = settings.int("connections.max.idle.ms") / 1000
        self._advertises = advertised is not None
        self.advertised = Endpoint(*(advertised or (_advertised_host(host), port)))
        self._metrics = None if metrics is None else MetricsEndpoint(self.broker.metric_sources, *metrics)
        self.memory = RequestMemory(settings.int("queued.max.request.bytes"))
        self._unread: Bound[Connection] = Bound(UNREAD_BYTES)
        self._connections: dict[Connection, None] = {}
        self._per_ip: dict[str, int] = {}
        self._listening: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._started = False
        self._stopping = False

    @property
    def metrics_port(self) -> int | None:
        return None if self._metrics is None else self._metrics.port

    async def start(self) -> None:
        """Listens, recovers the data directory, and accepts connections.

        Raises:
            OSError: the address is in use, or can't be used.
        """
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                lambda: Connection(self), self.host, self.port, backlog=BACKLOG, start_serving=False
            )
            self.port = self._listening.sockets[0].getsockname()[1]
            if not self._advertises:
                self.advertised = self.advertised._replace(port=self.port)
            if self._metrics is not None:
                await self._metrics.start()
            await self.broker.start()
            await self._listening.start_serving()
        except BaseException:
            await self.stop()
            raise
        self._started = True
        if self._idle_seconds > 0:
            self._close_idle()
        if not self._advertises and _is_wildcard(self.host):
            log.warning(
                "clients on other machines will connect to host=%s: if they can't, set --advertise",
                self.advertised.host,
            )
        if self.broker.config.int("default.replication.factor") > 1:
            log.warning(
                "topics need a replication factor of 1 here, but default.replication.factor=%d: they are created only "
                "where a client asks for 1",
                self.broker.config.int("default.replication.factor"),
            )
        log.info(
            "listening host=%s port=%d advertised=%s cluster=%s node=%d topics=%d",
            self.host, self.port, self.advertised, self.broker.cluster_id, self.broker.node_id,
            len(self.broker.topics),
        )  # fmt: skip

    async def stop(self) -> None:
        """Stops accepting connections, finishes current requests, and flushes and closes all logs."""
        if self._stopping:
            return
        self._stopping = True
        began = time.monotonic()
        if self._idle_check is not None:
            self._idle_check.cancel()
        if self._listening is not None:
            self._listening.close()
        for connection in list(self._connections):
            connection.finish()
        # Responses that wait for a sync are sent; those of joins and fetches needn't be.
        await self.broker.flusher.close()
        for connection in list(self._connections):
            if connection.busy:
                connection.abort()
        while self._connections and time.monotonic() - began < DRAIN_SECONDS:
            await asyncio.sleep(0.005)
        for connection in list(self._connections):
            connection.abort()
        self.dispatcher.turns.close()
        self.memory.close()
        await self.broker.stop()
        if self._metrics is not None:
            await self._metrics.stop()
        if self._started:
            log.info("stopped ms=%d", (time.monotonic() - began) * 1000)

    # Called by connections

    def connected(self, connection: Connection) -> str | None:
        """Registers a connection; returns the reason if it is refused."""
        self._connections[connection] = None
        count = self._per_ip[connection.session.host] = self._per_ip.get(connection.session.host, 0) + 1
        self.broker.metrics.connections = len(self._connections)
        self.broker.metrics.accepted += 1
        if self._stopping:
            return "the server is stopping"
        if reason := refusal(connection.descriptor):
            return reason
        limit = self.broker.config.int
        if len(self._connections) > limit("max.connections"):
            return f"max.connections is {limit('max.connections')}"
        if count > limit("max.connections.per.ip"):
            return f"max.connections.per.ip is {limit('max.connections.per.ip')}"
        return None

    def unread(self, connection: Connection, size: int) -> None:
        """Closes those whose answers have been left unread for longest, when all that are unread are too many."""
        if not size:
            self._unread.remove(connection)
            return
        for slow in self._unread.resize(connection, size):
            log.warning(
                "connection closed peer=%s reason=it doesn't read its answers, and all that are unread exceed %d bytes",
                slow.peer, UNREAD_BYTES,
            )  # fmt: skip
            slow.abort()

    def disconnected(self, connection: Connection) -> None:
        self._unread.remove(connection)
        if self._connections.pop(connection, self) is self:
            return
        left = self._per_ip[connection.session.host] - 1
        if left:
            self._per_ip[connection.session.host] = left
        else:
            del self._per_ip[connection.session.host]
        self.broker.metrics.connections = len(self._connections)
        if connection.session.on_close is not None:
            connection.session.on_close()
        self.broker.shares.disconnected(connection.session)

    def _close_idle(self) -> None:
        """Closes connections by connections.max.idle.ms; one that waits for a response isn't idle."""
        before = time.monotonic() - self._idle_seconds
        for connection in list(self._connections):
            if connection.last_active < before and not connection.busy:
                log.info("idle connection closed peer=%s", connection.peer)
                connection.abort()
        self._idle_check = asyncio.get_running_loop().call_later(min(self._idle_seconds / 4, 30), self._close_idle)


def _is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")


def _advertised_host(host: str) -> str:
    """The host that clients connect to: this machine's name for a wildcard address."""
    import socket

    return socket.getfqdn() if _is_wildcard(host) else host
