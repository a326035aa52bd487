"""A route: an API in one version, from a request's bytes to its response's."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any, Final

from kohort.broker.handlers import Handle, Served
from kohort.broker.reply import BadRequestError
from kohort.broker.turns import Slices
from kohort.protocol.codec import Codec
from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages import Api
from kohort.protocol.primitives import Buffer

log = logging.getLogger("kohort.broker.dispatch")

MAX_BODY: Final = 16 * 1024 * 1024
"""Bytes of the largest request without records. Kafka allows socket.request.max.bytes for all, but decoded in Python a
message is many objects, some ten times its size."""

_PREFIX: Final = struct.Struct(">ii")
_PREFIX_WITH_TAGS: Final = struct.Struct(">iix")  # no tagged fields: a zero byte

_LARGE_PIECE: Final = 16 * 1024
"""Bytes from which a buffer is sent by itself rather than copied."""

Send = Callable[[Buffer], None]
"""Takes a response with its size prefix, in one buffer or several."""


class Route:
    """An API in one version: its decoder, handler and encoder.

    Attributes:
        pack: packs size and correlation id, the header of a response.
        max_size: of a request, in bytes; None where socket.request.max.bytes alone counts.
    """

    __slots__ = (
        "_max_items",
        "_reader",
        "_writer",
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
        # Functions of a codec are compiled when they are first asked for, those in slices for large messages alone.
        self._reader: Codec[Any] = which.request.__codecs__[version]
        self._writer: Codec[Any] = which.response.__codecs__[version]
        self.read = self._reader.read
        self.encode = self._writer.encode
        self.handle = handle
        self.flexible = which.request_header_version(version) == 2
        prefix = _PREFIX_WITH_TAGS if which.response_header_version(version) == 1 else _PREFIX
        self.pack = prefix.pack
        self.header_size = prefix.size - 4
        self._max_items = served.max_items
        self.max_size = None if served.takes_records else MAX_BODY
        self.returns_records = served.returns_records
        self.error_field = "error_code" in which.response.__struct_fields__

    def respond(self, correlation_id: int, response: Response, send: Send) -> int:
        """Sends a response, and returns its size in bytes.

        Raises:
            BadRequestError: it doesn't encode.
        """
        try:
            if not self.returns_records:
                body = self.encode(response)
                size = self.header_size + len(body)
                send(self.pack(size, correlation_id) + body)
                return size
            return self._send_pieces(correlation_id, self.encode(response, _pieces), send)
        except ProtocolError as error:
            raise self._not_encoded(error) from error

    def respond_in_slices(self, correlation_id: int, response: Response, send: Send) -> Slices[int]:
        """Does the same in slices."""
        try:
            join = _pieces if self.returns_records else _one_piece
            pieces: list[Buffer] = yield from self._writer.encode_slices(response, join)
        except ProtocolError as error:
            raise self._not_encoded(error) from error
        return self._send_pieces(correlation_id, pieces, send)

    def read_in_slices(self, frame: bytes, pos: int) -> Slices[Request]:
        """Decodes the request that begins at `pos`.

        Raises:
            BadRequestError: it doesn't decode.
            KafkaError: INVALID_REQUEST if its arrays have more elements than the API takes.
        """
        items = 0
        reading = self._reader.read_slices(frame, pos)
        while True:
            try:
                items += next(reading)
            except StopIteration as stop:
                request: Request = stop.value[0]
                return request
            except ProtocolError as error:
                raise BadRequestError(f"{self.api.name} v{self.version} doesn't decode: {error}") from None
            if items > self._max_items:
                reason = f"{self.api.name} of more than {self._max_items} items"
                raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
            yield

    def failed(self, error: Exception) -> Response:
        """The response for an exception of the handler.

        Raises:
            BadRequestError: the response has no field for errors.
        """
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        if not isinstance(error, KafkaError):
            log.error("%s v%d failed", self.api.name, self.version, exc_info=error)
        if not self.error_field:
            raise BadRequestError(f"{self.api.name} failed: {error}") from error
        return self.api.response(error_code=code)  # type: ignore[call-arg]

    def _not_encoded(self, error: ProtocolError) -> BadRequestError:
        log.error("the response to %s v%d doesn't encode", self.api.name, self.version, exc_info=error)
        return BadRequestError(f"{self.api.name} failed: {error}")

    def _send_pieces(self, correlation_id: int, pieces: list[Buffer], send: Send) -> int:
        size = self.header_size + sum(map(len, pieces))
        send(self.pack(size, correlation_id))
        for piece in pieces:
            send(piece)
        return size


def _one_piece(parts: list[Buffer]) -> list[Buffer]:
    return [b"".join(parts)]


def _pieces(parts: list[Buffer]) -> list[Buffer]:
    """Joins the small parts of a message; large ones aren't copied."""
    out: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) < _LARGE_PIECE:
            small.append(part)
            continue
        out.append(b"".join(small))
        out.append(part)
        small.clear()
    out.append(b"".join(small))
    return out
