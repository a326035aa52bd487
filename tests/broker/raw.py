"""A client that sends requests as raw bytes, and reads the responses."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from typing import Any

from kohort.protocol.message import Request
from kohort.protocol.messages import api
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader


def frame(request: Request, version: int, correlation_id: int = 1, client_id: str | None = "raw") -> bytes:
    """A request with its size and header."""
    key = request.__message__.key
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    body = header.encode(api(key).request_header_version(version)) + request.encode(version)
    return struct.pack(">i", len(body)) + body


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0

    @classmethod
    async def connect(cls, port: int, tls: ssl.SSLContext | None = None) -> RawClient:
        name = None if tls is None else "localhost"
        opened = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26, ssl=tls, server_hostname=name)
        return cls(*opened)

    async def call(self, request: Request, version: int | None = None, client_id: str | None = "raw") -> Any:
        """Send a request in a version, the newest unless given, and return its response."""
        which = api(request.__message__.key)
        version = which.versions[-1] if version is None else version
        self._correlation_id += 1
        self.writer.write(frame(request, version, self._correlation_id, client_id))
        correlation_id, response = await self.receive(which.key, version)
        assert correlation_id == self._correlation_id
        return response

    async def receive(self, key: int, version: int) -> tuple[int, Any]:
        """The next response, which has to be of that API and version; and its correlation id."""
        which = api(key)
        data = await self.receive_bytes()
        header, pos = ResponseHeader.read(data, 0, which.response_header_version(version))
        return header.correlation_id, which.response.decode(data[pos:], version)

    async def receive_bytes(self) -> bytes:
        size = struct.unpack(">i", await asyncio.wait_for(self.reader.readexactly(4), 60))[0]
        return await asyncio.wait_for(self.reader.readexactly(size), 60)

    async def closed(self) -> bool:
        """Whether the server has closed the connection; waits for it."""
        try:
            return await asyncio.wait_for(self.reader.read(1), 60) == b""
        except (ConnectionError, ssl.SSLError):  # SSLError: the alert that says why
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()
