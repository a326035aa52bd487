"""Dispatches requests: parses the header, checks the version, decodes, calls the handler, encodes the response."""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kohort.broker.context import Context
from kohort.broker.handlers import Handle, Served, handler
from kohort.broker.reply import BadRequestError, Reply
from kohort.broker.session import Session
from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages import API_NAMES, Api, api
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.primitives import Buffer

if TYPE_CHECKING:
    from kohort.broker.components import BrokerComponents

log = logging.getLogger("kohort.broker.dispatch")

MAX_BODY: Final = 16 * 1024 * 1024
"""Bytes of the largest request without records. Kafka allows socket.request.max.bytes for all, but decoded in Python a
message is many objects, some ten times its size."""

_HEADER: Final = struct.Struct(">hhih")
_PREFIX: Final = struct.Struct(">ii")
_PREFIX_WITH_TAGS: Final = struct.Struct(">iix")  # no tagged fields: a zero byte

_CACHED_CLIENT_ID_BYTES: Final = 256
"""Bytes of the longest client id in the cache of decoded ids."""
_LARGE: Final = 16 * 1024
"""Bytes from which a buffer is sent by itself rather than copied."""

Send = Callable[[Buffer], None]
"""Takes a response with its size prefix, in one buffer or several."""


Done = Callable[[BadRequestError | None], None]
"""Called when a request is done, with the reason if the connection must be closed."""


class Route:
    """An API in one version: its decoder, handler and encoder."""

    __slots__ = (
        "api",
        "encode",
        "error_field",
        "flexible",
        "handle",
        "header_size",
        "max_size",
        "pack",
        "read",
        "returns_records",
        "version",
    )

    def __init__(self, which: Api, version: int, served: Served, handle: Handle) -> None:
        self.api = which
        self.version = version
        self.read: Callable[[bytes, int], tuple[Any, int]] = which.request.__codecs__[version].read
        self.encode: Callable[..., Any] = which.response.__codecs__[version].encode
        self.handle = handle
        self.flexible = which.request_header_version(version) == 2
        prefix = _PREFIX_WITH_TAGS if which.response_header_version(version) == 1 else _PREFIX
        self.pack = prefix.pack
        self.header_size = prefix.size - 4
        self.max_size = None if served.takes_records else MAX_BODY
        self.returns_records = served.returns_records
        self.error_field = "error_code" in which.response.__struct_fields__

    def respond(self, correlation_id: int, response: Response, send: Send) -> int:
        """Sends a response, and returns its size in bytes."""
        if not self.returns_records:
            body = self.encode(response)
            size = self.header_size + len(body)
            send(self.pack(size, correlation_id) + body)
            return size
        pieces: list[Buffer] = self.encode(response, _pieces)
        size = self.header_size + sum(map(len, pieces))
        send(self.pack(size, correlation_id))
        for piece in pieces:
            send(piece)
        return size


def _pieces(parts: list[Buffer]) -> list[Buffer]:
    """Joins the small parts of a message; large ones aren't copied."""
    out: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) < _LARGE:
            small.append(part)
            continue
        out.append(b"".join(small))
        out.append(part)
        small.clear()
    out.append(b"".join(small))
    return out


class Dispatcher:
    """Decodes requests, calls their handlers, and sends the responses."""

    def __init__(self, broker: BrokerComponents) -> None:
        self._broker = broker
        self._routes: dict[int, Route] = {}
        self._client_ids: dict[bytes, str] = {}
        self._observe = broker.metrics.observe

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
        began = time.perf_counter()
        try:
            key, version, correlation_id, length = _HEADER.unpack_from(frame, start)
        except struct.error:
            raise BadRequestError(f"a request of {len(frame) - start} bytes is shorter than its header") from None
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
        try:
            if route.flexible:
                pos = pos + 1 if frame[pos] == 0 else _skip_tags(frame, pos)
            request = route.read(frame, pos)[0]
        except (IndexError, ValueError, OverflowError, struct.error) as error:
            raise BadRequestError(f"{route.api.name} v{version} doesn't decode: {error}") from None
        context = Context(self._broker, version, now, client_id, session)
        response = self._call(route, request, context)
        if type(response) is Reply:
            if not response.done:

                def answer(response: Response | BadRequestError | None) -> None:
                    # This runs within the work of another request, which must not fail because of this one.
                    if isinstance(response, BadRequestError):
                        done(response)
                        return
                    try:
                        self._finish(route, correlation_id, response, began, size, send)
                    except BadRequestError as error:
                        done(error)
                    except Exception as error:
                        log.exception("%s v%d could not be answered", route.api.name, version)
                        done(BadRequestError(f"{route.api.name} failed: {error}"))
                    else:
                        done(None)

                response.then(answer)
                return False
            response = response.value
            if isinstance(response, BadRequestError):
                raise response
        self._finish(route, correlation_id, response, began, size, send)
        return True

    def _call(self, route: Route, request: Request, context: Context) -> Any:
        try:
            return route.handle(request, context)
        except BadRequestError:
            raise
        except Exception as error:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
            if not isinstance(error, KafkaError):
                log.exception("%s v%d failed", route.api.name, route.version)
            if not route.error_field:
                raise BadRequestError(f"{route.api.name} failed: {error}") from error
            return route.api.response(error_code=code)  # type: ignore[call-arg]

    def _finish(
        self, route: Route, correlation_id: int, response: Response | None, began: float, size: int, send: Send
    ) -> None:
        sent = 0
        if response is not None:
            try:
                sent = route.respond(correlation_id, response, send)
            except ProtocolError as error:
                log.exception("the response to %s v%d doesn't encode", route.api.name, route.version)
                raise BadRequestError(f"{route.api.name} failed: {error}") from error
        self._observe(route.api.key, time.perf_counter() - began, size, sent)

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

        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=api_keys())
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


def _skip_tags(frame: bytes, pos: int) -> int:
    """The position after the tagged fields of a header."""
    from kohort.protocol.primitives import read_uvarint

    count, pos = read_uvarint(frame, pos)
    for _ in range(count):
        _, pos = (0, pos + 1) if frame[pos] == 0 else read_uvarint(frame, pos)
        size, pos = (0, pos + 1) if frame[pos] == 0 else read_uvarint(frame, pos)
        pos += size
        if pos > len(frame):
            raise IndexError(f"tagged fields of the header end after the request, at byte {pos}")
    return pos
