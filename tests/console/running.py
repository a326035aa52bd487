"""A console beside a test, on a port of its own."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from typing import Any

import aiohttp

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.console.changes.plan import Access
from kohort.console.cluster_reader import ClusterReader
from kohort.console.live import View, apply
from kohort.console.record_decoding import RecordDecoder
from kohort.console.record_reader import RecordReader
from kohort.console.server import ConsoleServer
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.watcher import Reads, Watcher

__all__ = ["Console", "Stream", "console", "console_at", "hidden"]


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

    async def post(self, path: str, status: int = 200, *, origin: str | None = None, **fields: str | list[str]) -> str:
        """The page that a form leads to, as a browser sends it from a page of the console."""
        headers = {"Origin": origin or f"http://127.0.0.1:{self.port}"}
        pairs = [(name, each) for name, some in fields.items() for each in ([some] if isinstance(some, str) else some)]
        async with self.http.post(path, data=aiohttp.FormData(pairs), headers=headers) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return text

    async def plan(self, where: str, target: str, action: str, **fields: str | list[str]) -> str:
        """The page that says what a change would do: its form filled in, on the page where it is."""
        shown = await self.page("/change", **{where: target} if where else {})
        target_field = {where: target} if where else {}
        token = hidden(shown, "form_token")
        return await self.post("/change", form_token=token, action=action, **target_field, **fields)

    async def confirm(self, planned: str, status: int = 200) -> str:
        """The page that comes when a plan is confirmed."""
        token, plan = hidden(planned, "form_token"), hidden(planned, "plan")
        return await self.post("/change/confirm", status, form_token=token, plan=plan)

    @asynccontextmanager
    async def stream(self, path: str, **fields: str) -> AsyncIterator[Stream]:
        """The updates of a page, of which the first is there."""
        async with self.http.get(path, params=fields) as answer:
            assert answer.status == 200
            stream = Stream(answer, View(), [])
            await stream.next()
            yield stream


def hidden(page: str, name: str) -> str:
    """The value of a field of a page's first form that has it."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])


@asynccontextmanager
async def console(
    servers: str, *, groups: Reads | None = None, decoder: RecordDecoder | None = None, **options: Any
) -> AsyncIterator[Console]:
    """A console of a cluster, that has looked once; its groups may be made up."""
    async with Admin(servers) as admin:
        reader = ClusterReader(admin)
        watcher = Watcher(groups or reader)
        await watcher.look()
        growth = TopicWatcher(reader)
        config = ClientConfig(bootstrap_servers=servers)
        records = RecordReader(config, admin, decoder)
        access = Access(admin, config)
        server = ConsoleServer(watcher, reader, records, growth=growth, access=access, cluster=servers, **options)
        async with console_at(server, watcher, growth) as at:
            yield at


@asynccontextmanager
async def console_at(server: ConsoleServer, watcher: Watcher, growth: TopicWatcher) -> AsyncIterator[Console]:
    """A console of a server, which is started and closed."""
    await server.start()
    try:
        jar = aiohttp.CookieJar(unsafe=True)  # of an address, too
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}", cookie_jar=jar) as http:
            yield Console(watcher, growth, http, server.port)
    finally:
        await server.close()
