"""Requests out and answers in, in order, over one socket."""

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
_NOT_SO_NEW: Final = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)

_JOINED: Final = 64 * 1024
"""Requests up to this many bytes are sent as one piece; the large pieces of longer ones are sent as they are."""

_HIGH_WATER: Final = 1024 * 1024
"""Bytes that may wait to be sent before `drained` waits."""

_LAST_WORDS_S: Final = 1.0
"""How long a channel that is closed may take to send what it has."""


class _Waiting:
    """A request, and who waits for its answer."""

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


_Held = tuple[type[Request], int, list[Buffer], _Waiting | None]


class Channel(asyncio.BufferedProtocol):
    """Pipelines requests, and matches the answers to them.

    Anything that shouldn't come (a wrong correlation id, bytes that don't decode, an absurd size, silence) ends the
    channel: everybody who waits gets a `ConnectionLostError` that says why.

    Args:
        broker: who is at the other end, for errors.
        client_id: what requests say of us.
        limit: bytes of the longest answer that is taken.

    Attributes:
        why: why it ended; None while it is open.
        cause: the exception that ended it, if one did.
        idle_since: when something was last sent or answered, in ms of the loop's clock.
        throttled_until: requests are held back until then, in seconds of the loop's clock (KIP-219).
        suspicion: what it may mean if the broker closes the connection before it has answered again.
        on_end: called once when it ends.
    """

    def __init__(self, broker: Broker, client_id: str, limit: int) -> None:
        self.why: str | None = None
        self.cause: BaseException | None = None
        self.idle_since = 0
        self.throttled_until = 0.0
        self.suspicion = ""
        self.on_end: Callable[[], None] | None = None
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(limit)
        client = client_id.encode()
        self._client = struct.pack(">h", len(client)) + client
        self._correlation = 0
        self._waiting: deque[_Waiting] = deque()
        self._held: deque[_Held] = deque()
        self._holding = False
        self._paused = False  # the broker doesn't read
        self._watch: asyncio.TimerHandle | None = None
        self._release: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Requests that aren't answered yet, those that are held back among them."""
        return len(self._waiting) + len(self._held)

    # Requests

    def ask(
        self, request: Request, version: int, response: type[R], timeout_ms: float, *, first: bool = False
    ) -> asyncio.Future[R]:
        """Send a request.

        Args:
            request, version, response: the message, and the class of its answer.
            timeout_ms: until when the answer must be there.
            first: not held back with others.

        Raises:
            ConnectionLostError: it has ended.
            UnsupportedVersionError: the version can't say all of the request.
        """
        pieces = self._encoded(request, version)
        future: asyncio.Future[R] = self._loop.create_future()
        deadline = self._loop.time() + timeout_ms / 1000
        waiting = _Waiting(request.__message__.api, response, version, future, deadline, timeout_ms)
        if not first and self._must_wait():
            self._hold_back(type(request), version, pieces, waiting)
        else:
            self._write(type(request), version, pieces, waiting)
        self._watch_until(deadline)
        return future

    def tell(self, request: Request, version: int) -> None:
        """Send a request that isn't answered; raises as `ask`."""
        pieces = self._encoded(request, version)
        if self._must_wait():
            self._hold_back(type(request), version, pieces, None)
        else:
            self._write(type(request), version, pieces, None)

    async def drained(self, timeout_ms: float) -> None:
        """Wait until what was sent is mostly gone, and nothing is held back.

        Raises:
            ConnectionLostError: it ends.
            RequestTimeoutError: it takes longer than that; unless requests are held back, it is ended.
        """
        if not self._writable.is_set():
            try:
                async with time_limit(timeout_ms / 1000):
                    await self._writable.wait()
            except TimeoutError:
                why = f"the broker throttles this client for more than {timeout_ms:g} ms"
                if not self._held:
                    why = f"the broker has read nothing for {timeout_ms:g} ms"
                    self.lose(why)
                raise RequestTimeoutError(f"{self._broker}: {why}") from None
        self.check_open()

    def check_open(self) -> None:
        """Raise a `ConnectionLostError` if it has ended."""
        if self.why is not None:
            raise ConnectionLostError(f"{self._broker}: {self.why}")

    def _encoded(self, request: Request, version: int) -> list[Buffer]:
        self.check_open()
        pieces: list[Buffer] = request.__codecs__[version].encode(request, _as_it_is)
        return pieces

    # Holding back

    def hold(self) -> None:
        """Hold requests back, but for those that come first, until `go_on`."""
        self._holding = True

    def go_on(self) -> None:
        """Send what was held back, unless the broker throttles us."""
        self._holding = False
        self._send_held()

    def _must_wait(self) -> bool:
        if self._holding or self._held:
            return True
        if self._loop.time() >= self.throttled_until:
            return False
        if self._release is None:
            self._release = self._loop.call_at(self.throttled_until, self._send_held)
        return True

    def _hold_back(self, request: type[Request], version: int, pieces: list[Buffer], waiting: _Waiting | None) -> None:
        self._held.append((request, version, pieces, waiting))
        self._writable.clear()

    def _send_held(self) -> None:
        if self._release is not None:
            self._release.cancel()
            self._release = None
        if self._holding or not self._held:
            return
        if self._loop.time() < self.throttled_until:
            self._release = self._loop.call_at(self.throttled_until, self._send_held)
            return
        while self._held and self.why is None:
            request, version, pieces, waiting = self._held.popleft()
            if waiting is None or not waiting.future.done():
                self._write(request, version, pieces, waiting)
        if not self._paused:
            self._writable.set()

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
        self._paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has read."""
        self._paused = False
        if not self._held:
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
        """Bytes have come."""
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
        """The broker has nothing more to say."""
        self.lose(f"the broker closed the connection{self.suspicion}")

    def connection_lost(self, exc: BaseException | None) -> None:
        """The socket is gone."""
        self._fail(str(exc) if exc else f"the broker closed the connection{self.suspicion}", exc)
        self._transport = None
        self._ended.set()

    def _answered(self, frame: bytes) -> None:
        if len(frame) < 4:
            self.lose(f"an answer of {len(frame)} bytes")
            return
        (correlation,) = _ID.unpack_from(frame)
        if not self._waiting or self._waiting[0].correlation != correlation:
            wanted = f"the one to {self._waiting[0].correlation} is next" if self._waiting else "nothing was asked"
            self.lose(f"an answer to request {correlation}, but {wanted}")
            return
        waiting = self._waiting[0]
        answer = _decoded(waiting, frame)
        self._waiting.popleft()
        self.suspicion = ""
        now = self._loop.time()
        self.idle_since = int(now * 1000)
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.throttled_until = max(self.throttled_until, now + throttle_ms / 1000)
        if not waiting.future.done():
            waiting.future.set_result(answer)

    # The end

    async def close(self) -> None:
        """Send what is left and end; always soon."""
        transport = self._transport
        self._fail("it was closed here", None)
        if transport is not None and not self._ended.is_set():
            transport.close()
            try:
                async with time_limit(_LAST_WORDS_S):
                    await self._ended.wait()
            except TimeoutError:
                transport.abort()
                await self._ended.wait()

    def lose(self, why: str) -> None:
        """End it, for a reason."""
        transport = self._transport
        self._fail(why, None)
        if transport is not None:
            transport.abort()

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
                    waiting.future.set_exception(RequestTimeoutError(f"{self._broker}: {why}"))
                self.lose(why)
                return
        for *_, held in self._held:
            if held is not None and held.deadline <= now and not held.future.done():
                why = f"{held.api} was held back for {held.timeout_ms:g} ms: the broker throttles this client"
                held.future.set_exception(RequestTimeoutError(f"{self._broker}: {why}"))
        self._held = deque(each for each in self._held if each[-1] is None or not each[-1].future.done())
        if not self._held and not self._paused:
            self._writable.set()
        deadlines = [each.deadline for each in self._waiting]
        deadlines += [held.deadline for *_, held in self._held if held is not None]
        if deadlines:
            self._watch_until(min(deadlines))

    def _fail(self, why: str, cause: BaseException | None) -> None:
        """Take no more, and tell everybody who waits; once."""
        if self.why is not None:
            return
        self.why, self.cause = why, cause
        for timer in (self._watch, self._release):
            if timer is not None:
                timer.cancel()
        waiting = [*self._waiting, *(held for *_, held in self._held if held is not None)]
        self._waiting.clear()
        self._held.clear()
        for each in waiting:
            if not each.future.done():
                each.future.set_exception(ConnectionLostError(f"{self._broker}: {each.api}: {why}"))
        self._writable.set()
        if self.on_end is not None:
            self.on_end()


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
