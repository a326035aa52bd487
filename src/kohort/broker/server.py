"""The server: its listeners and their connections, start and stop."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from kohort.broker.authorizer import Authorizer
from kohort.broker.bound import Bound
from kohort.broker.broker import Broker
from kohort.broker.clock import now_ms
from kohort.broker.config import Settings
from kohort.broker.config.listeners import configured_listeners, unused_security
from kohort.broker.connection import Connection
from kohort.broker.descriptors import newcomers, refusal
from kohort.broker.dispatch import Dispatcher
from kohort.broker.listener import Listener
from kohort.broker.metrics import MetricsEndpoint, MetricsPort
from kohort.broker.newcomers import Newcomers
from kohort.broker.refusal import Refusal
from kohort.broker.request_memory import RequestMemory
from kohort.broker.sasl_mechanisms import SaslSources
from kohort.broker.secret import kept_secret
from kohort.security.sasl.scram import ScramCredential, ScramMechanism, Shape, TokenCredential

log = logging.getLogger("kohort.broker.server")

CERTIFICATES_SECONDS: Final = 5.0
"""How often the files of certificates are looked at, whether they have changed."""

SECRET: Final = "scram.secret"
"""The file in the data directory with what salts are made of for names that nobody has."""

UNREAD_BYTES: Final = 256 * 1024 * 1024
"""Bytes of answers that clients may leave unread, in all."""

STRANGERS_BYTES: Final = 32 * 1024 * 1024
"""Bytes of large requests of all who haven't said yet who they are; others don't wait for them."""

DRAIN_SECONDS: Final = 10
"""How long a stopping server waits for current requests; not for long polls."""


class Server:
    """Serves one broker on its listeners.

    Args:
        metrics: where the Prometheus endpoint listens, and who may ask it; None for none.
        durable: whether appends are synced to the disk before they are acknowledged.
        authorizer: decides which operations are allowed; None allows all.
        prepare: called when the broker has its data, before clients are served.
        clock: ms since 1970.

    Attributes:
        listeners: in the order of `listeners`.

    Raises:
        OSError: the directory can't be used, or another server uses it.
        ConfigError: a listener can't be had as it is configured, or the directory belongs to another node.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        data_dir: Path,
        metrics: MetricsPort | None = None,
        durable: bool = False,
        authorizer: Authorizer | None = None,
        prepare: Callable[[Broker], None] | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        sources = SaslSources(
            self._find_user,
            self._find_token,
            functools.partial(kept_secret, data_dir / SECRET),
            self._shape,
            lambda: self.now(),
        )
        self.listeners = [Listener(config, settings, sources) for config in configured_listeners(settings)]
        self.now = clock
        self.broker = Broker.build(settings, data_dir=data_dir, durable=durable, authorizer=authorizer, clock=clock)
        if any(listener.protocol.sasl for listener in self.listeners):
            kept_secret(data_dir / SECRET)  # an error ends the start rather than somebody's authentication
        self.dispatcher = Dispatcher(self.broker)
        self.max_frame = settings.int("socket.request.max.bytes")
        self._idle_seconds = settings.int("connections.max.idle.ms") / 1000
        self._prepare = prepare
        sources_of_metrics = replace(self.broker.metric_sources, certificates=self._certificates)
        self._metrics = (
            None if metrics is None else MetricsEndpoint(sources_of_metrics, *metrics, unready=self.why_unready)
        )
        most = settings.int("queued.max.request.bytes")
        self.memory = RequestMemory(most)
        self.strangers_memory = RequestMemory(min(STRANGERS_BYTES, most) if most >= 0 else STRANGERS_BYTES)
        self.audit = self.broker.audit
        self.newcomers = Newcomers(newcomers())
        self._unread: Bound[Connection] = Bound(UNREAD_BYTES)
        self._connections: dict[Connection, None] = {}
        self._per_ip: dict[str, int] = {}
        self._checks: dict[str, asyncio.TimerHandle] = {}
        self._started = False
        self._stopping = False

    @property
    def host(self) -> str:
        """Where the first listener listens."""
        return self.listeners[0].host

    @property
    def port(self) -> int:
        """Where the first listener listens."""
        return self.listeners[0].port

    @property
    def metrics_port(self) -> int | None:
        return None if self._metrics is None else self._metrics.port

    async def start(self) -> None:
        """Listens, recovers the data directory, and accepts connections.

        Raises:
            OSError: the address is in use, or can't be used; or what `prepare` raises.
            ConfigError: a listener can't be had as it is configured.
        """
        try:
            for listener in self.listeners:
                await listener.prepare()
            for listener in self.listeners:
                await listener.open(
                    functools.partial(Connection, self, listener), self.admit, self.leave, self.newcomers, self.audit
                )
            if self._metrics is not None:
                await self._metrics.start()
            await self.broker.start()
            if self._prepare is not None:
                self._prepare(self.broker)
            for listener in self.listeners:
                await listener.serve()
        except BaseException:
            await self.stop()
            raise
        self._started = True
        if self._idle_seconds > 0:
            self._close_idle()
        self._close_late()
        if any(listener.tls for listener in self.listeners):
            self._check_certificates()
        if guessed := [listener for listener in self.listeners if listener.guesses_its_name]:
            log.warning(
                "clients on other machines will connect to host=%s: if they can't, set --advertise",
                guessed[0].advertised.host,
            )
        if unused := unused_security(self.broker.config, configured_listeners(self.broker.config)):
            log.warning(
                "no listener uses TLS or SASL, though keys=%s are set: whoever connects gets in", ",".join(unused)
            )
        if self.broker.config.int("default.replication.factor") > 1:
            log.warning(
                "topics need a replication factor of 1 here, but default.replication.factor=%d: they are created only "
                "where a client asks for 1",
                self.broker.config.int("default.replication.factor"),
            )
        for listener in self.listeners:
            log.info(
                "listening host=%s port=%d protocol=%s advertised=%s cluster=%s node=%d topics=%d",
                listener.host, listener.port, listener.protocol.value, listener.advertised, self.broker.cluster_id,
                self.broker.node_id, len(self.broker.topics),
            )  # fmt: skip

    async def stop(self) -> None:
        """Stops accepting connections, finishes current requests, and flushes and closes all logs."""
        if self._stopping:
            return
        self._stopping = True
        began = time.monotonic()
        for check in self._checks.values():
            check.cancel()
        for listener in self.listeners:
            listener.close()
        self.broker.groups.forget_connections()
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
        self.strangers_memory.close()
        await self.broker.stop()
        if self._metrics is not None:
            await self._metrics.stop()
        if self._started:
            log.info("stopped ms=%d", (time.monotonic() - began) * 1000)

    def why_unready(self) -> str | None:
        """Why clients aren't served, or not all of them; None if they are."""
        if self._stopping:
            return "stopping"
        if not self._started:
            return "starting: logs are opened, and after a crash recovered"
        if any(coordinator.loading() for coordinator in self.broker.coordinators):
            return "coordinators are loading"
        return None

    # Called by connections

    def admit(self, host: str, descriptor: int) -> Refusal | None:
        """Counts a connection by its address and file descriptor; returns why if it is refused.

        Each is counted until `leave`, whether it is refused or not.
        """
        count = self._per_ip[host] = self._per_ip.get(host, 0) + 1
        self.broker.metrics.connections += 1
        self.broker.metrics.accepted += 1
        if self._stopping:
            return Refusal("the server is stopping")
        if reason := refusal(descriptor):
            self.newcomers.make_room()
            return Refusal(reason)
        limit = self.broker.config.int
        if self.broker.metrics.connections > limit("max.connections"):
            self.newcomers.make_room()
            return Refusal(f"max.connections is {limit('max.connections')}")
        if count > limit("max.connections.per.ip"):
            return Refusal(f"max.connections.per.ip is {limit('max.connections.per.ip')}")
        if wait := self.broker.throttling.connect(host):
            return Refusal("its address makes more connections than its quota connection_creation_rate", wait)
        return None

    def leave(self, host: str) -> None:
        """Counts a connection no more."""
        self.broker.metrics.connections -= 1
        left = self._per_ip[host] - 1
        if left:
            self._per_ip[host] = left
        else:
            del self._per_ip[host]

    def connected(self, connection: Connection) -> None:
        self._connections[connection] = None

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
        self.leave(connection.session.host)
        connection.session.gone = True
        if connection.session.on_close is not None:
            connection.session.on_close()
        self.broker.shares.disconnected(connection.session)
        if not connection.closed_here and not self._stopping:
            self.broker.groups.disconnected(connection.session)
        self.broker.groups.closed(connection.session)

    def _close_idle(self) -> None:
        """Closes connections by connections.max.idle.ms; one that waits for a response isn't idle."""
        before = time.monotonic() - self._idle_seconds
        for connection in list(self._connections):
            if connection.last_active < before and not connection.busy:
                log.info("idle connection closed peer=%s", connection.peer)
                connection.abort()
        self._later(self._close_idle, min(self._idle_seconds / 4, 30))

    def _close_late(self) -> None:
        self._later(self._close_late, 1.0)
        self.newcomers.close_late()

    def _certificates(self) -> dict[str, datetime]:
        tls = {listener.name: listener.tls for listener in self.listeners}
        return {name: each.expires for name, each in tls.items() if each is not None and each.expires is not None}

    def _check_certificates(self) -> None:
        """Takes up certificates whose files have changed."""
        self._later(self._check_certificates, CERTIFICATES_SECONDS)
        for listener in self.listeners:
            if listener.tls is not None:
                listener.tls.check()

    def _later(self, check: Callable[[], None], seconds: float) -> None:
        self._checks[check.__name__] = asyncio.get_running_loop().call_later(seconds, check)

    def _find_user(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        return self.broker.scram_users.find(mechanism, name)

    def _shape(self, mechanism: ScramMechanism) -> Shape:
        return self.broker.scram_users.usual_shape(mechanism)

    def _find_token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        return self.broker.delegation_tokens.credential(mechanism, token_id, self.now())
