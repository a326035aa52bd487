"""The console over HTTP: pages, and streams of what changes on them."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final, cast
from urllib.parse import urlencode

from aiohttp import web

from kohort.client.administration.group_types import GroupType
from kohort.client.errors import ClientError
from kohort.client.time_limit import time_limit
from kohort.console import group_list, timeline, topic_pages
from kohort.console.audit import AuditLog, Who
from kohort.console.change_pages import ChangePages
from kohort.console.changes.plan import Access
from kohort.console.chart import HEIGHT, WIDTH
from kohort.console.cluster_reader import ClusterReader, explain
from kohort.console.desk import Desk
from kohort.console.group_list import Choice
from kohort.console.group_page import GroupReport, group_view, headings
from kohort.console.hosts import is_allowed, is_own
from kohort.console.links import group_link, topic_link
from kohort.console.live import View, difference, whole
from kohort.console.login import Login
from kohort.console.login_pages import LoginPages
from kohort.console.open_pages import OpenPages
from kohort.console.pages import Pages
from kohort.console.placement_pages import PlacementPages
from kohort.console.record_ranges import ChoiceError
from kohort.console.record_reader import RecordReader
from kohort.console.record_routes import record_routes
from kohort.console.sessions import FormTokens, Session, Sessions, is_visitor, new_visitor
from kohort.console.store_pages import StorePages
from kohort.console.throttle import Throttle
from kohort.console.topic_routes import topic_routes, topic_view
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.topology_graph import graph
from kohort.console.visit import VISIT, MissingError, RefusedError, Visit
from kohort.console.watcher import Watcher
from kohort.console.wire_routes import wire_routes
from kohort.console.words import ended
from kohort.http_access import HttpAccess
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.similar_names import did_you_mean

__all__ = ["ConsoleServer", "Policy"]

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
    "Referrer-Policy": "same-origin",  # with none at all, browsers don't tell by Origin where a form comes from
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

_OUTSIDE: Final = frozenset({"/login", "/logout"})
"""Pages that are there for who hasn't logged in; what is under /static/ is, too."""

_CHANGES_NOTHING: Final = _OUTSIDE | {"/wire"}
"""What is posted there changes nothing in the cluster."""

_SWEEP_S: Final = 60.0
"""From one look for sessions whose time is over to the next."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may look, and what they may do.

    Attributes:
        login: how somebody logs in; None if all who reach the port may look.
        write: whether anything may be changed.
        audit: is told of changes, and of what was refused.
        tls: of the port; None for plain HTTP.
        throttle: slows down who guesses.
    """

    login: Login | None = None
    write: bool = False
    audit: AuditLog = field(default_factory=AuditLog)
    tls: ssl.SSLContext | None = None
    throttle: Throttle = field(default_factory=lambda: Throttle(time.monotonic))


class _OfVisit:
    """A part of the desk of who asks, whoever that is: those of others can't be taken by mistake.

    Args:
        part: which.
        shared: the desk that counts outside of a request; None if there is none.
    """

    def __init__(self, part: str, shared: Desk | None) -> None:
        self._part = part
        self._shared = shared

    def __getattr__(self, name: str) -> Any:
        visit = VISIT.get(None)
        desk = self._shared if visit is None else visit.desk
        if desk is None:
            raise RefusedError("Log in first.", 401)
        return getattr(getattr(desk, self._part), name)


class ConsoleServer:
    """Serves the console in an event loop.

    Pages are made with what belongs to who asks: `_watcher`, `_growth`, `_reader` and `_records` are theirs while a
    request is answered, and there are none before they have logged in.

    Args:
        watcher: what is known of groups; it runs beside.
        reader: asks the brokers for topics.
        records: reads records.
        access: changes things; None if nothing is changed.
        cluster: how the cluster is called on all pages.
        host, port: where it listens; port 0 takes a free one.
        names: by which browsers may know it, beside localhost and addresses.
        growth: what is known of topics; it runs beside.
        stores: with what it asks instances of streams groups, where members say they are, for keys and values; None
            asks none.
        policy: who may look, and what they may do.
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
        stores: HttpAccess | None = None,
        access: Access | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._policy = policy or Policy()
        self._own = Desk(watcher, growth or TopicWatcher(reader), reader, records, access)
        # With a login, what isn't done for somebody isn't done at all.
        shared = self._own if self._policy.login is None else None
        self._watcher = cast(Watcher, _OfVisit("watcher", shared))
        self._growth = cast(TopicWatcher, _OfVisit("growth", shared))
        self._reader = cast(ClusterReader, _OfVisit("reader", shared))
        self._records = cast(RecordReader, _OfVisit("records", shared))
        self._pages = Pages(cluster)
        self._address = host, port
        self._names = frozenset(name.lower() for name in names)
        self._stores = None if stores is None else StorePages(self._watcher, self._page, stores)
        self._streams = 0
        self._runner: web.AppRunner | None = None
        self._cookie = ""
        self._sweeper: asyncio.Task[None] | None = None
        self._tokens = FormTokens()
        self._sessions = Sessions(lambda: asyncio.get_running_loop().time())
        self._changes = ChangePages(self._page_with, self._policy.audit, self._tokens.fits)

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
                web.get("/groups/{name:.+}", _to_group),
                web.get("/topics", self._topics),
                web.get("/topic", self._topic),
                web.get("/topics/{name:.+}", _to_topic),
                *record_routes(self._page, self._records),
                web.get("/static/{name}", _static),
                *wire_routes(self._page, self._check_form),
                *topic_routes(self._growth, self._stream),
                *PlacementPages(self._watcher, self._reader, self._page).routes(),
                *(() if self._stores is None else self._stores.routes()),
                web.get("/change", self._changes.forms),
                web.post("/change", self._changes.plan),
                web.post("/change/confirm", self._changes.confirm),
                web.get("/change/done", self._changes.result),
            ]
        )
        if self._policy.login is not None:
            pages = LoginPages(
                self._page_with,
                self._policy.login,
                self._sessions,
                self._tokens,
                self._policy.audit,
                self._set_cookie,
                self._policy.throttle,
            )
            app.add_routes(
                [
                    web.get("/login", pages.form),
                    web.post("/login", pages.enter),
                    web.post("/logout", pages.leave),
                ]
            )
            self._sweeper = asyncio.create_task(self._sweep())
        self._runner = web.AppRunner(
            app, access_log=None, logger=_aiohttp_log, handler_cancellation=True, shutdown_timeout=0.5
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, *self._address, ssl_context=self._policy.tls).start()
        # Browsers don't tell consoles of one machine apart by their ports.
        self._cookie = f"kohort-console-{self.port}"

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._runner is not None, "the server isn't started"
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Stops, when what is being changed is done, and ends open streams and sessions. May be called twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        await self._changes.close()
        self._sessions.end_all()
        if self._policy.login is not None:
            await self._policy.login.close()
        self._own.records.close()
        if self._stores is not None:
            self._stores.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._sessions.end_old()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what no page of the console asks for, and makes a page of each error."""
        VISIT.set(self._visit(request))
        if not is_allowed(request.headers.get("Host"), self._names):
            return self._message(421, "Another name", "The console isn't known by this name; --allow-host names one.")
        try:
            if _is_from_elsewhere(request):
                raise RefusedError("A page from elsewhere asks for this.")
            self._check_post(request)
            if (to_login := self._to_login(request)) is not None:
                return _secured(to_login)
            return _secured(await handler(request))
        except RefusedError as error:
            if request.method == "POST":
                self._tell_refusal(str(error), request.rel_url.path)
            return self._message(error.status, "Refused", str(error))
        except ChoiceError as error:
            return self._message(400, "That can't be done", ended(str(error)))
        except MissingError as error:
            return self._message(404, "Not found", f"{error}{await self._meant(request)}")
        except web.HTTPNotFound:
            return self._message(404, "Not found", "The console has no such page.")
        except web.HTTPMethodNotAllowed:
            return self._message(405, "Refused", "This page only shows; it changes nothing.")
        except web.HTTPRequestEntityTooLarge:
            return self._message(413, "Too much", "The console takes forms of at most 1 MiB.")
        except web.HTTPException as error:
            _secured(error)
            raise
        except KafkaError as error:
            if error.code in _GONE:
                text = f"The cluster says: {explain(error)}{await self._meant(request)}"
                return self._message(404, "Not found", text)
            return self._message(502, "The cluster refuses", explain(error))
        except ClientError as error:
            return self._message(504, "The cluster doesn't answer", explain(error))
        except ConnectionError:  # the browser is gone
            raise
        except Exception:
            log.exception("a page failed: %.200r", request.rel_url.raw_path)
            return self._message(500, "A failure of the console", "The log of the console says more.")

    async def _meant(self, request: web.Request) -> str:
        """A question after what isn't there: whether a similar name was meant; "" if there is none."""
        asked = request.query
        group_id, topic = asked.get("group") or asked.get("id"), asked.get("topic") or asked.get("name")
        names: Collection[str] = [*self._watcher.book.groups] if group_id else ()
        if topic and not group_id:
            with suppress(ClientError, KafkaError):
                names = [*await self._reader.topics()]
        found = await asyncio.to_thread(did_you_mean, group_id or topic or "", names)
        return f" {found[:1].upper()}{found[1:]}" if found else ""

    def _tell_refusal(self, why: str, path: str) -> None:
        try:
            self._policy.audit.refused(VISIT.get().who, why, action="post", target=path)
        except OSError as error:  # nothing is done, anyway
            log.error("the audit log can't be written: %s", error)

    def _visit(self, request: web.Request) -> Visit:
        """Who asks, by their cookie."""
        given = request.cookies.get(self._cookie, "")
        address = request.remote or ""
        session: Session | None
        desk: Desk | None
        if self._policy.login is None:
            session, desk = None, self._own
        else:
            session = self._sessions.find(given)
            desk = None if session is None else session.desk
        visitor = given if is_visitor(given) else new_visitor()
        who = Who("" if session is None else session.user, address)
        return Visit(who, visitor, visitor != given, self._tokens.of(visitor), session, desk)

    def _check_post(self, request: web.Request) -> None:
        """Refuses to change anything where nothing may be, or for what isn't a form of the console's own."""
        if request.path in ("/change", "/change/done") and not self._policy.write:
            raise RefusedError("The console only shows: nothing is changed unless it is started with --write.")
        if request.method != "POST":
            return
        if request.path not in _CHANGES_NOTHING and not self._policy.write:
            raise RefusedError("The console only shows: nothing is changed unless it is started with --write.")
        origin = request.headers.get("Origin")
        if origin is None and request.headers.get("Sec-Fetch-Site") != "same-origin":
            raise RefusedError("It isn't known which page asks for this: the header Origin is missing.")
        if origin is not None and not is_own(origin, request.headers.get("Host")):
            raise RefusedError("A page from elsewhere asks for this.")

    def _check_form(self, token: str) -> None:
        """Refuses a form that wasn't shown to who sends it, where they have logged in: others have no cookie for it."""
        visit = VISIT.get()
        if visit.session is not None and not self._tokens.fits(visit.visitor, token):
            raise RefusedError("This form is an old one, or wasn't shown to you. Load its page again.")

    def _to_login(self, request: web.Request) -> web.StreamResponse | None:
        """What is answered to who hasn't logged in, and must; None to others."""
        path = request.path
        if self._policy.login is None or VISIT.get().session is not None:
            return None
        if path in _OUTSIDE or path.startswith("/static/"):
            return None
        if request.method != "GET" or path.endswith("/events"):
            raise RefusedError("Log in first.", 401)
        return web.Response(
            status=303, headers={"Location": "/login?" + urlencode({"next": request.rel_url.raw_path_qs})}
        )

    def _set_cookie(self, response: web.Response, visitor: str, secure: bool) -> None:
        response.set_cookie(
            self._cookie,
            visitor,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=secure or self._policy.tls is not None,
        )

    def _message(self, status: int, title: str, text: str) -> web.Response:
        return self._page_with("message", status, title=title, text=text, here="")

    def _page(self, name: str, **values: Any) -> web.Response:
        return self._page_with(name, **values)

    def _page_with(self, name: str, status: int = 200, **values: Any) -> web.Response:
        visit = VISIT.get()
        text = self._pages.render(
            name,
            user=None if visit.session is None else visit.session.user,
            form_token=visit.form_token,
            writes=self._policy.write,
            **values,
        )
        response = web.Response(text=text, status=status, content_type="text/html")
        response.headers["Cache-Control"] = "no-store"
        if visit.is_new and (self._policy.write or self._policy.login is not None):
            self._set_cookie(response, visit.visitor, False)
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
        book = self._watcher.book  # the watcher asks what is on the page, which isn't for a request of anybody's

        def on_page() -> list[str]:
            page = group_list.choose(book.groups.values(), choice)
            return [each.listing.group_id for each in page.items]

        return await self._stream(request, lambda: self._groups_view(choice), on_page)

    async def _group(self, request: web.Request) -> web.Response:
        group_id = request.query.get("id", "")
        await self._watcher.look_at(group_id)
        report = self._watcher.report(group_id)
        if report is None:
            raise MissingError(f"There is no group {group_id!r}, or it can't be read.")
        dead_letters, letters = "", ""
        if report.group.type is GroupType.SHARE:
            dead_letters = await self._reader.dead_letter_topic(group_id)
            letters = await self._how_many(dead_letters)
        return self._page(
            "group",
            dead_letters=dead_letters,
            letters=letters,
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

    async def _how_many(self, topic: str) -> str:
        """How many records a topic has, as far as offsets tell; "" for no topic, or if that isn't told soon."""
        if not topic:
            return ""
        try:
            async with time_limit(FIRST_LOOK_S):
                return several((await self._reader.topic(topic)).offsets, "record")
        except (TimeoutError, ClientError, KafkaError):
            return ""

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
        rates = self._watcher.flows.of(group_id).rates()
        times = self._watcher.times.of(group_id)
        events = self._watcher.events.of(group_id)
        history = self._watcher.book.history(group_id)
        lags = self._watcher.lags.of(group_id)
        return group_view(
            report, history, known.trend, rates, times, now_ms, known.delay, events, lags, known.rebalances
        )

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
        session = VISIT.get().session
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
                if session is not None and not self._sessions.use(session):
                    return response
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
        page = topic_pages.choose((await self._growth.listed()).values(), text, number, internal=internal)
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
        self._growth.saw(report)
        told = topic_view(self._growth, report.topic.name)
        view = View({**told.texts, **topic_pages.count_texts(report)}, told.tables)  # of one look
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


async def _to_group(request: web.Request) -> web.Response:
    """From an address that somebody wrote by hand; the page says so if there is no such group."""
    raise web.HTTPFound(group_link(request.match_info["name"]))


async def _to_topic(request: web.Request) -> web.Response:
    raise web.HTTPFound(topic_link(request.match_info["name"]))


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in _STATIC:
        raise web.HTTPNotFound
    body = resources.files("kohort.console").joinpath("static", name).read_bytes()
    headers = {"Cache-Control": "no-cache"}
    return web.Response(body=body, content_type=_STATIC[name], charset="utf-8", headers=headers)
