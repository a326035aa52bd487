"""The open connections to a cluster: one for each broker and purpose."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.errors import ClosedError, ConnectionLostError, NoBrokerError
from kohort.client.server_cluster_info import ServerClusterInfo
from kohort.client.tls import tls_context
from kohort.client.types import Broker

__all__ = ["Connections"]

_Key = tuple[int, str]

_MIN_IDLE_CHECK_S: Final = 1.0
"""The shortest interval between checks for idle connections."""


class Connections:
    """Opens connections on demand, reuses them, and closes idle ones.

    Args:
        config: the settings.
        info: has the brokers' addresses.
        request_refresh: called when a connection is lost or a broker is unknown: the cluster may have changed.
    """

    def __init__(self, config: ClientConfig, info: ServerClusterInfo, request_refresh: Callable[[], None]) -> None:
        # Reads the certificates once, not for each connection.
        self._config = replace(config, ssl_context=tls_context(config)) if config.uses_tls else config
        self._info = info
        self._request_refresh = request_refresh
        self._bootstrap = {
            -1 - index: Broker(-1 - index, host, port) for index, (host, port) in enumerate(config.addresses)
        }
        self._open: dict[_Key, Connection] = {}
        self._opening: dict[_Key, asyncio.Task[Connection]] = {}
        self._pauses: dict[int, tuple[Backoff, float]] = {}  # and when a broker may be tried again
        self._turn = itertools.count()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def get(self, node_id: int, purpose: str) -> Connection:
        """Returns the connection to a broker for a purpose; opens it once the broker's backoff is over."""
        if self._closed:
            raise ClosedError("the client is closed")
        broker = self._info.brokers.get(node_id) or self._bootstrap.get(node_id)
        if broker is None:
            self._request_refresh()
            raise ConnectionLostError(f"broker {node_id} isn't known: it may have gone, or be starting")
        key = node_id, purpose
        connection = self._open.get(key)
        if connection is not None and not connection.closed:
            if connection.broker[:3] == broker[:3]:
                return connection
            self._start_close(self._open.pop(key))  # the broker has moved
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = asyncio.create_task(self._connect(key, broker), name=f"kohort-open-{broker}")
            task.add_done_callback(_ignore_error)
        # Shielded: a caller that is cancelled doesn't cancel the others' wait.
        return await asyncio.shield(task)

    async def _connect(self, key: _Key, broker: Broker) -> Connection:
        loop = asyncio.get_running_loop()
        backoff, not_before = self._pauses.get(key[0]) or (self._new_backoff(), 0.0)
        try:
            if not_before > loop.time():
                await asyncio.sleep(not_before - loop.time())
            try:
                connection = await Connection.open(broker, self._config)
            except Exception:
                self._pauses[key[0]] = backoff, loop.time() + backoff.next() / 1000
                if key[0] >= 0:
                    self._request_refresh()
                raise
            self._pauses.pop(key[0], None)
            connection.on_lost = self._lost
            self._open[key] = connection
            self._schedule_idle_check()
            return connection
        except asyncio.CancelledError:  # only by `close`; the callers that wait aren't cancelled
            raise ClosedError("the client is closed") from None
        finally:
            self._opening.pop(key, None)

    def _new_backoff(self) -> Backoff:
        return Backoff(self._config.reconnect_backoff_ms, self._config.reconnect_backoff_max_ms)

    async def any(self) -> Connection:
        """Returns a connection to any broker: the open one with the fewest requests, or the first that opens."""
        ready = [each for (_, purpose), each in self._open.items() if not purpose and not each.closed]
        if ready:
            return min(ready, key=_load)
        failure: Exception | None = None
        # If no known broker can be reached, the bootstrap servers may know others (KIP-899).
        for node_id in (*self._round_robin(self._info.brokers), *self._round_robin(self._bootstrap)):
            try:
                return await self.get(node_id, "")
            except ConnectionLostError as error:
                failure = error
        count = len(self._info.brokers) + len(self._bootstrap)
        tried = "it can't be reached" if count == 1 else f"none of {count} brokers can be reached; the last one"
        raise NoBrokerError(f"{tried}: {failure}") from failure

    def _round_robin(self, node_ids: Iterable[int]) -> list[int]:
        """Returns node ids round robin; those in backoff come last."""
        ids = sorted(node_ids, key=abs)
        start = next(self._turn) % len(ids) if ids else 0
        return sorted(ids[start:] + ids[:start], key=self._not_before)

    def _not_before(self, node_id: int) -> float:
        paused = self._pauses.get(node_id)
        return max(paused[1], asyncio.get_running_loop().time()) if paused else 0.0

    def _lost(self, connection: Connection) -> None:
        for key, each in self._open.items():
            if each is connection:
                del self._open[key]
                break
        if not self._closed:
            self._request_refresh()

    # Closing

    def _schedule_idle_check(self) -> None:
        if self._idle_timer is None and not self._closed and self._config.connections_max_idle_ms:
            after = max(self._config.connections_max_idle_ms / 1000, _MIN_IDLE_CHECK_S)
            self._idle_timer = asyncio.get_running_loop().call_later(after, self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        limit = int(asyncio.get_running_loop().time() * 1000) - self._config.connections_max_idle_ms
        for key, each in tuple(self._open.items()):
            if each.idle_since <= limit and not each.in_flight:
                del self._open[key]
                self._start_close(each)
        if self._open:
            self._schedule_idle_check()

    def _start_close(self, connection: Connection) -> None:
        connection.on_lost = None
        task = asyncio.create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def rebootstrap(self) -> None:
        """Closes all connections; the bootstrap servers are asked next."""
        self._info.forget_brokers()
        self._pauses.clear()
        for connection in self._open.values():
            self._start_close(connection)
        self._open.clear()

    async def close(self) -> None:
        """Closes all connections, also those that are being opened."""
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        opening = tuple(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        for connection in self._open.values():
            self._start_close(connection)
        self._open.clear()
        await asyncio.gather(*self._closing)


def _load(connection: Connection) -> tuple[bool, int]:
    return connection.broker.node_id < 0, connection.in_flight


def _ignore_error(task: asyncio.Task[Connection]) -> None:
    """Retrieves a task's error: all callers may have been cancelled, so that nobody else does."""
    if not task.cancelled():
        task.exception()
