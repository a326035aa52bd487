"""A client's connection: reads frames and writes responses, one request at a time and therefore in order.

As in Kafka, the next request starts once the last one is answered. What a client sends in the meantime waits in the
buffer, and once that is full, in the client.
"""

from __future__ import annotations

import asyncio
import functools
import struct
import time
from collections.abc import Callable
from typing import Final, Protocol, cast

from kohort.broker.audit import Audit
from kohort.broker.dispatch import Dispatcher
from kohort.broker.listener import Listener, NoPrincipalError
from kohort.broker.newcomers import Newcomer, Newcomers
from kohort.broker.refusal import Refusal
from kohort.broker.reply import BadRequestError
from kohort.broker.request_memory import FREE_OF_CHARGE, RequestMemory
from kohort.broker.session import Session
from kohort.broker.turns import LEAST_SECONDS, clock
from kohort.protocol.primitives import Buffer

_SIZE: Final = struct.Struct(">i")

_COALESCE_BYTES: Final = 64 * 1024
"""Responses are joined and sent as one buffer up to this size."""

WRITE_LIMIT: Final = 1024 * 1024
"""Bytes of unread responses from which on no more requests are read from the client."""


class Owner(Protocol):
    """What has all connections, as one of them sees it; see `Server`.

    Attributes:
        now: ms since 1970.
        memory, strangers_memory: count the bytes of unanswered requests, apart for those who aren't known yet.
        newcomers: those that still have to authenticate.
    """

    dispatcher: Dispatcher
    max_frame: int
    now: Callable[[], int]
    memory: RequestMemory
    strangers_memory: RequestMemory
    newcomers: Newcomers
    audit: Audit

    def admit(self, host: str, descriptor: int) -> Refusal | None:
        """Counts a connection by its address and file descriptor; returns why if it is refused."""
        ...

    def connected(self, connection: Connection) -> None: ...

    def disconnected(self, connection: Connection) -> None:
        """Called for each that is connected, in the end; it isn't counted any more then."""
        ...

    def unread(self, connection: Connection, size: int) -> None:
        """Called with the bytes of answers that the client hasn't read, if they are many; 0 when they are few again."""
        ...


class Connection(asyncio.Protocol):
    """A client's connection.

    Attributes:
        listener: where it came in.
        peer: the client's address, as "HOST:PORT".
        last_active: when bytes were last received or sent, in seconds of the monotonic clock.
        made: whether it was connected (with TLS: after the handshake). From then on the owner is told when it is lost.
        busy: whether a request waits for its response (a long poll, a join).
        closed_here: whether this server closed it, and not the client, nor something on the way.
    """

    def __init__(self, owner: Owner, listener: Listener) -> None:
        self._owner = owner
        self.listener = listener
        self._dispatch = owner.dispatcher.dispatch
        self._max_frame = owner.max_frame
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._chunks: list[bytes] = []  # of an incomplete frame that begins in _buffer
        self._chunks_size = 0
        self._missing = 0  # bytes until that frame is complete
        self._current_size = 0  # of the request that waits for its response
        self._counted = False
        self._memory: RequestMemory | None = None  # where they are counted
        self._has_memory = True  # to read more
        self._out: list[Buffer] = []
        self._out_size = 0
        self._in_turn = False
        self._scheduled = False
        self._blocked = False  # the client doesn't read its responses
        self._muted: asyncio.TimerHandle | None = None  # for a quota, until then
        self._newcomer: Newcomer | None = None
        self._reading = True
        self._finishing = False
        self.made = False
        self.busy = False
        self.closing = False
        self.closed_here = False
        self.session = Session()
        self.peer = ""
        self.last_active = 0.0

    @property
    def descriptor(self) -> int:
        """The number of its file descriptor; -1 once it is closed."""
        assert self._transport is not None
        number: int = self._transport.get_extra_info("socket").fileno()
        return number

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("", 0)
        self.session = Session(str(address[0]), address[1], self.listener.advertised, self.listener.protocol)
        self.session.authenticator = self.listener.authenticator()
        self.peer = f"{address[0]}:{address[1]}"
        self.last_active = time.monotonic()
        transport.set_write_buffer_limits(WRITE_LIMIT)
        self.made = True
        self._owner.connected(self)
        refusal = self._refusal(transport)
        if refusal:
            self._owner.audit.connection_refused(self.session.host, self.session.port, refusal.reason)
            self._refuse(refusal.held_ms)
        elif self.session.authenticator is not None:
            newcomers = self._owner.newcomers
            self._newcomer = newcomers.enter(self.session.host, self._fail_now)
            self.session.on_known = functools.partial(newcomers.leave, self._newcomer)

    def _refuse(self, held_ms: int) -> None:
        if not held_ms:
            self.close()
            return
        self._pause()
        self._muted = asyncio.get_running_loop().call_later(held_ms / 1000, self.abort)

    def _refusal(self, transport: asyncio.Transport) -> Refusal | None:
        """Why the client can't come in; None if it can."""
        if self.listener.tls is None:
            return self._owner.admit(self.session.host, self.descriptor)
        try:
            self.session.principal = self.listener.principal(transport.get_extra_info("ssl_object"))
        except NoPrincipalError as error:
            return Refusal(str(error))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Releases the connection; later responses are dropped."""
        self.closing = True
        self._transport = None
        if self._muted is not None:
            self._muted.cancel()
        if self._newcomer is not None:
            self._owner.newcomers.leave(self._newcomer)
        self._buffer = b""
        self._chunks.clear()
        self._chunks_size = self._current_size = 0
        self._count()
        self._owner.disconnected(self)

    def data_received(self, data: bytes) -> None:
        self.last_active = time.monotonic()
        if self._missing > len(data):
            self._chunks.append(data)
            self._chunks_size += len(data)
            self._missing -= len(data)
            self._count()
            return
        if self._chunks:
            self._chunks.append(data)
            self._buffer = b"".join((self._buffer, *self._chunks))
            self._chunks.clear()
            self._chunks_size = 0
        else:
            self._buffer = self._buffer + data if self._buffer else data
        self._missing = 0
        if self.busy or self._blocked or self._scheduled or self._muted:
            # Enough to go on at once after the response; the rest stays with the client.
            self._count()
            self._pause()
        else:
            self._take_turn()

    def pause_writing(self) -> None:
        """Called when the client doesn't read: reads no more requests."""
        self._blocked = True
        self._pause()
        self._tell_unread()

    def resume_writing(self) -> None:
        self.last_active = time.monotonic()
        self._blocked = False
        self._owner.unread(self, 0)
        if not self.busy and not self._muted:
            self._schedule()

    # Requests

    def _take_turn(self, until: float | None = None) -> None:
        """Handles the requests in the buffer, and sends their responses as one buffer.

        Args:
            until: when to stop, by `clock`; None for what is left of this turn of the loop.
        """
        self._scheduled = False
        buffer, pos, end = self._buffer, 0, len(self._buffer)
        now = self._owner.now()
        self._in_turn = True
        turns = self._owner.dispatcher.turns
        began = clock()
        if until is None:
            until = began + turns.left
        try:
            while not self.closing and not self.busy and not self._blocked and not self._muted:
                if clock() > until:
                    self._scheduled = True
                    turns.add(self._another_turn)
                    break
                if end - pos < 4:
                    self._missing = 0
                    break
                (size,) = _SIZE.unpack_from(buffer, pos)
                if not 0 <= size <= self._max_frame or not self.session.takes(size):
                    raise BadRequestError(
                        _other_protocol(buffer[pos : pos + 4], self.listener)
                        or f"a request of {size} bytes is larger than socket.request.max.bytes, or "
                        "sasl.server.max.receive.size of who isn't known yet"
                    )
                after = pos + 4 + size
                if after > end:
                    self._missing = after - end
                    break
                # A large request fills the buffer alone, and isn't copied.
                frame, start = (buffer, 4) if pos == 0 and after == end else (buffer[pos + 4 : after], 0)
                pos = after
                self.busy = True
                self._current_size = size
                if self._dispatch(frame, start, self.session, now, self._send, self._answered):
                    self.busy = False
                    self._current_size = 0
                    if self.session.throttle_ms:
                        self._mute()
        except BadRequestError as error:
            self._fail(error)
        except Exception as error:
            self._owner.audit.request_failed(self.session.host, self.session.port, error)
            self._fail(BadRequestError(f"internal error: {error}"))
        finally:
            self._in_turn = False
        self._buffer = buffer[pos:] if pos else buffer
        self._flush()
        if self.session.ends and not self.busy:
            self.close()
        self._count()
        self._read_on()
        took = clock() - began
        if took > LEAST_SECONDS:
            turns.used(took)

    def _read_on(self) -> None:
        if self.busy or self._blocked or self._scheduled or self._muted or not self._has_memory:
            return
        if not self._reading and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()

    def go_on_reading(self) -> None:
        """Reads again, after there was no memory for it."""
        self._has_memory = True
        self._read_on()

    def _count(self) -> None:
        """Counts the bytes of unanswered requests, if they are many; reads no more if there is no memory for more."""
        size = len(self._buffer) + self._chunks_size + self._current_size
        if size > FREE_OF_CHARGE or self._counted:
            memory = self._owner.memory if self.session.known else self._owner.strangers_memory
            if self._memory is not memory:
                if self._memory is not None:
                    self._memory.hold(self, 0)
                self._memory = memory
            self._counted = size > FREE_OF_CHARGE
            self._has_memory = memory.hold(self, size)
            if not self._has_memory:
                self._pause()

    def _tell_unread(self) -> None:
        if self._transport is not None:
            self._owner.unread(self, self._transport.get_write_buffer_size())

    def _another_turn(self, until: float) -> bool:
        if self._transport is not None:
            self._take_turn(until)
        return True

    def _answered(self, error: BadRequestError | None) -> None:
        """Goes on after a request that had to wait is answered, or can't be."""
        self.busy = False
        self._current_size = 0
        if error is not None:
            self._fail(error)
        if self.session.throttle_ms:
            self._mute()
        if self._in_turn:  # called from the handler of this request, or of another in this turn
            return
        self._flush()
        if self.session.ends:
            self.close()
        self._count()
        if (self._buffer or not self._reading) and not self._muted:
            self._schedule()
        if self._finishing:
            self.close()

    def _mute(self) -> None:
        """Reads nothing for as long as the client has to wait for its quotas."""
        milliseconds, self.session.throttle_ms = self.session.throttle_ms, 0
        if self._transport is not None:
            self._pause()
            self._muted = asyncio.get_running_loop().call_later(milliseconds / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self.last_active = time.monotonic()
        if not self._blocked:
            self._schedule()

    def _fail(self, error: BadRequestError) -> None:
        self._owner.audit.connection_closed(self.session.host, self.session.port, error)
        self._flush()
        self.close()

    def _fail_now(self, reason: str) -> None:
        self._owner.audit.connection_closed(self.session.host, self.session.port, reason)
        self.abort()

    def _schedule(self) -> None:
        if not self._scheduled and not self.closing:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _send(self, piece: Buffer) -> None:
        self._out.append(piece)
        self._out_size += len(piece)
        if self._out_size > WRITE_LIMIT:
            self._flush()

    def _flush(self) -> None:
        if not self._out:
            return
        out, self._out = self._out, []
        size, self._out_size = self._out_size, 0
        if self._transport is None or self._transport.is_closing():
            return
        self.last_active = time.monotonic()
        if size <= _COALESCE_BYTES:
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)
        if self._blocked:
            self._tell_unread()

    def _pause(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def finish(self) -> None:
        """Reads no more requests, and closes once the current one is answered."""
        self._pause()
        if self.busy:
            self._finishing = True
        else:
            self.close()

    def close(self) -> None:
        """Closes the connection once written responses are sent."""
        self.closing = self.closed_here = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection now."""
        self.closing = self.closed_here = True
        if self._transport is not None:
            self._transport.abort()


def _other_protocol(beginning: bytes, listener: Listener) -> str | None:
    """A hint at TLS or HTTP, if the first four bytes look like it."""
    if beginning.startswith(b"\x16\x03"):
        wanted = listener.protocol.value
        return f"this looks like TLS, but the listener is {wanted}: set security.protocol={wanted} in the client"
    if beginning in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return "this looks like HTTP, but this is Kafka's port"
    return None
