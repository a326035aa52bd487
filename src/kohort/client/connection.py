"""One connection to one broker."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kohort import __version__
from kohort.client.channel import Channel
from kohort.client.config import ClientConfig
from kohort.client.errors import (
    AuthenticationError,
    ClientError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedError,
)
from kohort.client.time_limit import time_limit
from kohort.client.tls import tls_context
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode, UnsupportedVersionError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

__all__ = ["Connection"]

R = TypeVar("R", bound=Response)

_API_VERSIONS: Final = ApiVersionsRequest.__message__.key

_REAUTHENTICATE_AT: Final = (0.85, 0.95)
"""When in its lifetime a session is reauthenticated: well before its end, not all connections at once (KIP-368)."""

_SASL_WANTED: Final = " at the first request: does it want SASL (security_protocol)?"
_NO_HANDSHAKE: Final = "it closed the connection during the TLS handshake: is it a TLS port?"


class Connection:
    """One socket to a broker. Requests are pipelined; the broker responds in order.

    A bad response (a wrong correlation id, bytes that don't decode, an absurd size) or none in time closes the
    connection: all requests in flight get a `ConnectionLostError` that says why. Made by `Connection.open`.

    Attributes:
        broker: the broker.
        on_lost: called once when the connection ends, for any reason. For its owner.
        on_ended: called then, too; for those that use it, each of whom may put in the same callback again.
    """

    def __init__(self, broker: Broker, config: ClientConfig) -> None:
        self.broker = broker
        self.on_lost: Callable[[Connection], None] | None = None
        self.on_ended: set[Callable[[], object]] = set()
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._channel = Channel(broker, config.client_id, config.receive_message_max_bytes)
        self._channel.on_end = self._ended
        self._versions: dict[int, tuple[int, int]] = {_API_VERSIONS: (0, ApiVersionsRequest.__message__.versions[-1])}
        self._reauthentication_timer: asyncio.TimerHandle | None = None
        self._reauthentication: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, broker: Broker, config: ClientConfig) -> Connection:
        """Connects, encrypts, gets API versions and authenticates, within `socket_connection_setup_timeout_ms`.

        Raises:
            ConnectionLostError: the broker can't be reached, or not in time.
            AuthenticationError: it refuses our credentials or certificate, or we don't trust its own.
            UnsupportedError: it lacks a needed API.
        """
        connection = cls(broker, config)
        try:
            async with time_limit(config.socket_connection_setup_timeout_ms / 1000):
                await connection._set_up()
        except RequestTimeoutError as error:
            raise ConnectionLostError(str(error)) from error
        except TimeoutError as error:
            connection._channel.lose("too slow")
            ms = config.socket_connection_setup_timeout_ms
            raise ConnectionLostError(f"{broker}: no connection within {ms} ms") from error
        except BaseException:
            connection._channel.lose("not set up")
            raise
        return connection

    async def _set_up(self) -> None:
        config = self._config
        secure: dict[str, Any] = {}
        if config.uses_tls:
            secure = {"ssl": tls_context(config), "server_hostname": self.broker.host, "ssl_shutdown_timeout": 1.0}
        try:
            await self._loop.create_connection(lambda: self._channel, self.broker.host, self.broker.port, **secure)
        except ssl.SSLError as error:
            raise self._tls_error(error) from error
        except UnicodeError as error:  # of a name with empty or overlong parts
            raise ConnectionLostError(f"{self.broker}: that can't be the name of a host: {error}") from error
        except OSError as error:
            why = error.strerror or str(error) or _NO_HANDSHAKE
            raise ConnectionLostError(f"{self.broker}: {why}") from error
        try:
            await self._get_api_versions()
            if config.uses_sasl:
                await self._authenticate()
            else:
                self._channel.hint = _SASL_WANTED
        except ConnectionLostError:
            if isinstance(self._channel.cause, ssl.SSLError):  # TLS 1.3: a certificate is refused after the handshake
                raise self._tls_error(self._channel.cause) from self._channel.cause
            raise

    def _tls_error(self, error: ssl.SSLError) -> ClientError:
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return ConnectionLostError(f"{self.broker}: {_NO_HANDSHAKE}")
        if isinstance(error, ssl.SSLCertVerificationError):
            return AuthenticationError(f"{self.broker}: its certificate isn't trusted: {error.verify_message}")
        return AuthenticationError(f"{self.broker}: no TLS: {error.reason or error}")

    async def _get_api_versions(self) -> None:
        """Gets the broker's API versions; an older broker responds in version 0, with its versions of ApiVersions."""
        version = self._versions[_API_VERSIONS][1]
        while True:
            request = ApiVersionsRequest(client_software_name="kohort", client_software_version=__version__)
            answer = await self._send_first(request, ApiVersionsResponse, version)
            spoken = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
            if answer.error_code == ErrorCode.NONE:
                self._versions = spoken
                return
            most = spoken.get(_API_VERSIONS, (0, 0))[1]
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION or most >= version:
                raise UnsupportedError(f"{self.broker}: ApiVersions is answered with error {answer.error_code}")
            version = most

    async def _authenticate(self, begins: Callable[[], None] = lambda: None) -> None:
        from kohort.client.sasl import authenticate

        lifetime_ms = await authenticate(self.broker, self._send_first, self._config, begins)
        if lifetime_ms > 0 and not self.closed:
            delay = lifetime_ms / 1000 * random.uniform(*_REAUTHENTICATE_AT)
            self._reauthentication_timer = self._loop.call_later(delay, self._start_reauthentication)

    def _start_reauthentication(self) -> None:
        self._reauthentication = self._loop.create_task(
            self._reauthenticate(), name=f"kohort-authenticate-{self.broker}"
        )

    async def _reauthenticate(self) -> None:
        try:
            async with time_limit(self._config.socket_connection_setup_timeout_ms / 1000):
                # Until it is reauthenticated, the broker takes no other requests.
                await self._authenticate(self._channel.hold_back_all)
        except (ClientError, TimeoutError) as error:
            self._channel.lose(f"authentication couldn't be renewed: {error or 'too slow'}")
        else:
            self._reauthentication = None
            self._channel.release()

    # API versions

    def speaks(self, request: type[Request]) -> bool:
        """Whether the broker and Kohort have a version of a request in common."""
        return self._common(request) is not None

    def version(self, request: type[Request], most: int | None = None) -> int:
        """Returns the newest version of a request that both have, up to `most`.

        Raises:
            UnsupportedError: there is none.
        """
        common = self._common(request, most)
        if common is None:
            ours = request.__message__.versions
            theirs = self._versions.get(request.__message__.key)
            support = "doesn't know it" if theirs is None else f"speaks versions {theirs[0]} to {theirs[1]}"
            last = ours[-1] if most is None else min(most, ours[-1])
            raise UnsupportedError(
                f"{self.broker}: {request.__message__.api}: the broker {support}, wanted is one of {ours[0]} to {last}"
            )
        return common

    def _common(self, request: type[Request], most: int | None = None) -> int | None:
        ours = request.__message__.versions
        first, last = self._versions.get(request.__message__.key, (0, -1))
        newest = min(last, ours[-1] if most is None else min(most, ours[-1]))
        return newest if newest >= max(first, ours[0]) else None

    # Requests

    @property
    def closed(self) -> bool:
        """Whether it is closed or lost."""
        return self._channel.why is not None

    @property
    def in_flight(self) -> int:
        """Number of requests without a response yet."""
        return self._channel.in_flight

    @property
    def idle_since(self) -> int:
        """When the last request or response was, in ms of the loop's clock."""
        return self._channel.idle_since

    @property
    def throttled_until(self) -> float:
        """Until when the broker throttles us (KIP-219): requests are held back. In seconds of the loop's clock."""
        return self._channel.throttled_until

    async def ask(
        self, request: Request, response: type[R], *, version: int | None = None, timeout_ms: float | None = None
    ) -> R:
        """Sends a request and waits for the response.

        Args:
            request, response: the request, and the class of its response.
            version: the newest that both have by default.
            timeout_ms: `request_timeout_ms` by default.

        Raises:
            ConnectionLostError: it is closed or breaks. The broker may have handled the request or not.
            RequestTimeoutError: no response in time; the connection is closed.
            UnsupportedError: the broker has no version with all of the request's fields.
        """
        return await self.send(request, response, version=version, timeout_ms=timeout_ms)

    def send(
        self, request: Request, response: type[R], *, version: int | None = None, timeout_ms: float | None = None
    ) -> asyncio.Future[R]:
        """Sends a request at once, and returns a future of the response. Raises as `ask`."""
        if version is None:
            version = self.version(type(request))
        ms = self._config.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            return self._channel.ask(request, version, response, ms)
        except UnsupportedVersionError as error:
            raise UnsupportedError(f"{self.broker}: {error}") from error

    def tell(self, request: Request, *, version: int | None = None) -> None:
        """Sends a request without a response: Produce with acks=0.

        Raises:
            ConnectionLostError, UnsupportedError: as `ask`.
        """
        if version is None:
            version = self.version(type(request))
        try:
            self._channel.tell(request, version)
        except UnsupportedVersionError as error:
            raise UnsupportedError(f"{self.broker}: {error}") from error

    async def drained(self) -> None:
        """Waits while the write buffer is full, since the broker doesn't read.

        Raises:
            ConnectionLostError: the connection breaks.
            RequestTimeoutError: it takes longer than `request_timeout_ms`; the connection is closed.
        """
        await self._channel.drained(self._config.request_timeout_ms)

    async def close(self) -> None:
        """Sends the write buffer and closes, soon; requests in flight get a `ConnectionLostError`."""
        await self._channel.close()
        if self._reauthentication is not None:
            await asyncio.wait((self._reauthentication,))

    async def _send_first(self, request: Request, response: type[R], version: int | None = None) -> R:
        """Sends a request before those that are held back: ApiVersions and authentication."""
        if version is None:
            version = self.version(type(request))
        return await self._channel.ask(request, version, response, self._config.request_timeout_ms, first=True)

    def _ended(self) -> None:
        if self._reauthentication_timer is not None:
            self._reauthentication_timer.cancel()
        if self._reauthentication is not None and self._reauthentication is not asyncio.current_task():
            self._reauthentication.cancel()
        if self.on_lost is not None:
            self.on_lost(self)
        for callback in self.on_ended:
            callback()
