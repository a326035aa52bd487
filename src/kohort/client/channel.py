"""Requests out and responses in, in order, over one socket."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from kohort.client.errors import ConnectionLostError, RequestTimeoutError
from kohort.client.frame_reader import FrameReader, FrameSizeError
from kohort.client.time_limit import time_limit
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode, ProtocolError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.headers import ResponseHeader
from kohort.protocol.primitives import Buffer

__all__ = ["Channel"]

R = TypeVar("R", bound=Response)

_HEADER: Final = struct.Struct(">ihhi")  # size, API key, version, correlation id
_ID: Final = struct.Struct(">i")
_API_VERSIONS: Final = 18
_UNSUPPORTED_VERSION: Final = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)

_COPIED_BELOW: Final = 64 * 1024
"""Requests up to this many bytes are sent as one piece; the large pieces of longer ones are sent as they are."""

_HIGH_WATER: Final = 1024 * 1024
"""Bytes that may wait to be sent before `drained` waits."""

_CLOSE_TIMEOUT_S: Final = 1.0
"""How long a channel that is closed may take to send what it has."""


class _PendingRequest:
    """A request without a response yet."""

    __slots__ = ("api", "correlation", "deadline", "future", "response", "timeout_ms", "version")

    def __init__(
        self,
        api: str,
        response: type[Response],
        version: int,
        future: asyncio.Future[Any],
        deadline: float,
        timeout_ms: float,
    ) -> None:
        self.api, self.response, self.version = api, response, version
        self.future, self.deadline, self.timeout_ms = future, deadline, timeout_ms
        self.correlation = -1


_HeldBack = tuple[type[Request], int, list[Buffer], _PendingRequest | None]


class Channel(asyncio.BufferedProtocol):
    """Pipelines requests, and matches responses to them.

    A bad response (a wrong correlation id, bytes that don't decode, an absurd size) or none in time ends the channel:
    all pending requests get a `ConnectionLostError` that says why.

    Args:
        broker: for errors.
        client_id: for request headers.
        limit: bytes of the longest response.

    Attributes:
        why: why it ended; None while it is open.
        cause: the exception that ended it, if one did.
        idle_since: when the last request or response was, in ms of the loop's clock.
        throttled_until: requests are held back until then, in seconds of the loop's clock (KIP-219).
        hint: what it may mean if the broker closes the connection before its next response.
        on_end: called once when it ends.
    """

    def __init__(self, broker: Broker, client_id: str, limit: int) -> None:
        self.why: str | None = None
        self.cause: BaseException | None = None
        self.idle_since = 0
        self.throttled_until = 0.0
        self.hint = ""
        self.on_end: Callable[[], None] | None = None
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(limit)
        client = client_id.encode()
        self._client = struct.pack(">h", len(client)) + client
        self._correlation = 0
        self._in_flight: deque[_PendingRequest] = deque()
        self._held_back: deque[_HeldBack] = deque()
        self._holding = False
        self._paused = False  # the write buffer is full
        self._timeout_timer: asyncio.TimerHandle | None = None
        self._throttle_timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Requests without a response yet, those that are held back included."""
        return len(self._in_flight) + len(self._held_back)

    # Requests

    def ask(
        self, request: Request, version: int, response: type[R], timeout_ms: float, *, first: bool = False
    ) -> asyncio.Future[R]:
        """Sends a request.

        Args:
            request, version, response: the request, and the class of its response.
            timeout_ms: until when the response must come.
            first: whether it is sent even if others are held back.

        Raises:
            ConnectionLostError: the channel has ended.
            UnsupportedVersionError: the version lacks some of the request's fields.
        """
        pieces = self._encoded(request, version)
        future: asyncio.Future[R] = self._loop.create_future()
        deadline = self._loop.time() + timeout_ms / 1000
        pending = _PendingRequest(request.__message__.api, response, version, future, deadline, timeout_ms)
        if not first and self._must_hold_back():
            self._hold_back(type(request), version, pieces, pending)
        else:
            self._write(type(request), version, pieces, pending)
        self._set_timeout(deadline)
        return future

    def tell(self, request: Request, version: int) -> None:
        """Sends a request without a response; raises as `ask`."""
        pieces = self._encoded(request, version)
        if self._must_hold_back():
            self._hold_back(type(request), version, pieces, None)
        else:
            self._write(type(request), version, pieces, None)

    async def drained(self, timeout_ms: float) -> None:
        """Waits until the write buffer is mostly empty, and nothing is held back.

        Raises:
            ConnectionLostError: the channel ends.
            RequestTimeoutError: it takes too long; unless requests are held back, the channel ends.
        """
        if not self._writable.is_set():
            try:
                async with time_limit(timeout_ms / 1000):
                    await self._writable.wait()
            except TimeoutError:
                why = f"the broker throttles this client for more than {timeout_ms:g} ms"
                if not self._held_back:
                    why = f"the broker has read nothing for {timeout_ms:g} ms"
                    self.lose(why)
                raise RequestTimeoutError(f"{self._broker}: {why}") from None
        self.check_open()

    def check_open(self) -> None:
        """Raises a `ConnectionLostError` if the channel has ended."""
        if self.why is not None:
            raise ConnectionLostError(f"{self._broker}: {self.why}")

    def _encoded(self, request: Request, version: int) -> list[Buffer]:
        self.check_open()
        pieces: list[Buffer] = request.__codecs__[version].encode(request, _as_it_is)
        return pieces

    # Holding back

    def hold_back_all(self) -> None:
        """Holds requests back, except for those with `first`, until `release`."""
        self._holding = True

    def release(self) -> None:
        """Sends the requests that were held back, unless the broker throttles us."""
        self._holding = False
        self._send_held_back()

    def _must_hold_back(self) -> bool:
        if self._holding or self._held_back:
            return True
        if self._loop.time() >= self.throttled_until:
            return False
        if self._throttle_timer is None:
            self._throttle_timer = self._loop.call_at(self.throttled_until, self._send_held_back)
        return True

    def _hold_back(
        self, request: type[Request], version: int, pieces: list[Buffer], pending: _PendingRequest | None
    ) -> None:
        self._held_back.append((request, version, pieces, pending))
        self._writable.clear()

    def _send_held_back(self) -> None:
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
            self._throttle_timer = None
        if self._holding or not self._held_back:
            return
        if self._loop.time() < self.throttled_until:
            self._throttle_timer = self._loop.call_at(self.throttled_until, self._send_held_back)
            return
        while self._held_back and self.why is None:
            request, version, pieces, pending = self._held_back.popleft()
            if pending is None or not pending.future.done():
                self._write(request, version, pieces, pending)
        if not self._paused:
            self._writable.set()

    # Bytes out

    def _write(
        self, request: type[Request], version: int, pieces: list[Buffer], pending: _PendingRequest | None
    ) -> None:
        assert self._transport is not None
        spec = request.__message__
        self._correlation = correlation = (self._correlation + 1) & 0x7FFFFFFF
        client = self._client + b"\0" if spec.flexible_in(version) else self._client
        size = _HEADER.size - 4 + len(client) + sum(map(len, pieces))
        pieces.insert(0, _HEADER.pack(size, spec.key, version, correlation) + client)
        if pending is not None:
            pending.correlation = correlation
            self._in_flight.append(pending)
        self.idle_since = int(self._loop.time() * 1000)
        if size <= _COPIED_BELOW:
            self._transport.write(b"".join(pieces))
            return
        small: list[Buffer] = []
        for piece in pieces:
            if len(piece) < _COPIED_BELOW:
                small.append(piece)
                continue
            self._transport.write(b"".join(small))
            self._transport.write(piece)
            small.clear()
        self._transport.write(b"".join(small))

    def pause_writing(self) -> None:
        """The write buffer is full: the broker doesn't read."""
        self._paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        """The write buffer has room again."""
        self._paused = False
        if not self._held_back:
            self._writable.set()

    # Bytes in

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_HIGH_WATER)
        self.idle_since = int(self._loop.time() * 1000)
        if self.why is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> Any:
        """Where the next bytes go."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Takes received bytes."""
        try:
            for frame in self._reader.filled(nbytes):
                self._answered(frame)
                if self.why is not None:
                    return
        except FrameSizeError as error:
            self.lose(str(error))
        except ProtocolError as error:
            self.lose(f"an answer that doesn't decode: {error}")

    def eof_received(self) -> None:
        """The broker closed its side."""
        self.lose(f"the broker closed the connection{self.hint}")

    def connection_lost(self, exc: BaseException | None) -> None:
        """The socket is gone."""
        self._fail(str(exc) if exc else f"the broker closed the connection{self.hint}", exc)
        self._transport = None
        self._closed.set()

    def _answered(self, frame: bytes) -> None:
        if len(frame) < 4:
            self.lose(f"an answer of {len(frame)} bytes")
            return
        (correlation,) = _ID.unpack_from(frame)
        if not self._in_flight or self._in_flight[0].correlation != correlation:
            wanted = f"the one to {self._in_flight[0].correlation} is next" if self._in_flight else "nothing was asked"
            self.lose(f"an answer to request {correlation}, but {wanted}")
            return
        pending = self._in_flight[0]
        answer = _decoded(pending, frame)
        self._in_flight.popleft()
        self.hint = ""
        now = self._loop.time()
        self.idle_since = int(now * 1000)
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.throttled_until = max(self.throttled_until, now + throttle_ms / 1000)
        if not pending.future.done():
            pending.future.set_result(answer)

    # Closing

    async def close(self) -> None:
        """Sends the write buffer and closes; always soon."""
        transport = self._transport
        self._fail("it was closed here", None)
        if transport is not None and not self._closed.is_set():
            transport.close()
            try:
                async with time_limit(_CLOSE_TIMEOUT_S):
                    await self._closed.wait()
            except TimeoutError:
                transport.abort()
                await self._closed.wait()

    def lose(self, why: str) -> None:
        """Ends the channel at once, for a reason."""
        transport = self._transport
        self._fail(why, None)
        if transport is not None:
            transport.abort()

    def _set_timeout(self, deadline: float) -> None:
        """Sets the timer for a deadline. There is one timer, for the first deadline."""
        if self._timeout_timer is None or self._timeout_timer.when() > deadline:
            if self._timeout_timer is not None:
                self._timeout_timer.cancel()
            self._timeout_timer = self._loop.call_at(deadline, self._check_timeouts)

    def _check_timeouts(self) -> None:
        self._timeout_timer = None
        now = self._loop.time()
        for pending in self._in_flight:
            if pending.deadline <= now:
                why = f"{pending.api} wasn't answered within {pending.timeout_ms:g} ms"
                if not pending.future.done():
                    pending.future.set_exception(RequestTimeoutError(f"{self._broker}: {why}"))
                self.lose(why)
                return
        for *_, held in self._held_back:
            if held is not None and held.deadline <= now and not held.future.done():
                why = f"{held.api} was held back for {held.timeout_ms:g} ms: the broker throttles this client"
                held.future.set_exception(RequestTimeoutError(f"{self._broker}: {why}"))
        self._held_back = deque(each for each in self._held_back if each[-1] is None or not each[-1].future.done())
        if not self._held_back and not self._paused:
            self._writable.set()
        deadlines = [each.deadline for each in self._in_flight]
        deadlines += [held.deadline for *_, held in self._held_back if held is not None]
        if deadlines:
            self._set_timeout(min(deadlines))

    def _fail(self, why: str, cause: BaseException | None) -> None:
        """Fails all pending requests, once."""
        if self.why is not None:
            return
        self.why, self.cause = why, cause
        for timer in (self._timeout_timer, self._throttle_timer):
            if timer is not None:
                timer.cancel()
        pending = [*self._in_flight, *(held for *_, held in self._held_back if held is not None)]
        self._in_flight.clear()
        self._held_back.clear()
        for each in pending:
            if not each.future.done():
                each.future.set_exception(ConnectionLostError(f"{self._broker}: {each.api}: {why}"))
        self._writable.set()
        if self.on_end is not None:
            self.on_end()


def _as_it_is(pieces: list[Buffer]) -> list[Buffer]:
    return pieces


def _decoded(pending: _PendingRequest, frame: bytes) -> Response | None:
    """Returns the response in a frame; None if its future is done, as by cancellation.

    Raises:
        ProtocolError: it doesn't decode.
    """
    if pending.future.done():
        return None
    spec, version = pending.response.__message__, pending.version
    position = 4
    if spec.header_version(version):
        if len(frame) > 4 and frame[4] == 0:
            position = 5
        else:
            _, position = ResponseHeader.read(frame, 0, 1)
    elif spec.key == _API_VERSIONS and frame.startswith(_UNSUPPORTED_VERSION, 4):
        version = 0  # the broker doesn't have the version, and responds in version 0
    answer, end = pending.response.read(frame, position, version)
    if end != len(frame):
        raise ProtocolError(spec.name, version, "", end - position, f"{len(frame) - end} bytes too many")
    return answer
