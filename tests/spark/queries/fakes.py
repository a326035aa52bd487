"""Instances with stores in memory, and with endpoints that the test sets."""

from __future__ import annotations

import bisect
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from aiohttp import ClientSession
from yarl import URL

from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.http_access import OPEN, HttpAccess
from kohort.protocol.records.partitioner import murmur2
from kohort.spark.monitoring.lag import RecordsLag
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from kohort.spark.program.compiled import Route
from kohort.spark.queries.http_server import QueryServer
from kohort.spark.queries.queryable import OpenStore, StoreInfo, StoreRole
from kohort.spark.state.errors import StoreClosedError
from kohort.streams.endpoint import Endpoint

DELAYS = StoreInfo(
    "delays", (("origin", "string"),), True, True, "1", route=Route.JSON, routed_by=("origin",), partition_certain=True
)
AIRLINES = StoreInfo("airlines", (("carrier", "string"),), False, False, "0", route=Route.TEXT, routed_by=("carrier",))
ROUTES = StoreInfo(
    "routes", (("origin", "string"), ("number", "int")), False, True, "1",
    route=Route.JSON, routed_by=("origin", "number"), partition_certain=True,
)  # fmt: skip
TAILS = StoreInfo(
    "tails", (("tail", "string"),), False, False, "0",
    route=Route.TEXT, routed_by=("tail",), partition_certain=True, partitioner="crc32",
)  # fmt: skip
PLANES = StoreInfo("planes", (("tailnum", "string"),), False, False, None)
STORES = {info.name: info for info in (DELAYS, AIRLINES, ROUTES, TAILS, PLANES)}
PARTITIONS = 4


class MemoryStore:
    def __init__(self, rows: Mapping[bytes, bytes] | None = None) -> None:
        self.rows = dict(rows or {})
        self.closed = False
        self.scans = 0

    def get_many(self, keys: pa.Array) -> pa.Array:
        self._check()
        return pa.array([self.rows.get(key) for key in keys.to_pylist()], pa.binary())

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        self._check()
        self.scans += 1
        keys = sorted(self.rows)
        first = bisect.bisect_left(keys, start or b"")
        last = len(keys) if end is None else bisect.bisect_left(keys, end)
        found = keys[first:last][:limit]
        return pa.table(
            {"key": pa.array(found, pa.binary()), "value": pa.array([self.rows[key] for key in found], pa.binary())}
        )

    def _check(self) -> None:
        if self.closed:
            raise StoreClosedError("closed")


@dataclass
class FakeInstance:
    own: Endpoint | None = None
    opened: list[OpenStore] = field(default_factory=list)
    known_endpoints: dict[Endpoint, EndpointPartitions] = field(default_factory=dict)
    count: int | None = PARTITIONS

    def stores(self) -> Mapping[str, StoreInfo]:
        return STORES

    def inner_stores(self) -> Collection[str]:
        return {"visits-due"}

    def partitions(self, subtopology: str) -> int | None:
        return self.count

    def inputs(self, subtopology: str, partition: int) -> Collection[TopicPartition]:
        return {TopicPartition(f"input-{subtopology}", partition)}

    def open_stores(self, name: str) -> Sequence[OpenStore]:
        return [store for store in self.opened if store.name == name and not getattr(store.store, "closed", False)]

    def lags(self) -> Mapping[str, RecordsLag]:
        return {}

    def endpoints(self) -> Mapping[Endpoint, EndpointPartitions]:
        return self.known_endpoints

    def endpoint(self) -> Endpoint | None:
        return self.own

    def opens(
        self, name: str, partition: int | None, rows: Mapping[bytes, bytes] | None = None,
        role: StoreRole = StoreRole.ACTIVE, lag: int | None = 0,
    ) -> MemoryStore:  # fmt: skip
        store = MemoryStore(rows)
        self.opened.append(OpenStore(name, partition, role, lag, store))
        return store


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Instances:
    """Instances with HTTP servers, in one event loop."""

    def __init__(self, count: int = 2, timeout_ms: int = 10_000, access: HttpAccess = OPEN) -> None:
        self._access = access
        self._count = count
        self._timeout_ms = timeout_ms
        self._stack = AsyncExitStack()
        self.fakes: list[FakeInstance] = []
        self.servers: list[QueryServer] = []
        self.overviews: list[Overview] = []

    async def __aenter__(self) -> Instances:
        self._session = await self._stack.enter_async_context(ClientSession())
        for _ in range(self._count):
            fake = FakeInstance()
            overview = Overview()
            server = QueryServer(
                fake, overview, Metrics("app", overview), "127.0.0.1", 0,
                access=self._access, forward_timeout_ms=self._timeout_ms,
            )  # fmt: skip
            await server.start()
            self._stack.push_async_callback(server.close)
            fake.own = Endpoint("127.0.0.1", server.port)
            self.fakes.append(fake)
            self.servers.append(server)
            self.overviews.append(overview)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def own(self, name: str, tasks: Mapping[int, int], standbys: Mapping[int, int] | None = None) -> None:
        """Sets the endpoints that all instances know: partition → number of the instance."""
        topic = f"input-{STORES[name].subtopology}"

        def of(which: Mapping[int, int], number: int) -> frozenset[TopicPartition]:
            return frozenset(TopicPartition(topic, partition) for partition, owner in which.items() if owner == number)

        view = {
            fake.own: EndpointPartitions(of(tasks, number), of(standbys or {}, number))
            for number, fake in enumerate(self.fakes)
            if fake.own is not None
        }
        for fake in self.fakes:
            fake.known_endpoints = dict(view)

    async def get(self, path: str, number: int = 0, method: str = "GET", **options: Any) -> Reply:
        url = URL(f"{self._access.scheme}://127.0.0.1:{self.servers[number].port}{path}", encoded=True)
        async with self._session.request(method, url, **options) as response:
            return Reply(response.status, response.headers, await response.read())


def window_key(origin: str, start: str = "2013-01-01T05:00:00.000Z") -> bytes:
    return json.dumps({"window": start, "origin": origin}, ensure_ascii=False, separators=(",", ":")).encode()


def partition_of(origin: str) -> int:
    route = json.dumps({"origin": origin}, ensure_ascii=False, separators=(",", ":")).encode()
    return (murmur2(route) & 0x7FFFFFFF) % PARTITIONS
