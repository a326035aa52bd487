"""A broker that says what a test wants it to say, byte for byte if need be."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from kohort.client.types import Broker
from kohort.protocol.message import Request, Response
from kohort.protocol.messages import api, apis
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

__all__ = ["Asked", "HangUpError", "Reply", "ScriptedBroker", "frame"]


_MOST = 100 * 1024 * 1024
"""Bytes of a request, as for Kafka: what is longer isn't one."""


class Asked(NamedTuple):
    """A request as the broker got it."""

    request: Request
    version: int
    correlation: int
    connection: int


class HangUpError(Exception):
    """Raised by a reply: send these bytes, and close the connection."""

    def __init__(self, last_words: bytes = b"") -> None:
        self.last_words = last_words


Said = Response | bytes | None
"""What is said to a request: a response, bytes as they are, or nothing."""

Reply = Callable[[Asked], Said | Awaitable[Said]]


def frame(asked: Asked, response: Response, *, correlation: int | None = None) -> bytes:
    """The whole frame of an answer."""
    header = ResponseHeader(correlation_id=asked.correlation if correlation is None else correlation)
    head = header.encode(type(response).__message__.header_version(asked.version))
    body = head + response.encode(asked.version)
    return struct.pack(">i", len(body)) + body


class ScriptedBroker:
    """Listens on a free port, and answers by its script; ApiVersions and Metadata answer themselves if it says nothing.

    Args:
        script: replies by request.
        versions: the versions it says it speaks, by request, where they aren't all of ours.
        node_id: its id in metadata.
        context: for TLS.

    Attributes:
        asked: what came so far.
        connections: how many connections were made.
        others: brokers that metadata lists beside this one.
        topics: topics that metadata lists.
    """

    def __init__(
        self,
        script: Mapping[Any, Reply] | None = None,
        *,
        versions: Mapping[Any, tuple[int, int]] | None = None,
        node_id: int = 1,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.script: dict[type[Request], Reply] = dict(script or {})
        self.versions: dict[type[Request], tuple[int, int]] = dict(versions or {})
        self.node_id = node_id
        self.asked: list[Asked] = []
        self.connections = 0
        self.others: list[Broker] = []
        self.topics: dict[str, MetadataResponse.Topic] = {}
        self.host, self.port = "127.0.0.1", 0
        self._context = context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def broker(self) -> Broker:
        """Its address."""
        return Broker(self.node_id, self.host, self.port)

    @property
    def address(self) -> str:
        """Its address, for bootstrapping."""
        return f"{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def listen(self) -> None:
        """Start, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and all connections."""
        assert self._server is not None
        self._server.close()  # not wait_closed, which from Python 3.12 on waits for the connections, too
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hang_up(self) -> None:
        """Break all connections."""
        for writer in self._writers:
            writer.transport.abort()

    def requests(self, kind: type[Request]) -> list[Request]:
        """What came so far of a kind."""
        return [each.request for each in self.asked if isinstance(each.request, kind)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                if size > _MOST:
                    break
                asked = _read(await reader.readexactly(size), number)
                self.asked.append(asked)
                said = self._say(asked)
                if inspect.isawaitable(said):
                    said = await said
                if said is not None:
                    writer.write(said if isinstance(said, bytes) else frame(asked, said))
                    await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # the client is gone, or the test is over
        except HangUpError as last:
            writer.write(last.last_words)
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    def _say(self, asked: Asked) -> Said | Awaitable[Said]:
        kind = type(asked.request)
        if kind in self.script:
            return self.script[kind](asked)
        if kind is ApiVersionsRequest:
            return self.api_versions()
        if kind is MetadataRequest:
            return self.metadata(asked)
        raise AssertionError(f"the script doesn't say anything about {kind.__name__}")

    def api_versions(self) -> ApiVersionsResponse:
        """What it speaks."""
        spoken = []
        for each in apis():
            ours = each.request.__message__.versions
            first, last = self.versions.get(each.request, (ours[0], ours[-1]))
            key = each.request.__message__.key
            spoken.append(ApiVersionsResponse.ApiKey(api_key=key, min_version=first, max_version=last))
        return ApiVersionsResponse(api_keys=spoken)

    def metadata(self, asked: Asked) -> MetadataResponse:
        """What it knows of the cluster."""
        request = asked.request
        assert isinstance(request, MetadataRequest)
        names = [*self.topics] if request.topics is None else [each.name or "" for each in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponse.Broker(node_id=each.node_id, host=each.host, port=each.port)
                for each in (self.broker, *self.others)
            ],
            cluster_id="scripted",
            controller_id=self.node_id,
            topics=[self.topics.get(name) or MetadataResponse.Topic(name=name, error_code=3) for name in names],
        )


def _read(data: bytes, connection: int) -> Asked:
    key, version = struct.unpack_from(">hh", data)
    request = api(key).request
    header, position = RequestHeader.read(data, 0, request.__message__.header_version(version))
    return Asked(request.decode(data[position:], version), version, header.correlation_id, connection)
