"""The console over HTTP: pages, and streams of what changes on them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from importlib import resources
from typing import Any, Final

from aiohttp import web

from kohort.client.administration.group_types import GroupType
from kohort.client.errors import ClientError
from kohort.client.time_limit import time_limit
from kohort.console import group_list, timeline, topic_pages
from kohort.console.chart import HEIGHT, WIDTH
from kohort.console.cluster_reader import ClusterReader, explain
from kohort.console.group_list import Choice
from kohort.console.group_page import GroupReport, group_view, headings
from kohort.console.hosts import is_allowed, is_own
from kohort.console.live import View, difference, whole
from kohort.console.open_pages import OpenPages
from kohort.console.pages import Pages
from kohort.console.placement_pages import PlacementPages
from kohort.console.record_ranges import ChoiceError
from kohort.console.record_reader import RecordReader
from kohort.console.record_routes import record_routes
from kohort.console.store_pages import StorePages
from kohort.console.topic_routes import topic_routes, topic_view
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.topology_graph import graph
from kohort.console.watcher import Watcher
from kohort.console.wire_routes import wire_routes
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = ["ConsoleServer"]

MOST_STREAMS: Final = 64
"""Open pages that are kept up to date; one more stays as it was when it came."""

FIRST_LOOK_S: Final = 0.7
"""Time to look at the groups of a page before it is answered without what isn't known yet."""

_KEEP_ALIVE_S: Final = 15.0
_WRITE_S: Final = 30.0
"""Time for a browser to take an update."""

_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_STATIC: Final = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

_GONE: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.GROUP_ID_NOT_FOUND}
)

log = logging.getLogger("kohort.console")

_aiohttp_log: Final = logging.getLogger("kohort.console.http")
"""aiohttp logs an error with a traceback for each request that isn't HTTP: anybody could fill the log."""

_aiohttp_log.setLevel(logging.CRITICAL)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ConsoleServer:
    """Serves the console in an event loop.

    Args:
        watcher: what is known of groups; it runs beside.
        reader: asks the brokers for topics.
        records: reads records.
        cluster: how the cluster is called on all pages.
        host, port: where it listens; port 0 takes a free one.
        names: by which browsers may know it, beside localhost and addresses.
        growth: what is known of topics; it runs beside.
        stores: whether it asks instances of streams groups, where members say they are, for keys and values.
    """

    def __init__(
        self,
        watcher: Watcher,
        reader: ClusterReader,
        records: RecordReader,
        *,
        cluster: str,
        host: str = "127.0.0.1",
        port: int = 0,
        names: Collection[str] = (),
        growth: TopicWatcher | None = None,
        stores: bool = False,
    ) -> None:
        self._growth = growth or TopicWatcher(reader)
        self._watcher = watcher
        self._reader = reader
        self._records = records
        self._pages = Pages(cluster)
        self._address = host, port
        self._names = frozenset(name.lower() for name in names)
        self._stores = StorePages(watcher, self._page) if stores else None
        self._streams = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Starts to listen.

        Raises:
            OSError: the port is in use, or may not be listened on.
        """
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/", _to_groups),
                web.get("/groups", self._groups),
                web.get("/groups/events", self._groups_events, allow_head=False),
                web.get("/group", self._group),
                web.get("/group/events", self._group_events, allow_head=False),
                web.get("/topics", self._topics),
                web.get("/topic", self._topic),
                *record_routes(self._page, self._records),
                web.get("/static/{name}", _static),
                *wire_routes(self._page),
                *topic_routes(self._growth, self._stream),
                *PlacementPages(self._watcher, self._reader, self._page).routes(),
                *(() if self._stores is None else self._stores.routes()),
            ]
        )
        self._runner = web.AppRunner(
            app, access_log=None, logger=_aiohttp_log, handler_cancellation=True, shutdown_timeout=0.5
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, *self._address).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._runner is not None, "the server isn't started"
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Stops, and ends open streams. May be called twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        self._records.close()
        if self._stores is not None:
            self._stores.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what no page of the console asks for, and makes a page of each error."""
        if not is_allowed(request.headers.get("Host"), self._names):
            return self._message(421, "Another name", "The console isn't known by this name; --allow-host names one.")
        if _is_from_elsewhere(request):
            return self._message(403, "Refused", "A page from elsewhere asks for this.")
        try:
            return _secured(await handler(request))
        except ChoiceError as error:
            return self._message(400, "That makes no sense", f"{error}.")
        except web.HTTPNotFound:
            return self._message(404, "Not found", "The console has no such page.")
        except web.HTTPMethodNotAllowed:
            return self._message(405, "Refused", "The console only shows; it changes nothing.")
        except web.HTTPException as error:
            _secured(error)
            raise
        except KafkaError as error:
            if error.code in _GONE:
                return self._message(404, "Not found", f"The cluster says: {explain(error)}")
            return self._message(502, "The cluster refuses", explain(error))
        except ClientError as error:
            return self._message(504, "The cluster doesn't answer", explain(error))
        except ConnectionError:  # the browser is gone
            raise
        except Exception:
            log.exception("a page failed: %.200r", request.rel_url.raw_path)
            return self._message(500, "A failure of the console", "The log of the console says more.")

    def _message(self, status: int, title: str, text: str) -> web.Response:
        response = self._page("message", title=title, text=text, here="")
        response.set_status(status)
        return response

    def _page(self, name: str, **values: Any) -> web.Response:
        response = web.Response(text=self._pages.render(name, **values), content_type="text/html")
        response.headers["Cache-Control"] = "no-store"
        _secured(response)
        return response

    # Groups --------------------------------------------------------------------------------------------------

    async def _groups(self, request: web.Request) -> web.Response:
        choice = Choice.of(request.query)
        book = self._watcher.book
        page = group_list.choose(book.groups.values(), choice)
        unseen = [each.listing.group_id for each in page.items if each.summary is None]
        if unseen:
            await self._look_soon(unseen)
            page = group_list.choose(book.groups.values(), choice)
        return self._page(
            "groups",
            here="groups",
            choice=choice,
            page=page,
            view=self._with_problem(group_list.list_view(page)),
            columns=group_list.COLUMNS,
            types=group_list.TYPES,
            states=group_list.states(book.groups.values()),
            sorts=group_list.SORTS,
        )

    async def _look_soon(self, group_ids: Collection[str]) -> None:
        """Looks at groups, but not for long: the page's stream brings what is late."""
        try:
            async with time_limit(FIRST_LOOK_S):
                await self._watcher.look_at(*group_ids)
        except (TimeoutError, ClientError, KafkaError):
            pass

    def _groups_view(self, choice: Choice) -> View:
        page = group_list.choose(self._watcher.book.groups.values(), choice)
        return self._with_problem(group_list.list_view(page))

    async def _groups_events(self, request: web.Request) -> web.StreamResponse:
        choice = Choice.of(request.query)

        def on_page() -> list[str]:
            page = group_list.choose(self._watcher.book.groups.values(), choice)
            return [each.listing.group_id for each in page.items]

        return await self._stream(request, lambda: self._groups_view(choice), on_page)

    async def _group(self, request: web.Request) -> web.Response:
        group_id = request.query.get("id", "")
        await self._watcher.look_at(group_id)
        report = self._watcher.report(group_id)
        if report is None:
            return self._message(404, "Not found", f"There is no group {group_id!r}, or it can't be read.")
        dead_letters = ""
        if report.group.type is GroupType.SHARE:
            dead_letters = await self._reader.dead_letter_topic(group_id)
        return self._page(
            "group",
            dead_letters=dead_letters,
            here="groups",
            group_id=group_id,
            type=report.group.type.value,
            view=self._with_problem(self._group_view(report)),
            headings=headings(report.group.type),
            chart_width=WIDTH,
            chart_height=HEIGHT,
            line=timeline,
            stores=self._stores is not None,
            graph=None if report.group.topology is None else graph(report.group.topology),
        )

    async def _group_events(self, request: web.Request) -> web.StreamResponse:
        group_id = request.query.get("id", "")
        kind = request.query.get("type", "")

        def view() -> View:
            report = self._watcher.report(group_id)
            gone = group_id not in self._watcher.book.groups
            if report is not None and not gone and report.group.type.value == kind:
                return self._with_problem(self._group_view(report))
            problem = "The group is gone." if gone else "The group is of another type now: load the page again."
            return View({"problem": problem} if gone or report is not None else {})

        return await self._stream(request, view, lambda: [group_id])

    def _group_view(self, report: GroupReport) -> View:
        group_id = report.group.group_id
        known = self._watcher.book.groups[group_id]
        now_ms = time.time_ns() // 1_000_000
        rates = self._watcher.flows.rates(group_id)
        times = self._watcher.times.of(group_id)
        return group_view(report, self._watcher.book.history(group_id), known.trend, rates, times, now_ms)

    def _with_problem(self, view: View) -> View:
        return View({**view.texts, "problem": self._watcher.problem}, view.tables)

    async def _stream(
        self,
        request: web.Request,
        view: Callable[[], View],
        shows: Callable[[], Collection[str]],
        watcher: OpenPages | None = None,
    ) -> web.StreamResponse:
        """Tells a page what changes: all of it first, then after each look what differs."""
        looks = watcher or self._watcher
        if self._streams >= MOST_STREAMS:
            return self._message(503, "Too many pages", "Too many pages are kept up to date already.")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        _secured(response)
        self._streams += 1
        async with AsyncExitStack() as stack:
            stack.callback(self._stream_ended)
            stack.enter_context(looks.showing(shows))
            await response.prepare(request)
            version = looks.version
            told = view()
            text = f"retry: 2000\n{_event(whole(told))}"
            while True:
                try:
                    async with time_limit(_WRITE_S):
                        await response.write(text.encode())
                except (TimeoutError, ConnectionError):  # nobody reads it
                    if request.transport is not None:
                        request.transport.abort()  # or the end of the stream would wait to be read
                    return response
                version = await looks.news(version, _KEEP_ALIVE_S)
                now = view()
                change = difference(told, now)
                told = View({**told.texts, **now.texts}, {**told.tables, **now.tables})
                text = ": still here\n\n" if change is None else _event(change)

    def _stream_ended(self) -> None:
        self._streams -= 1

    # Topics --------------------------------------------------------------------------------------------------

    async def _topics(self, request: web.Request) -> web.Response:
        text, internal = request.query.get("q", "").strip(), request.query.get("internal") == "yes"
        number = Choice.of(request.query).page
        page = topic_pages.choose((await self._reader.topics()).values(), text, number, internal=internal)
        return self._page(
            "topics",
            here="topics",
            text=text,
            internal=internal,
            page=page,
            columns=topic_pages.TOPIC_COLUMNS,
            rows=topic_pages.topic_rows(page.items, self._growth.book.of),
        )

    async def _topic(self, request: web.Request) -> web.Response:
        report = await self._reader.topic(request.query.get("name", ""))
        view = topic_view(self._growth, report.topic.name)
        return self._page(
            "topic",
            here="topics",
            report=report,
            view=view,
            chart_width=WIDTH,
            chart_height=HEIGHT,
            health=topic_pages.health(report.topic.partitions.values()),
            partition_columns=topic_pages.PARTITION_COLUMNS,
            partitions=topic_pages.partition_rows(report, self._growth.sizes),
            setting_columns=topic_pages.SETTING_COLUMNS,
            own=topic_pages.setting_rows(report.settings, own=True),
            others=topic_pages.setting_rows(report.settings, own=False),
        )


def _is_from_elsewhere(request: web.Request) -> bool:
    """Whether a page of somebody else's asks for more than to be led here.

    Browsers that come by an address over HTTP don't say so by Sec-Fetch-Site, but those that ask by a script by Origin.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is None:
        return origin is not None and not is_own(origin, request.headers.get("Host"))
    return site in ("cross-site", "same-site") and request.headers.get("Sec-Fetch-Mode") != "navigate"


def _event(change: Mapping[str, Any]) -> str:
    return f"event: change\ndata: {json.dumps(change, separators=(',', ':'))}\n\n"


def _secured(response: web.StreamResponse) -> web.StreamResponse:
    if not response.prepared:
        for name, value in _HEADERS.items():
            response.headers[name] = value
    return response


async def _to_groups(request: web.Request) -> web.Response:
    raise web.HTTPFound("/groups")


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in _STATIC:
        raise web.HTTPNotFound
    body = resources.files("kohort.console").joinpath("static", name).read_bytes()
    headers = {"Cache-Control": "no-cache"}
    return web.Response(body=body, content_type=_STATIC[name], charset="utf-8", headers=headers)
