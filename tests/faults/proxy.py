"""A proxy between clients and brokers that lets things go wrong: by a plan for frames, or by hand for all of it.

It stands before a whole cluster: the addresses of brokers in answers are replaced with listeners of its own, so clients
that know nothing of it never go past it. Nothing else is changed, but by a fault.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Self

from kohort.protocol.messages import api
from kohort.protocol.messages.headers import ResponseHeader

from .plans import Cut, Delay, Direction, Duplicate, Fault, Frame, Plan, Swallow, Truncate, nothing

Address = tuple[str, int]
HOST = "127.0.0.1"


class FaultyProxy:
    """`async with FaultyProxy("localhost:9092", plan) as proxy:` clients connect to `proxy.bootstrap`.

    Args:
        upstream: the bootstrap servers, "host:port" with commas between.
        plan: may be replaced at any time; by default nothing goes wrong.

    Attributes:
        done: the faults there were, counted by kind and API, as ("Cut", "Fetch").
    """

    def __init__(self, upstream: str, plan: Plan = nothing) -> None:
        self.upstream = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in upstream.split(","))]
        self.plan = plan
        self.done: Counter[tuple[str, str]] = Counter()
        self.connections = 0
        self._doors: dict[Address, asyncio.Server] = {}
        self._ports: dict[Address, int] = {}
        self._links: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def __aenter__(self) -> Self:
        for address in self.upstream:
            await self._port(address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close_doors()
        await self.cut()

    @property
    def bootstrap(self) -> str:
        """For clients: a listener for each upstream address."""
        return ",".join(f"{HOST}:{self._ports[address]}" for address in self.upstream)

    async def cut(self) -> None:
        """End all connections there are."""
        for link in self._links:
            link.cancel()
        while self._links:
            await asyncio.wait(self._links)

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """While the block lasts, there are no connections and new ones are refused."""
        self._close_doors()
        await self.cut()
        try:
            yield
        finally:
            for address, port in self._ports.items():
                self._doors[address] = await self._listen(address, port)

    @asynccontextmanager
    async def stalled(self) -> AsyncIterator[None]:
        """While the block lasts, nothing passes; what was sent passes afterwards."""
        self._flowing.clear()
        try:
            yield
        finally:
            self._flowing.set()

    async def _port(self, address: Address) -> int:
        """Where clients reach a broker."""
        if address not in self._ports:
            self._doors[address] = server = await self._listen(address, 0)
            self._ports[address] = server.sockets[0].getsockname()[1]
        return self._ports[address]

    async def _listen(self, address: Address, port: int) -> asyncio.Server:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            def ended(task: asyncio.Task[None]) -> None:
                self._links.discard(task)
                writer.close()  # it may have been cancelled before it began

            link = asyncio.create_task(self._serve(address, reader, writer))
            self._links.add(link)
            link.add_done_callback(ended)

        return await asyncio.start_server(connected, HOST, port)

    async def _serve(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # cut
            await self._link(address, reader, writer)
        await hang_up(writer)

    def _close_doors(self) -> None:
        for server in self._doors.values():
            server.close()  # not wait_closed, which from Python 3.12 on waits for the connections, too
        self._doors.clear()

    async def _link(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection and its other half, until one of them ends."""
        number, self.connections = self.connections, self.connections + 1
        try:
            far_reader, far_writer = await asyncio.open_connection(*address)
        except OSError:
            return
        asked: dict[int, tuple[int, int]] = {}
        ways = [
            asyncio.create_task(self._requests(number, asked, reader, far_writer)),
            asyncio.create_task(self._responses(number, asked, far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            try:
                ended = await asyncio.gather(*ways, return_exceptions=True)
            finally:
                await hang_up(far_writer)
        for error in ended:
            if isinstance(error, Exception) and not isinstance(error, OSError):
                raise error

    async def _requests(
        self,
        number: int,
        asked: dict[int, tuple[int, int]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        while (frame := await read_frame(reader)) is not None:
            key, version, correlation = (int.from_bytes(frame[a:b], "big") for a, b in ((4, 6), (6, 8), (8, 12)))
            asked[correlation] = key, version
            if not await self._pass(number, "request", key, frame, writer):
                return

    async def _responses(
        self,
        number: int,
        asked: dict[int, tuple[int, int]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        while (frame := await read_frame(reader)) is not None:
            key, version = asked.pop(int.from_bytes(frame[4:8], "big"))
            frame = await self._readdressed(frame, key, version)
            if not await self._pass(number, "response", key, frame, writer):
                return

    async def _pass(
        self, number: int, direction: Direction, key: int, frame: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        """Pass a frame on, with what the plan has for it; False if the connection has to end."""
        await self._flowing.wait()
        what = Frame(direction, api(key).name, len(frame), number)
        fault: Fault | None = self.plan(what)
        if fault is not None:
            self.done[type(fault).__name__, what.api] += 1
        match fault:
            case None:
                writer.write(frame)
            case Delay(seconds):
                await asyncio.sleep(seconds)
                writer.write(frame)
            case Duplicate():
                writer.write(frame + frame)
            case Truncate(to):
                body = frame[4 : 4 + to]
                writer.write(len(body).to_bytes(4, "big") + body)
            case Cut(at):
                writer.write(frame[:at])
            case Swallow():
                pass
        await writer.drain()
        return not isinstance(fault, Cut)

    async def _readdressed(self, frame: bytes, key: int, version: int) -> bytes:
        """A response that leads to the proxy where it led to brokers."""
        if key not in ADDRESSES:
            return frame
        entry = api(key)
        if version not in entry.versions:
            return frame
        header, end = ResponseHeader.read(frame, 4, entry.response_header_version(version))
        response, _ = entry.response.read(frame, end, version)
        for named in ADDRESSES[key](response):
            if named.host and named.port > 0:
                named.host, named.port = HOST, await self._port((named.host, named.port))
        body = header.encode(entry.response_header_version(version)) + response.encode(version)
        return len(body).to_bytes(4, "big") + body


def node_endpoints(response: Any) -> Iterable[Any]:
    return response.node_endpoints


# What of a response has a broker's `host` and `port`, by the API's key.
ADDRESSES = {
    0: node_endpoints,  # Produce
    1: node_endpoints,  # Fetch
    3: lambda response: response.brokers,  # Metadata
    10: lambda response: [response, *response.coordinators],  # FindCoordinator
    60: lambda response: response.brokers,  # DescribeCluster
    78: node_endpoints,  # ShareFetch
    79: node_endpoints,  # ShareAcknowledge
}


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what its other end doesn't take soon is dropped."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 1)
    writer.transport.abort()


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """A frame with its length prefix; None where the stream ends, be it amidst one."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        prefix = await reader.readexactly(4)
        return prefix + await reader.readexactly(int.from_bytes(prefix, "big"))
    return None
