"""Dispatches requests: parses the header, checks the version, decodes, calls the handler, encodes the response."""

from __future__ import annotations

import functools
import struct
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from kohort.broker.authentication import answer_raw, refusal
from kohort.broker.context import Context
from kohort.broker.exchange import Done, Exchange
from kohort.broker.handlers import handler
from kohort.broker.reply import BadRequestError, Reply
from kohort.broker.route import Route, Send
from kohort.broker.session import Session
from kohort.broker.turns import Line, Slices, clock
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages import API_NAMES, api
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.security.sasl.authenticator import State

if TYPE_CHECKING:
    from kohort.broker.components import BrokerComponents

_HEADER: Final = struct.Struct(">hhih")
_PREFIX: Final = struct.Struct(">ii")
_SIZE: Final = struct.Struct(">i")

_CACHED_CLIENT_ID_BYTES: Final = 256
"""Bytes of the longest client id in the cache of decoded ids."""

LARGE: Final = 32 * 1024
"""Bytes of a request from which on it is decoded in slices."""

MAX_HEADER_TAGS: Final = 1000
"""Tagged fields of a header, which are passed over in one go; Kafka's own clients send two at most."""

LARGE_AT_ONCE: Final = 2
"""Large requests without records that are worked on at a time; the others wait in line."""


class Dispatcher:
    """Decodes requests, calls their handlers, and sends the responses."""

    def __init__(self, broker: BrokerComponents) -> None:
        self._broker = broker
        self._routes: dict[int, Route] = {}
        self._client_ids: dict[bytes, str] = {}
        self._throttling = broker.throttling
        self._observe = broker.metrics.observe
        self.line = Line(LARGE_AT_ONCE)
        self.turns = broker.turns

    def dispatch(self, frame: bytes, start: int, session: Session, now: int, send: Send, done: Done) -> bool:
        """Handles a request.

        Args:
            frame: a buffer that ends with the request.
            start: where the request starts in `frame`, after its size.
            now: ms since 1970.
            send: takes the response, now or later; not called for a request without a response.
            done: called after `send` for a request that had to wait, or if it can't be answered.

        Returns:
            Whether the request is done; otherwise `done` will be called.

        Raises:
            BadRequestError: the request can't be answered; the connection must be closed.
        """
        began = clock()
        authenticator = session.authenticator
        if authenticator is not None and authenticator.state is State.RAW_TOKENS:
            return answer_raw(session, authenticator, frame[start:], now, self._broker.audit, send, done)
        try:
            key, version, correlation_id, length = _HEADER.unpack_from(frame, start)
        except struct.error:
            raise BadRequestError(f"a request of {len(frame) - start} bytes is shorter than its header") from None
        if authenticator is not None and (why := refusal(authenticator, key, now)):
            raise BadRequestError(f"{API_NAMES.get(key, key)}: {why}")
        route = self._routes.get(key << 16 | version)
        if route is None:
            route = self.route(key, version)
            if route is None:
                send(self._unsupported_api_versions(correlation_id))
                return True
        pos = start + _HEADER.size
        size = len(frame) - start
        client_id = ""
        if length > 0:
            raw = frame[pos : pos + length]
            client_id = self._client_ids.get(raw) or self._new_client_id(raw)
            pos += length
        if route.max_size is not None and size > route.max_size:
            raise BadRequestError(f"{route.api.name} of {size} bytes; at most {route.max_size} are taken")
        large = size > LARGE
        try:
            if route.flexible:
                pos = pos + 1 if frame[pos] == 0 else _skip_tags(frame, pos)
            request = None if large else route.read(frame, pos)[0]
        except (IndexError, ValueError, OverflowError, struct.error) as error:
            raise BadRequestError(f"{route.api.name} v{version} doesn't decode: {error}") from None
        context = Context(self._broker, version, now, client_id, session, route.api.name)
        if request is None:
            exchange = self._exchange(route, correlation_id, began, size, send, done, context)
            slices = _read_and_handle(route, frame, pos, context)
            return self._wait_in_line(exchange, slices, session) if route.max_size else exchange.begin(slices)
        try:
            response = route.handle(request, context)
        except BadRequestError:
            raise
        except Exception as error:
            response = route.failed(error)
        if type(response) is GeneratorType:
            return self._exchange(route, correlation_id, began, size, send, done, context).begin(response)
        if type(response) is Reply:
            if not response.done:
                self._exchange(route, correlation_id, began, size, send, done, context).answer_later(response)
                return False
            response = response.value
            if isinstance(response, BadRequestError):
                raise response
        sent = 0
        if self._throttling.active:
            response = self._throttling.charge(key, session, client_id, response, size, clock() - began)
        if response is not None:
            sent = route.respond(correlation_id, response, send)
        self._observe(key, clock() - began, size, sent)
        return True

    def _exchange(
        self,
        route: Route,
        correlation_id: int,
        began: float,
        size: int,
        send: Send,
        done: Done,
        context: Context,
    ) -> Exchange:
        def charge(response: Any, seconds: float) -> Any:
            if not self._throttling.active:
                return response
            return self._throttling.charge(route.api.key, context.session, context.client_id, response, size, seconds)

        return Exchange(
            route,
            correlation_id,
            began,
            size,
            send=send,
            done=done,
            observe=self._observe,
            turns=self.turns,
            charge=charge,
        )

    def _wait_in_line(self, exchange: Exchange, slices: Slices[Any], session: Session) -> bool:
        """Begins once the large requests before it are done; not at all if the client goes before that."""
        line = self.line

        def in_turn() -> Slices[Any]:
            session.on_close = None
            try:
                return (yield from slices)
            finally:
                line.leave()

        def begin() -> None:
            exchange.begin_later(in_turn())

        session.on_close = functools.partial(line.withdraw, begin)
        line.enter(begin)
        return False

    def route(self, key: int, version: int) -> Route | None:
        """Makes the route of an API and version at its first request; None for an unknown version of ApiVersions."""
        found = handler(key)
        if found is None:
            raise BadRequestError(f"API {key} ({API_NAMES.get(key, 'unknown')}) isn't served")
        served, handle = found
        first, last = served.versions
        if not first <= version <= last:
            if served.request is ApiVersionsRequest:
                return None
            raise BadRequestError(f"{API_NAMES[key]} v{version} isn't served, only {first} to {last}")
        route = self._routes[key << 16 | version] = Route(api(key), version, served, handle)
        return route

    def _unsupported_api_versions(self, correlation_id: int) -> bytes:
        """The answer to an unknown version of ApiVersions: in v0, with the supported versions."""
        from kohort.broker.handlers.api_versions import api_keys

        offered = api_keys(telemetry=self._broker.client_telemetry.offered)
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=offered)
        body = response.encode(0)
        return _PREFIX.pack(4 + len(body), correlation_id) + body

    def _new_client_id(self, raw: bytes) -> str:
        try:
            client_id = raw.decode()
        except UnicodeDecodeError as error:
            raise BadRequestError(f"client id isn't UTF-8: {error}") from None
        if len(raw) <= _CACHED_CLIENT_ID_BYTES:
            if len(self._client_ids) >= 10_000:
                self._client_ids.clear()
            self._client_ids[raw] = client_id
        return client_id


def _read_and_handle(route: Route, frame: bytes, pos: int, context: Context) -> Slices[Any]:
    request = yield from route.read_in_slices(frame, pos)
    response = route.handle(request, context)
    return (yield from response) if isinstance(response, GeneratorType) else response


def _skip_tags(frame: bytes, pos: int) -> int:
    """The position after the tagged fields of a header."""
    from kohort.protocol.primitives import read_uvarint

    count, pos = read_uvarint(frame, pos)
    if count > MAX_HEADER_TAGS:
        raise ValueError(f"the header has {count} tagged fields")
    for _ in range(count):
        _, pos = (0, pos + 1) if frame[pos] == 0 else read_uvarint(frame, pos)
        size, pos = (0, pos + 1) if frame[pos] == 0 else read_uvarint(frame, pos)
        pos += size
        if pos > len(frame):
            raise IndexError(f"tagged fields of the header end after the request, at byte {pos}")
    return pos
