"""Keeps the server cluster info up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.connections import Connections
from kohort.client.errors import (
    ClientError,
    ClosedError,
    ConnectionLostError,
    NoBrokerError,
    RequestTimeoutError,
    kafka_error,
)
from kohort.client.no_broker import NO_ANSWER_YET
from kohort.client.retrying import ask_until, retry_backoff
from kohort.client.server_cluster_info import Changes, ServerClusterInfo
from kohort.client.time_limit import event_within, time_limit
from kohort.client.types import TopicInfo
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

__all__ = ["Metadata"]

log = logging.getLogger("kohort.client.metadata")

_AT_ONCE_S: Final = 1.0
"""How long a first broker may be silent until `on_no_broker` is called, if the attempt hasn't failed."""


class Metadata:
    """Requests metadata: on demand, and every `metadata_max_age_ms`.

    Args:
        connections: to the brokers.
        info: kept up to date.
        config: the settings.

    Attributes:
        followed: the topics that are requested; None for all.
    """

    def __init__(self, connections: Connections, info: ServerClusterInfo, config: ClientConfig) -> None:
        self.followed: set[str] | None = set()
        self._connections = connections
        self._info = info
        self._config = config
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._urgent = asyncio.Event()
        self._changed = asyncio.Event()
        self._refreshes_requested = 0  # number of `refresh` calls
        self._refreshes_done = 0  # the last of them that is done
        self._refused: ClientError | None = None  # an error that no retry mends
        self._failure: Exception | None = None  # the last attempt's error
        self._listeners: list[Callable[[Changes], None]] = []
        self._closed = False

    async def start(self) -> None:
        """Requests metadata until a broker answers; raises as `Cluster.start`."""
        if self._task is not None:
            return
        self._check_open()
        timeout_ms = self._config.bootstrap_timeout_ms
        backoff = retry_backoff(self._config)
        tell = self._config.on_no_broker or (lambda _: None)
        silence = asyncio.get_running_loop().call_later(_AT_ONCE_S, tell, NO_ANSWER_YET)
        try:
            async with time_limit(None if timeout_ms is None else timeout_ms / 1000):
                while not await self._refresh():
                    if self._refused is not None:
                        raise self._refused
                    silence.cancel()
                    log.info("no broker yet: %s", self._failure)
                    tell(str(self._failure))
                    await asyncio.sleep(backoff.next() / 1000)
        except TimeoutError:
            raise self._no_broker(timeout_ms) from self._failure
        finally:
            silence.cancel()
        self._task = asyncio.create_task(self._refresh_loop(), name="kohort-metadata")

    async def close(self) -> None:
        """Ends the requests."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._notify()

    # For the cluster

    def request_refresh(self, *, urgent: bool = False) -> None:
        """Requests a refresh soon, at once if it is urgent; several calls in a row make one request."""
        self._wanted.set()
        if urgent:
            self._urgent.set()

    async def refresh(self, timeout_ms: float) -> None:
        """Waits for a response to a request sent from now on; raises as `Cluster.refresh`."""
        self._check_open()
        self._refreshes_requested += 1
        mine = self._refreshes_requested
        self._refused = None
        self.request_refresh()
        try:
            async with time_limit(timeout_ms / 1000):
                while self._refreshes_done < mine:
                    await self._changed.wait()
                    self._check_open()
                    if self._refused is not None:
                        raise self._refused
        except TimeoutError:
            raise self._no_broker(timeout_ms) from self._failure

    async def changed(self) -> None:
        """Waits for the next response, or new leader."""
        await self._changed.wait()

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Calls a function with changes; returns a function that ends that."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    async def topic(self, name: str, timeout_ms: float, *, create: bool) -> TopicInfo:
        """Requests one topic until it exists; raises as `Cluster.topic`."""
        now = asyncio.get_running_loop().time
        deadline = now() + timeout_ms / 1000
        backoff = retry_backoff(self._config)
        refused: KafkaError | None = None
        while True:
            left_ms = max((deadline - now()) * 1000, 1)
            try:
                await ask_until(
                    self._connections,
                    self._config,
                    f"topic {name!r}",
                    left_ms,
                    lambda each: self._ask(each, {name}, create=create),
                )
            except NoBrokerError:
                if refused is None:
                    raise
                raise refused from None  # says more than that the last attempt had too little time
            error = self._info.errors.get(name)
            known = self._info.topics.get(name)
            if error is None and known is not None:
                return known
            refused = KafkaError(error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")
            pause = backoff.next() / 1000
            if not refused.code.retriable or now() + pause > deadline:
                raise refused
            await asyncio.sleep(pause)

    def leader_changed(self, changes: Changes) -> None:
        """A new leader is known from another response than metadata."""
        self._call_listeners(changes)
        self._notify()

    # Requests

    async def _refresh_loop(self) -> None:
        backoff = retry_backoff(self._config)
        while True:
            await event_within(self._wanted, self._config.metadata_max_age_ms)
            self._wanted.clear()
            self._urgent.clear()
            requested = self._refreshes_requested
            if await self._refresh():
                self._refreshes_done = requested
                if self._info.incomplete:
                    self._wanted.set()
                self._notify()
            else:
                self._wanted.set()
                if self._refused is not None:
                    log.warning("the cluster's state can't be asked for: %s", self._refused)
                    self._notify()
            # Backs off while requests fail or lack something; new topics don't wait.
            await event_within(self._urgent, backoff.next())
            if not self._wanted.is_set() or self._urgent.is_set():
                backoff.reset()

    async def _refresh(self) -> bool:
        """Asks one broker; returns whether it answered."""
        try:
            await self._ask(await self._connections.any(), self.followed)
        except (ConnectionLostError, RequestTimeoutError, KafkaError) as error:
            self._failure = error
            return False
        except ClientError as error:
            self._failure = self._refused = error
            return False
        self._refused = self._failure = None
        if self.followed is not None:
            # Topics unfollowed while the request was in flight.
            self._info.forget_topics((self._info.topics.keys() | self._info.errors.keys()) - self.followed)
        return True

    async def _ask(self, connection: Connection, names: Collection[str] | None, *, create: bool = False) -> None:
        topics = None if names is None else [MetadataRequest.Topic(name=name) for name in sorted(names)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        answer = await connection.ask(request, MetadataResponse)
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._connections.rebootstrap()
            raise ConnectionLostError(f"{connection.broker}: it asks for a rebootstrap")
        if answer.error_code:
            raise kafka_error(answer.error_code)
        changes = self._info.update(answer, names)
        if changes:
            self._call_listeners(changes)

    def _call_listeners(self, changes: Changes) -> None:
        for callback in tuple(self._listeners):
            try:
                callback(changes)
            except Exception:
                log.exception("a listener for changes of the cluster failed")

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _no_broker(self, timeout_ms: float | None) -> NoBrokerError:
        detail = f": {self._failure}" if self._failure else ""
        return NoBrokerError(f"no broker answered within {timeout_ms} ms{detail}")

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the client is closed")
