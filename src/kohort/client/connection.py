"""One connection to one broker: requests out, answers in, in order."""

from __future__ import annotations

import asyncio
import random
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from kohort import __version__
from kohort.client.config import ClientConfig
from kohort.client.errors import (
    AuthenticationError,
    ClientError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedError,
)
from kohort.client.frame_reader import FrameReader, FrameSizeError
from kohort.client.tls import tls_context
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersionError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.headers import ResponseHeader
from kohort.protocol.primitives import Buffer

__all__ = ["Connection"]

R = TypeVar("R", bound=Response)

_HEADER: Final = struct.Struct(">ihhi")  # size, API key, version, correlation id
_ID: Final = struct.Struct(">i")
_API_VERSIONS: Final = ApiVersionsRequest.__message__.key
_NOT_SO_NEW: Final = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)

_JOINED: Final = 64 * 1024
"""Requests up to this many bytes are sent as one piece; the large pieces of longer ones are sent as they are."""

_HIGH_WATER: Final = 1024 * 1024
"""Bytes that may wait to be sent before `drained` waits."""

_LAST_WORDS_S: Final = 1.0
"""How long a connection that is closed may take to send what it has."""


class _Waiting:
    """A request, and who waits for its answer."""

    __slots__ = ("api", "correlation", "deadline", "future", "response", "timeout_ms", "version")

    def __init__(
        self, api: str, response: type[Response], version: int, future: asyncio.Future[Any], deadline: float, ms: float
    ) -> None:
        self.api, self.response, self.version = api, response, version
        self.future, self.deadline, self.timeout_ms = future, deadline, ms
        self.correlation = -1


class Connection(asyncio.BufferedProtocol):
    """One socket to a broker. Requests are pipelined; a broker answers them in order.

    Anything that shouldn't come (a wrong correlation id, bytes that don't decode, an absurd size, silence) closes the
    connection: everybody who waits gets a `ConnectionLostError` that says why. Made by `Connection.open`.

    Attributes:
        broker: who is at the other end.
        idle_since: when it was last used, in ms of the loop's clock.
        throttled_until: requests are held back until then, in seconds of the loop's clock (KIP-219).
        on_lost: called once when the connection ends, however it does.
    """

    def __init__(self, broker: Broker, config: ClientConfig) -> None:
        self.broker = broker
        self.idle_since = 0
        self.throttled_until = 0.0
        self.on_lost: Callable[[Connection], None] | None = None
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(config.receive_message_max_bytes)
        client = config.client_id.encode()
        self._client = struct.pack(">h", len(client)) + client
        self._versions: dict[int, tuple[int, int]] = {_API_VERSIONS: (0, ApiVersionsRequest.__message__.versions[-1])}
        self._correlation = 0
        self._waiting: deque[_Waiting] = deque()
        self._held: deque[tuple[type[Request], int, list[Buffer], _Waiting | None]] = deque()
        self._authenticating: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._release: asyncio.TimerHandle | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()
        self._why: str | None = None  # why it was lost
        self._cause: BaseException | None = None

    @classmethod
    async def open(cls, broker: Broker, config: ClientConfig) -> Connection:
        """Connect, encrypt, learn which versions the broker speaks, authenticate: within the time for setting up.

        Raises:
            ConnectionLostError: the broker can't be reached, or not in time.
            AuthenticationError: it doesn't take our credentials or certificate, or we don't trust its own.
            UnsupportedError: it doesn't speak what is needed.
        """
        connection = cls(broker, config)
        try:
            async with asyncio.timeout(config.socket_connection_setup_timeout_ms / 1000):
                await connection._set_up()
        except TimeoutError as error:
            connection._lose("too slow")
            ms = config.socket_connection_setup_timeout_ms
            raise ConnectionLostError(f"{broker}: no connection within {ms} ms") from error
        except BaseException:
            connection._lose("not set up")
            raise
        return connection

    async def _set_up(self) -> None:
        config = self._config
        secure: dict[str, Any] = {}
        if config.uses_tls:
            secure = {"ssl": tls_context(config), "server_hostname": self.broker.host, "ssl_shutdown_timeout": 1.0}
        try:
            await self._loop.create_connection(lambda: self, self.broker.host, self.broker.port, **secure)
        except ssl.SSLError as error:
            raise self._tls_error(error) from error
        except OSError as error:
            raise ConnectionLostError(f"{self.broker}: {error.strerror or error}") from error
        try:
            await self._introduce()
            if config.uses_sasl:
                await self._authenticate()
        except ConnectionLostError:
            if isinstance(self._cause, ssl.SSLError):  # TLS 1.3: a certificate is refused after the handshake
                raise self._tls_error(self._cause) from self._cause
            raise

    def _tls_error(self, error: ssl.SSLError) -> ClientError:
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return ConnectionLostError(f"{self.broker}: it closed the connection during the TLS handshake: is it a TLS port?")
        if isinstance(error, ssl.SSLCertVerificationError):
            return AuthenticationError(f"{self.broker}: its certificate isn't trusted: {error.verify_message}")
        return AuthenticationError(f"{self.broker}: no TLS: {error.reason or error}")

    async def _introduce(self) -> None:
        """Ask which versions the broker speaks; a broker that is older than us answers in version 0 which it has."""
        version = self._versions[_API_VERSIONS][1]
        while True:
            request = ApiVersionsRequest(client_software_name="kohort", client_software_version=__version__)
            answer = await self._ask_at_once(request, ApiVersionsResponse, version)
            spoken = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
            if answer.error_code == ErrorCode.NONE:
                self._versions = spoken
                return
            most = spoken.get(_API_VERSIONS, (0, 0))[1]
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION or most >= version:
                raise UnsupportedError(f"{self.broker}: ApiVersions is answered with error {answer.error_code}")
            version = most

    async def _authenticate(self) -> None:
        from kohort.client.sasl import authenticate

        lifetime_ms = await authenticate(self.broker, self._ask_at_once, self._config)
        if lifetime_ms > 0 and not self.closed:
            # Well before the session ends, and not all connections at once (KIP-368).
            delay = lifetime_ms / 1000 * random.uniform(0.85, 0.95)
            self._renewal = self._loop.call_later(delay, self._authenticate_again)

    def _authenticate_again(self) -> None:
        self._authenticating = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        # Until it is done, the broker takes no other request: they are held back.
        try:
            async with asyncio.timeout(self._config.socket_connection_setup_timeout_ms / 1000):
                await self._authenticate()
        except (ClientError, TimeoutError) as error:
            self._lose(f"authentication couldn't be renewed: {error}")
        else:
            self._authenticating = None
            self._send_held()

    # What the broker speaks

    def speaks(self, request: type[Request]) -> bool:
        """Whether the broker and Kohort have a version of a request in common."""
        return self._common(request) is not None

    def version(self, request: type[Request], most: int | None = None) -> int:
        """The newest version of a request that both speak, `most` at most.

        Raises:
            UnsupportedError: there is none.
        """
        common = self._common(request, most)
        if common is None:
            ours = request.__message__.versions
            theirs = self._versions.get(request.__message__.key)
            said = "doesn't know it" if theirs is None else f"speaks versions {theirs[0]} to {theirs[1]}"
            last = ours[-1] if most is None else min(most, ours[-1])
            raise UnsupportedError(
                f"{self.broker}: {request.__message__.api}: the broker {said}, wanted is one of {ours[0]} to {last}"
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
        """Whether it is closed, or lost."""
        return self._why is not None

    @property
    def in_flight(self) -> int:
        """Requests that aren't answered yet."""
        return len(self._waiting) + len(self._held)

    async def ask(
        self, request: Request, response: type[R], *, version: int | None = None, timeout_ms: float | None = None
    ) -> R:
        """Send a request and wait for the answer.

        Args:
            request, response: the message, and the class of the answer.
            version: the newest both speak by default.
            timeout_ms: `request_timeout_ms` by default.

        Raises:
            ConnectionLostError: it is closed or breaks. What became of the request isn't known.
            RequestTimeoutError: no answer in time; the connection is closed, since what comes later is of no use.
            UnsupportedError: the broker doesn't speak a version that has all of the request.
        """
        return await self.send(request, response, version=version, timeout_ms=timeout_ms)

    def send(
        self, request: Request, response: type[R], *, version: int | None = None, timeout_ms: float | None = None
    ) -> asyncio.Future[R]:
        """Send a request; it is on its way when this returns, and the future has the answer. Raises as `ask`."""
        pieces, version = self._encoded(request, version)
        waiting = self._expect(request, response, version, timeout_ms)
        if self._held_back():
            self._held.append((type(request), version, pieces, waiting))
            self._watch_until(waiting.deadline)
        else:
            self._write(type(request), version, pieces, waiting)
        return waiting.future

    def tell(self, request: Request, *, version: int | None = None) -> None:
        """Send a request that isn't answered: Produce with acks=0.

        Raises:
            ConnectionLostError, UnsupportedError: as `ask`.
        """
        pieces, version = self._encoded(request, version)
        if self._held_back():
            self._held.append((type(request), version, pieces, None))
        else:
            self._write(type(request), version, pieces, None)

    async def drained(self) -> None:
        """Wait while much of what was sent is still here, since the broker doesn't read.

        Raises:
            ConnectionLostError: the connection breaks.
            RequestTimeoutError: it takes longer than `request_timeout_ms`; the connection is closed.
        """
        if not self._writable.is_set():
            ms = self._config.request_timeout_ms
            try:
                async with asyncio.timeout(ms / 1000):
                    await self._writable.wait()
            except TimeoutError:
                self._lose(f"the broker has read nothing for {ms} ms")
                raise RequestTimeoutError(f"{self.broker}: the broker has read nothing for {ms} ms") from None
        self._check_open()

    async def close(self) -> None:
        """Send what is left and end; whoever waits for an answer gets a `ConnectionLostError`. Always ends soon."""
        transport = self._transport
        self._fail("it was closed here", None)
        if transport is not None and not self._ended.is_set():
            transport.close()
            try:
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._ended.wait()
            except TimeoutError:
                transport.abort()
                await self._ended.wait()
        if self._authenticating is not None:
            await asyncio.wait((self._authenticating,))

    async def _ask_at_once(self, request: Request, response: type[R], version: int | None = None) -> R:
        """Ask past those that are held back: introductions and authentication."""
        pieces, version = self._encoded(request, version)
        waiting = self._expect(request, response, version, None)
        self._write(type(request), version, pieces, waiting)
        return cast(R, await waiting.future)

    def _encoded(self, request: Request, version: int | None) -> tuple[list[Buffer], int]:
        self._check_open()
        version = self.version(type(request), version) if version is None else version
        try:
            return request.__codecs__[version].encode(request, _as_it_is), version
        except UnsupportedVersionError as error:
            raise UnsupportedError(f"{self.broker}: {error}") from error

    def _expect(self, request: Request, response: type[R], version: int, timeout_ms: float | None) -> _Waiting:
        ms = self._config.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._loop.time() + ms / 1000
        return _Waiting(request.__message__.api, response, version, self._loop.create_future(), deadline, ms)

    def _check_open(self) -> None:
        if self._why is not None:
            raise ConnectionLostError(f"{self.broker}: {self._why}")

    # Held back: while throttled, or while authentication is renewed

    def _held_back(self) -> bool:
        return (
            bool(self._held) or self._authenticating is not None or self._loop.time() < self.throttled_until
        ) and self._hold()

    def _hold(self) -> bool:
        if self._release is None and self._authenticating is None:
            self._release = self._loop.call_at(self.throttled_until, self._send_held)
        return True

    def _send_held(self) -> None:
        self._release = None
        if self._authenticating is not None:
            return  # comes back when that is done
        if self._loop.time() < self.throttled_until:
            self._hold()
            return
        while self._held and self._why is None:
            request, version, pieces, waiting = self._held.popleft()
            if waiting is None or not waiting.future.done():
                self._write(request, version, pieces, waiting)

    # Bytes out

    def _write(self, request: type[Request], version: int, pieces: list[Buffer], waiting: _Waiting | None) -> None:
        assert self._transport is not None
        spec = request.__message__
        self._correlation = correlation = (self._correlation + 1) & 0x7FFFFFFF
        client = self._client + b"\0" if spec.flexible_in(version) else self._client
        size = _HEADER.size - 4 + len(client) + sum(map(len, pieces))
        pieces.insert(0, _HEADER.pack(size, spec.key, version, correlation) + client)
        if waiting is not None:
            waiting.correlation = correlation
            self._waiting.append(waiting)
            self._watch_until(waiting.deadline)
        self.idle_since = int(self._loop.time() * 1000)
        if size <= _JOINED:
            self._transport.write(b"".join(pieces))
            return
        small: list[Buffer] = []
        for piece in pieces:
            if len(piece) < _JOINED:
                small.append(piece)
                continue
            self._transport.write(b"".join(small))
            self._transport.write(piece)
            small.clear()
        self._transport.write(b"".join(small))

    def pause_writing(self) -> None:
        """The broker doesn't read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has read."""
        self._writable.set()

    # Bytes in

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_HIGH_WATER)
        self.idle_since = int(self._loop.time() * 1000)
        if self._why is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> Any:
        """Where the next bytes go."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        try:
            for frame in self._reader.filled(nbytes):
                self._answered(frame)
                if self._why is not None:
                    return
        except FrameSizeError as error:
            self._lose(str(error))
        except ProtocolError as error:
            self._lose(f"an answer that doesn't decode: {error}")

    def eof_received(self) -> None:
        """The broker has nothing more to say."""
        self._lose("the broker closed the connection")

    def connection_lost(self, exc: BaseException | None) -> None:
        """The socket is gone."""
        self._fail(str(exc) if exc else "the broker closed the connection", exc)
        self._transport = None
        self._ended.set()

    def _answered(self, frame: bytes) -> None:
        if len(frame) < 4:
            self._lose(f"an answer of {len(frame)} bytes")
            return
        (correlation,) = _ID.unpack_from(frame)
        if not self._waiting or self._waiting[0].correlation != correlation:
            wanted = f"the one to {self._waiting[0].correlation} is next" if self._waiting else "nothing was asked"
            self._lose(f"an answer to request {correlation}, but {wanted}")
            return
        waiting = self._waiting[0]
        answer = _decoded(waiting, frame)
        self._waiting.popleft()
        now = self._loop.time()
        self.idle_since = int(now * 1000)
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.throttled_until = max(self.throttled_until, now + throttle_ms / 1000)
        if not waiting.future.done():
            waiting.future.set_result(answer)

    # The end

    def _watch_until(self, deadline: float) -> None:
        """See to it that something happens at a deadline. There is one timer, for the first of them."""
        if self._watch is None or self._watch.when() > deadline:
            if self._watch is not None:
                self._watch.cancel()
            self._watch = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        self._watch = None
        now = self._loop.time()
        for waiting in self._waiting:
            if waiting.deadline <= now:
                why = f"{waiting.api} wasn't answered within {waiting.timeout_ms:g} ms"
                if not waiting.future.done():
                    waiting.future.set_exception(RequestTimeoutError(f"{self.broker}: {why}"))
                self._lose(why)
                return
        for _, _, _, held in self._held:
            if held is not None and held.deadline <= now and not held.future.done():
                why = f"{held.api} was held back for {held.timeout_ms:g} ms: the broker throttles this client"
                held.future.set_exception(RequestTimeoutError(f"{self.broker}: {why}"))
        deadlines = [each.deadline for each in self._waiting]
        deadlines += [held.deadline for *_, held in self._held if held is not None and not held.future.done()]
        if deadlines:
            self._watch_until(min(deadlines))

    def _lose(self, why: str) -> None:
        transport = self._transport
        self._fail(why, None)
        if transport is not None:
            transport.abort()

    def _fail(self, why: str, cause: BaseException | None) -> None:
        """Take no more, and tell everybody who waits; once."""
        if self._why is not None:
            return
        self._why, self._cause = why, cause
        for timer in (self._watch, self._release, self._renewal):
            if timer is not None:
                timer.cancel()
        if self._authenticating is not None and self._authenticating is not asyncio.current_task():
            self._authenticating.cancel()
        waiting = [*self._waiting, *(held for *_, held in self._held if held is not None)]
        self._waiting.clear()
        self._held.clear()
        for each in waiting:
            if not each.future.done():
                each.future.set_exception(ConnectionLostError(f"{self.broker}: {each.api}: {why}"))
        self._writable.set()
        if self.on_lost is not None:
            self.on_lost(self)


def _as_it_is(pieces: list[Buffer]) -> list[Buffer]:
    return pieces


def _decoded(waiting: _Waiting, frame: bytes) -> Response | None:
    """The answer in a frame; None if nobody waits for it any more.

    Raises:
        ProtocolError: it isn't what it should be.
    """
    if waiting.future.done():
        return None
    spec, version = waiting.response.__message__, waiting.version
    position = 4
    if spec.header_version(version):
        if len(frame) > 4 and frame[4] == 0:
            position = 5
        else:
            _, position = ResponseHeader.read(frame, 0, 1)
    elif spec.key == _API_VERSIONS and frame.startswith(_NOT_SO_NEW, 4):
        version = 0  # the broker doesn't have the version, and answers in one that everybody has
    answer, end = waiting.response.read(frame, position, version)
    if end != len(frame):
        raise ProtocolError(spec.name, version, "", end - position, f"{len(frame) - end} bytes too many")
    return answer
