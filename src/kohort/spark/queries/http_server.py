"""The HTTP server of an instance: queries of its stores and those of others, its tasks, health and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote

import msgspec
from aiohttp import web

from kohort.http_access import CHALLENGE, OPEN, HttpAccess
from kohort.protocol.records.partitioner import partition_of
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.queries.bounded_server import FIRST_REQUEST_S, BoundedServer, metrics_page
from kohort.spark.queries.peer_client import FORWARDED, MESSAGE_PACK, PeerClient, address
from kohort.spark.queries.peer_messages import MissingPartition, PeerQuery, QueryResult, decode_query, encode
from kohort.spark.queries.query_router import GLOBAL, QueryRouter
from kohort.spark.queries.queryable import Queryable, StoreInfo
from kohort.spark.queries.requests import BadRequestError, KeyRequest, RangeRequest
from kohort.spark.queries.result_pages import key_json, value_json
from kohort.spark.queries.url_keys import KeyTextError

log = logging.getLogger(__name__)

_aiohttp_log: Final = logging.getLogger("kohort.spark.queries.http")
"""aiohttp logs an error with a traceback for each request that isn't HTTP: anybody could fill the log."""

_aiohttp_log.setLevel(logging.CRITICAL)

_MAX_LINE: Final = 64 * 1024
_MAX_FIELDS: Final = 32
_CLOSE: Final = {"Connection": "close"}
_JSON: Final = "application/json"
_HELP: Final = {
    "/stores": "the stores, and what is open here",
    "/stores/{name}/{key}": "the value of a key",
    "/stores/{name}?from=&to=&prefix=&key=&limit=": "keys and values in order, page by page",
    "/tasks": "the tasks of this instance, and what they do",
    "/health": "whether the instance works",
    "/metrics": "metrics for Prometheus",
    "/healthz": "whether the instance should be left running; no token is needed",
    "/readyz": "whether it runs with all its tasks; no token is needed",
}


class QueryServer(BoundedServer):
    """Serves queries over HTTP in the instance's event loop; stores are read in threads.

        server = QueryServer(instance, overview, metrics, "0.0.0.0", 8080)
        await server.start()

    Without a token and client certificates, anybody who reaches the port can read all state.

    Args:
        host, port: where it listens, as in `listening_sockets`.
        access: who may ask, and how other instances are asked, which have the same.
        forward_timeout_ms: how long a query to another instance may take.
    """

    def __init__(
        self,
        instance: Queryable,
        overview: Overview,
        metrics: Metrics,
        host: str,
        port: int,
        *,
        access: HttpAccess = OPEN,
        forward_timeout_ms: int = 5_000,
    ) -> None:
        super().__init__(self._handle, host, port, access, logger=_aiohttp_log, max_line_size=_MAX_LINE)
        self._instance = instance
        self._overview = overview
        self._metrics = metrics
        self._peers = PeerClient(forward_timeout_ms, access)
        self._router = QueryRouter(instance, self._peers)

    async def close(self) -> None:
        """Stops; requests in progress have a second to end."""
        await super().close()
        await self._peers.close()
        self._router.close()

    # Requests --------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        try:
            if request.rel_url.raw_path in ("/healthz", "/readyz") and request.method in ("GET", "HEAD"):
                response = self._check(request.rel_url.raw_path)
            elif self._access.allows(request.headers.get("Authorization")):
                response = await self._dispatch(request)
            else:
                message = "a token is needed, in the header Authorization: Bearer TOKEN"
                response = _failure(401, "unauthorized", message, {"WWW-Authenticate": CHALLENGE})
        except (BadRequestError, KeyTextError) as error:
            response = _failure(400, "bad request", str(error))
        except web.HTTPException as error:
            response = _failure(error.status, error.reason.lower(), "the request of an instance is too long")
        except Exception:
            log.exception("a query failed: %.200r", request.rel_url.raw_path)
            response = _failure(500, "internal", "the query failed; the log of the instance says why")
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    async def _dispatch(self, request: web.BaseRequest) -> web.Response:
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

    def _check(self, path: str) -> web.Response:
        """For what supervises instances, and has no token: says no more than a word."""
        reason = self._overview.why_unready() if path == "/readyz" else None
        return web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)

    def _page(self, page: str) -> web.Response:
        match page:
            case "metrics":
                return metrics_page(self._metrics.text())
            case "health":
                health = self._overview.health_page()
                return _json(health, 503 if health["status"] in ("failing", "stopped") else 200)
            case "tasks":
                return _json({"instance": self._own_address(), **self._overview.tasks_page()})
            case "stores":
                return _json(
                    {"instance": self._own_address(), "stores": [self._store_entry(s) for s in self._stores().values()]}
                )
            case _:
                return _json(_HELP)

    async def _forwarded(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return _failure(405, "method not allowed", "instances send queries here, with POST", {"Allow": "POST"})
        if request.content_type != MESSAGE_PACK:
            return _failure(415, "unsupported media type", f"instances send queries as {MESSAGE_PACK}")
        try:
            query = decode_query(await asyncio.wait_for(request.read(), FIRST_REQUEST_S))
        except TimeoutError:
            return _failure(408, "request timeout", "the request of an instance took too long to come", _CLOSE)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequestError(f"not a query: {error}") from error
        result = await self._router.query_here(query)
        return web.Response(body=encode(result), content_type=MESSAGE_PACK)

    # Stores ----------------------------------------------------------------------------------------------------

    async def _store(self, name: str, key: str | None, fields: Mapping[str, str]) -> web.Response:
        info = self._stores().get(name)
        if info is None:
            known = ", ".join(sorted(self._stores())) or "none"
            if name in self._instance.inner_stores():
                kept = f"{name!r} is what a step keeps for itself; its changelog has it. Those that can be: {known}"
                return _failure(404, "store can't be asked for", kept)
            return _failure(404, "no such store", f"the application has no store {name!r}; it has: {known}")
        count = 1 if info.subtopology is None else self._instance.partitions(info.subtopology)
        if count is None:
            return _unavailable(name, [MissingPartition(0, "the instance doesn't know yet how many tasks there are")])
        all_partitions = (GLOBAL,) if info.subtopology is None else tuple(range(count))
        if key is not None:
            return await self._get_key(info, KeyRequest.of(info, key, fields), all_partitions)
        return await self._get_range(info, RangeRequest.of(info, fields, all_partitions), all_partitions)

    async def _get_key(self, info: StoreInfo, request: KeyRequest, all_partitions: tuple[int, ...]) -> web.Response:
        query = PeerQuery(store=info.name, partitions=all_partitions, stale=request.stale, key=request.key.stored)
        likely = _likely_partition(info, request.key.route, all_partitions)
        first = all_partitions if likely is None else (likely,)
        result = await self._router.query(msgspec.structs.replace(query, partitions=first))
        if not result.rows and not info.partition_certain and first != all_partitions:
            rest = tuple(each for each in all_partitions if each != likely)
            more = await self._router.query(msgspec.structs.replace(query, partitions=rest))
            result = QueryResult(more.rows, None, result.copies + more.copies, result.missing + more.missing)
        if not result.rows:
            if result.missing:
                return _unavailable(info.name, result.missing)
            return _failure(404, "no such key", f"{info.name} has no key {request.key.stored.decode(errors='replace')}")
        row = result.rows[0]
        copy = next(copy for copy in result.copies if copy.partition == row.partition)
        return _json(
            {
                "store": info.name,
                "partition": None if row.partition == GLOBAL else row.partition,
                "instance": copy.instance,
                "role": copy.role,
                "lag": copy.lag,
                "key": key_json(row.key, info.json_keys),
                "value": value_json(row.value, request.state, info.shown),
            }
        )

    async def _get_range(self, info: StoreInfo, request: RangeRequest, all_partitions: tuple[int, ...]) -> web.Response:
        partitions = all_partitions
        if request.partition is not None:
            partitions = (request.partition,)
        elif info.partition_certain and (only := _likely_partition(info, request.route, all_partitions)) is not None:
            partitions = (only,)
        result = await self._router.query(
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
        if result.missing and not request.partial:
            return _unavailable(info.name, result.missing)
        end = result.scanned_to
        return _json(
            {
                "store": info.name,
                "rows": [
                    {
                        "key": key_json(row.key, info.json_keys),
                        "value": value_json(row.value, request.state, info.shown),
                    }
                    for row in result.rows
                ],
                "next": None if end is None else f"/stores/{quote(info.name, safe='')}?{request.after(end)}",
                "copies": [copy for copy in result.copies if copy.role not in ("active", "global")],
                "missing": [_missing_json(each) for each in result.missing],
            }
        )

    def _stores(self) -> Mapping[str, StoreInfo]:
        return self._instance.stores()

    def _store_entry(self, info: StoreInfo) -> dict[str, Any]:
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

    def _own_address(self) -> str | None:
        endpoint = self._instance.endpoint()
        return None if endpoint is None else address(endpoint)


def _likely_partition(info: StoreInfo, route: bytes | None, all_partitions: tuple[int, ...]) -> int | None:
    """The partition that a key's route leads to, by the partitioner of the topic."""
    return (
        None
        if route is None or all_partitions == (GLOBAL,)
        else partition_of(route, len(all_partitions), info.partitioner)
    )


def _text(quoted: str) -> str:
    return unquote(quoted, errors="surrogateescape")  # a key may be any bytes; names are checked later


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
    return _json({"error": error, "message": _encodable(message)}, status, headers)


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()  # unlike URLs, JSON can't have lone surrogates


def _unavailable(store: str, missing: list[MissingPartition]) -> web.Response:
    first = missing[0]
    return _json(
        {
            "error": "moving",
            "message": f"{store}: partition {first.partition} can't be read here now: {first.reason}"
            if first.partition != GLOBAL
            else f"{store}: {first.reason}",
            "missing": [_missing_json(each) for each in missing],
        },
        503,
        {"Retry-After": "1"},
    )


def _missing_json(missing: MissingPartition) -> dict[str, Any]:
    return msgspec.structs.asdict(missing) | {"partition": None if missing.partition == GLOBAL else missing.partition}
