"""A console beside a test, on a port of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.console.cluster_reader import ClusterReader
from kohort.console.live import View, apply
from kohort.console.record_decoding import RecordDecoder
from kohort.console.record_reader import RecordReader
from kohort.console.server import ConsoleServer
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.watcher import Reads, Watcher

__all__ = ["Console", "Stream", "console"]


@dataclass
class Stream:
    """The updates of a page, and what the page comes to by them.

    Attributes:
        view: what it shows.
        changes: the updates, as they came.
    """

    response: aiohttp.ClientResponse
    view: View
    changes: list[dict[str, Any]]

    async def next(self) -> dict[str, Any]:
        """Waits for an update."""
        while True:
            line = (await self.response.content.readline()).decode()
            assert line, "the stream has ended"
            if line.startswith("data: "):
                change: dict[str, Any] = json.loads(line.removeprefix("data: "))
                self.changes.append(change)
                self.view = apply(self.view, change)
                return change


@dataclass
class Console:
    """A running console.

    Attributes:
        watcher: looks at groups when a test says so.
        growth: looks at topics when a test says so.
        http: asks it.
        port: where it listens.
    """

    watcher: Watcher
    growth: TopicWatcher
    http: aiohttp.ClientSession
    port: int

    async def page(self, path: str, status: int = 200, **fields: str) -> str:
        """A page's HTML."""
        async with self.http.get(path, params=fields) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return text

    @asynccontextmanager
    async def stream(self, path: str, **fields: str) -> AsyncIterator[Stream]:
        """The updates of a page, of which the first is there."""
        async with self.http.get(path, params=fields) as answer:
            assert answer.status == 200
            stream = Stream(answer, View(), [])
            await stream.next()
            yield stream


@asynccontextmanager
async def console(
    servers: str, *, groups: Reads | None = None, decoder: RecordDecoder | None = None, **options: Any
) -> AsyncIterator[Console]:
    """A console of a cluster, that has looked once; its groups may be made up."""
    async with Admin(servers) as admin:
        reader = ClusterReader(admin)
        watcher = Watcher(groups or reader)
        await watcher.look()
        records = RecordReader(ClientConfig(bootstrap_servers=servers), admin, decoder)
        growth = TopicWatcher(reader)
        server = ConsoleServer(watcher, reader, records, cluster=servers, growth=growth, **options)
        await server.start()
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http:
                yield Console(watcher, growth, http, server.port)
        finally:
            await server.close()
