"""Requests as bytes, and responses back: what the generators of group traffic are built from."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from kohort.protocol.message import Request, Response
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader

Answer = TypeVar("Answer", bound=Response)


def frame(request: Request, version: int, correlation_id: int = 0) -> bytes:
    """A request with its header and length before it."""
    spec = request.__message__
    header = RequestHeader(
        request_api_key=spec.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="benchmark",
    )
    body = header.encode(spec.header_version(version)) + request.encode(version)
    return len(body).to_bytes(4, "big") + body


class Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @staticmethod
    async def open(host: str, port: int) -> Connection:
        """Connect to a server."""
        return Connection(*await asyncio.open_connection(host, port))

    async def call(self, request: Request, version: int, answer: type[Answer]) -> Answer:
        """Send a request and wait for its response."""
        self.writer.write(frame(request, version))
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        data = await self.reader.readexactly(size)
        _, end = ResponseHeader.read(data, 0, answer.__message__.header_version(version))
        response, _ = answer.read(data, end, version)
        return response
