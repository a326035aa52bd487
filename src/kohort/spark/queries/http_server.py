"""The HTTP server of an instance: queries of its stores and those of others, its tasks, health and metrics."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote

import msgspec
from aiohttp import web

from kohort.protocol.records.partitioner import partition_of
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.queries.listening_sockets import listening_sockets
from kohort.spark.queries.peer_client import FORWARDED, MESSAGE_PACK, PeerClient, address
from kohort.spark.queries.peer_messages import Answer, Missing, PeerQuery, encode, questions
from kohort.spark.queries.query_router import GLOBAL, QueryRouter
from kohort.spark.queries.queryable import Queryable, StoreInfo
from kohort.spark.queries.requests import BadRequestError, KeyRequest, RangeRequest
from kohort.spark.queries.result_pages import shown_key, shown_value
from kohort.spark.queries.url_keys import KeyTextError

__all__ = ["QueryServer"]

log = logging.getLogger(__name__)

_silent: Final = logging.getLogger("kohort.spark.queries.http")
"""Of requests that aren't HTTP aiohttp logs an error with its traceback each; anybody could fill the log."""

_silent.setLevel(logging.CRITICAL)

_MAX_LINE: Final = 64 * 1024
_MAX_FIELDS: Final = 32
_JSON: Final = "application/json"
_PROMETHEUS: Final = "text/plain; version=0.0.4"
_HELP: Final = {
    "/stores": "the stores, and what is open here",
    "/stores/{name}/{key}": "the value of a key",
    "/stores/{name}?from=&to=&prefix=&key=&limit=": "keys and values in order, page by page",
    "/tasks": "what this instance does",
    "/health": "whether it gets on",
    "/metrics": "numbers for Prometheus",
}


class QueryServer:
    """Answers over HTTP, in the instance's event loop; stores are read in threads.

        server = QueryServer(instance, overview, metrics, "0.0.0.0", 8080)
        await server.start()

    Whoever reaches the port can read all state: there are no users and no passwords here.

    Args:
        instance: whose stores are asked for.
        overview, metrics: listeners of the same instance.
        host, port: where to listen, as `listening_sockets`.
        forward_timeout_ms: how long another instance may take to answer.
    """

    def __init__(
        self,
        instance: Queryable,
        overview: Overview,
        metrics: Metrics,
        host: str,
        port: int,
        *,
        forward_timeout_ms: int = 5_000,
    ) -> None:
        self._instance = instance
        self._overview = overview
        self._metrics = metrics
        self._address = (host, port)
        self._peers = PeerClient(forward_timeout_ms)
        self._asking = QueryRouter(instance, self._peers)
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the port is in use, or may not be listened on.
        """
        # Keys may be any bytes: aiohttp's router, which goes by patterns over text, is left out.
        server = web.Server(self._answer, access_log=None, logger=_silent, max_line_size=_MAX_LINE)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        for each in await listening_sockets(*self._address):
            await web.SockSite(self._runner, each).start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._runner is not None, "the server isn't started"
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Stop; what is being answered has a second to end."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        await self._peers.close()
        self._asking.close()

    # Requests --------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        try:
            response = await self._routed(request)
        except (BadRequestError, KeyTextError) as error:
            response = _failure(400, "bad request", str(error))
        except web.HTTPException as error:
            response = _failure(error.status, error.reason.lower(), "instances ask short questions")
        except Exception:
            log.exception("a query failed: %.200r", request.rel_url.raw_path)
            response = _failure(500, "internal", "the query failed; the log of the instance says why")
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    async def _routed(self, request: web.BaseRequest) -> web.Response:
        path = request.rel_url.raw_path
        if path == FORWARDED:
            return await self._forwarded(request)
        if request.method not in ("GET", "HEAD"):
            return _failure(405, "method not allowed", "only GET and HEAD", {"Allow": "GET, HEAD"})
        fields = _fields(request.rel_url.raw_query_string)
        match path.strip("/").split("/", 2):
            case ["stores", name, *rest] if name:
                return await self._store(_text(name), None if not rest else _text(rest[0]), fields)
            case [("" | "stores" | "tasks" | "health" | "metrics") as page]:
                if fields:
                    raise BadRequestError(f"/{page} takes no parameters")
                return self._page(page)
            case _:
                return _failure(404, "not found", "there is no such page; GET / lists all")

    def _page(self, page: str) -> web.Response:
        match page:
            case "metrics":
                response = web.Response(body=self._metrics.text(), charset="utf-8")
                response.headers["Content-Type"] = f"{_PROMETHEUS}; charset=utf-8"
                return response
            case "health":
                health = self._overview.health_page()
                return _json(health, 503 if health["status"] in ("failing", "stopped") else 200)
            case "tasks":
                return _json({"instance": self._own(), **self._overview.tasks_page()})
            case "stores":
                return _json({"instance": self._own(), "stores": [self._listed(s) for s in self._stores().values()]})
            case _:
                return _json(_HELP)

    async def _forwarded(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return _failure(405, "method not allowed", "instances ask here with POST", {"Allow": "POST"})
        if request.content_type != MESSAGE_PACK:
            return _failure(415, "unsupported media type", f"instances ask in {MESSAGE_PACK}")
        try:
            question = questions.decode(await request.read())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequestError(f"no question: {error}") from error
        answer = await self._asking.here(question)
        return web.Response(body=encode(answer), content_type=MESSAGE_PACK)

    # Stores ----------------------------------------------------------------------------------------------------

    async def _store(self, name: str, key: str | None, fields: Mapping[str, str]) -> web.Response:
        info = self._stores().get(name)
        if info is None:
            known = ", ".join(sorted(self._stores())) or "none"
            return _failure(404, "no such store", f"the application has no store {name!r}; it has: {known}")
        count = 1 if info.subtopology is None else self._instance.partitions(info.subtopology)
        if count is None:
            return _moving(name, [Missing(0, "the instance hasn't heard yet which tasks there are")])
        every = (GLOBAL,) if info.subtopology is None else tuple(range(count))
        if key is not None:
            return await self._one(info, KeyRequest.of(info, key, fields), every)
        return await self._several(info, RangeRequest.of(info, fields, every), every)

    async def _one(self, info: StoreInfo, request: KeyRequest, every: tuple[int, ...]) -> web.Response:
        question = PeerQuery(store=info.name, partitions=every, stale=request.stale, key=request.key.stored)
        likely = _partition(info, request.key.route, every)
        first = every if likely is None else (likely,)
        answer = await self._asking.anywhere(msgspec.structs.replace(question, partitions=first))
        rest = () if info.sure or answer.rows else tuple(each for each in every if each not in first)
        if rest:
            more = await self._asking.anywhere(msgspec.structs.replace(question, partitions=rest))
            answer = Answer(more.rows, None, answer.copies + more.copies, answer.missing + more.missing)
        if not answer.rows:
            if answer.missing:
                return _moving(info.name, answer.missing)
            return _failure(404, "no such key", f"{info.name} has no key {request.key.stored.decode(errors='replace')}")
        row = answer.rows[0]
        copy = next(copy for copy in answer.copies if copy.partition == row.partition)
        return _json(
            {
                "store": info.name,
                "partition": None if row.partition == GLOBAL else row.partition,
                "instance": copy.instance,
                "role": copy.role,
                "lag": copy.lag,
                "key": shown_key(row.key, info.json_keys),
                "value": shown_value(row.value, request.state),
            }
        )

    async def _several(self, info: StoreInfo, request: RangeRequest, every: tuple[int, ...]) -> web.Response:
        partitions = every
        if request.partition is not None:
            partitions = (request.partition,)
        elif info.sure and (only := _partition(info, request.route, every)) is not None:
            partitions = (only,)
        answer = await self._asking.anywhere(
            PeerQuery(
                store=info.name,
                partitions=partitions,
                stale=request.stale,
                start=request.start,
                end=request.end,
                suffix=request.suffix,
                limit=request.limit,
            )
        )
        if answer.missing and not request.partial:
            return _moving(info.name, answer.missing)
        end = answer.until
        return _json(
            {
                "store": info.name,
                "rows": [
                    {"key": shown_key(row.key, info.json_keys), "value": shown_value(row.value, request.state)}
                    for row in answer.rows
                ],
                "next": None if end is None else f"/stores/{quote(info.name, safe='')}?{request.after(end)}",
                "copies": [copy for copy in answer.copies if copy.role not in ("active", "global")],
                "missing": [_shown_missing(lack) for lack in answer.missing],
            }
        )

    def _stores(self) -> Mapping[str, StoreInfo]:
        return self._instance.stores()

    def _listed(self, info: StoreInfo) -> dict[str, Any]:
        opened = self._instance.open_stores(info.name)
        return {
            "name": info.name,
            "key": ({"window": "start"} if info.windowed else {}) | dict(info.columns),
            "subtopology": info.subtopology,
            "partitions": None if info.subtopology is None else self._instance.partitions(info.subtopology),
            "here": [
                {"partition": store.partition, "role": store.role.value, "lag": store.lag}
                for store in sorted(opened, key=lambda store: store.partition or 0)
            ],
        }

    def _own(self) -> str | None:
        endpoint = self._instance.endpoint()
        return None if endpoint is None else address(endpoint)


def _partition(info: StoreInfo, route: bytes | None, every: tuple[int, ...]) -> int | None:
    """The partition that a key's route leads to, as whoever wrote the records chose it."""
    return None if route is None or every == (GLOBAL,) else partition_of(route, len(every), info.partitioner)


def _text(part: str) -> str:
    return unquote(part, errors="surrogateescape")  # a key may be any bytes; what must be text is checked later


def _fields(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise BadRequestError(str(error)) from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise BadRequestError("a parameter comes twice")
    return fields


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(value) + b"\n"
    return web.Response(body=body, status=status, headers=headers, content_type=_JSON, charset="utf-8")


def _failure(status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return _json({"error": error, "message": _harmless(message)}, status, headers)


def _harmless(text: str) -> str:
    return text.encode(errors="replace").decode()  # JSON can't have the halves of characters that URLs can


def _moving(store: str, missing: list[Missing]) -> web.Response:
    first = missing[0]
    return _json(
        {
            "error": "moving",
            "message": f"{store}: partition {first.partition} can't be read here now: {first.reason}"
            if first.partition != GLOBAL
            else f"{store}: {first.reason}",
            "missing": [_shown_missing(lack) for lack in missing],
        },
        503,
        {"Retry-After": "1"},
    )


def _shown_missing(lack: Missing) -> dict[str, Any]:
    return {
        "partition": None if lack.partition == GLOBAL else lack.partition,
        "reason": lack.reason,
        "ask": lack.ask,
        "copies": lack.copies,
    }
