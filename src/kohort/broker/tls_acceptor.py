"""Accepts connections with TLS.

The limits of connections and file descriptors hold from the moment of accepting, also for those that never finish a
handshake; asyncio's own servers tell of a connection only after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable
from typing import Final

from kohort.broker.audit import Audit
from kohort.broker.newcomers import Newcomers
from kohort.broker.refusal import Refusal
from kohort.broker.tls import HandshakeError

log = logging.getLogger("kohort.broker.tls")

HANDSHAKE_SECONDS: Final = 10.0
"""How long a client may take for its handshake."""

SHUTDOWN_SECONDS: Final = 5.0
"""How long a client may take to agree that a connection is closed."""

_TOLD_SECONDS: Final = 1.0
"""How long a client whose handshake failed may take to close the connection."""

_STARVED_SECONDS: Final = 1.0
"""How long nothing is accepted if the system has no more file descriptors."""

Admit = Callable[[str, int], Refusal | None]
"""Counts a connection by its host and file descriptor; returns why if it is refused."""


class TlsAcceptor:
    """Accepts connections at sockets, until it is closed.

    Args:
        sockets: bound; they are listened at, and closed in the end.
        context: returns that of the next handshake.
        make_connection: makes the protocol of a connection after its handshake.
        admit: called with each accepted connection.
        leave: called with the host of each whose handshake failed; one that is `made` calls it itself.
        newcomers: those in a handshake are among them.
    """

    def __init__(
        self,
        sockets: Iterable[socket.socket],
        context: Callable[[], ssl.SSLContext],
        make_connection: Callable[[], asyncio.Protocol],
        admit: Admit,
        leave: Callable[[str], None],
        newcomers: Newcomers,
        audit: Audit,
    ) -> None:
        self._sockets = list(sockets)
        self._context = context
        self._make_connection = make_connection
        self._admit = admit
        self._leave = leave
        self._newcomers = newcomers
        self._audit = audit
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, backlog: int) -> None:
        """Begins to accept."""
        for each in self._sockets:
            each.setblocking(False)
            each.listen(backlog)
            self._run(self._accept(each))

    def close(self) -> None:
        """Accepts no more, and ends the handshakes there are."""
        for task in self._tasks:
            task.cancel()
        for each in self._sockets:
            each.close()

    def _run(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except ConnectionError:  # it was gone before it was accepted
                continue
            except OSError as error:
                log.warning("no connection can be accepted reason=%s", error)
                await asyncio.sleep(_STARVED_SECONDS)
                continue
            host = str(address[0])
            refusal = self._admit(host, accepted.fileno())
            if refusal:
                self._audit.connection_refused(host, address[1], refusal.reason)
                self._run(self._refuse(accepted, host, refusal.held_ms))
            else:
                self._begin(accepted, host, address[1])

    async def _refuse(self, accepted: socket.socket, host: str, held_ms: int) -> None:
        try:
            with accepted:
                if held_ms:
                    await asyncio.sleep(held_ms / 1000)
        finally:
            self._leave(host)

    def _begin(self, accepted: socket.socket, host: str, port: int) -> None:
        task = self._run(self._shake_hands(accepted, host, port))

        def close(reason: str) -> None:
            self._audit.connection_closed(host, port, reason)
            task.cancel()

        newcomer = self._newcomers.enter(host, close)
        task.add_done_callback(lambda _: self._newcomers.leave(newcomer))

    async def _shake_hands(self, accepted: socket.socket, host: str, port: int) -> None:
        connection: asyncio.Protocol | None = None

        def make_connection() -> asyncio.Protocol:
            nonlocal connection
            connection = self._make_connection()
            return connection

        def leave() -> None:
            if not getattr(connection, "made", False):
                self._leave(host)

        with accepted.dup() as kept:  # as a failed handshake closes the other
            try:
                await asyncio.get_running_loop().connect_accepted_socket(
                    make_connection,
                    accepted,
                    ssl=self._context(),
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                    ssl_shutdown_timeout=SHUTDOWN_SECONDS,
                )
            except (OSError, RuntimeError) as error:  # RuntimeError: uvloop's, if it is gone already
                self._audit.handshake_failed(host, port, _explained(error))
                try:
                    if isinstance(error, HandshakeError):
                        await _tell(kept, error.alert)
                finally:
                    leave()
            except asyncio.CancelledError:
                leave()
                raise


async def _tell(connection: socket.socket, alert: bytes) -> None:
    """Sends an alert and closes; reads on for a moment, as an answer is lost if there is something unread."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, TimeoutError):
        connection.setblocking(False)
        connection.send(alert)
        connection.shutdown(socket.SHUT_WR)
        until = loop.time() + _TOLD_SECONDS
        while await asyncio.wait_for(loop.sock_recv(connection, 65_536), until - loop.time()):
            pass


def _explained(error: Exception) -> str:
    if not isinstance(error, HandshakeError):
        return str(error) or "the client is gone"
    reason = (error.reason or str(error)).lower().replace("_", " ")
    match error.reason:
        case "WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "UNEXPECTED_MESSAGE" | "RECORD_LAYER_FAILURE":
            return f"{reason}: this doesn't look like TLS; the client's security.protocol must be the listener's"
        case "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return f"{reason}: the listener's ssl.client.auth is required"
        case "CERTIFICATE_VERIFY_FAILED":
            return f"{reason}: {error.verify_message}; is it signed by what ssl.truststore has?"
    if error.reason and "ALERT" in error.reason:
        return f"{reason}: the client refuses the listener's certificate, or its TLS"
    return reason
