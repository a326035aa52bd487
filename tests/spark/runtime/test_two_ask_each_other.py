"""Two instances of a group that answer queries: each for itself and, by what the group says, through the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from kohort.client.admin import Admin
from kohort.spark.observability import Observability
from kohort.spark.program.compiled import Route
from kohort.spark.queries.peer_client import address
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.runtime.instance import Instance
from kohort.spark.runtime.queryable_instance import QueryableInstance
from kohort.testing.broker import Broker
from tests.spark.runtime.counting import Counting, plan, settings
from tests.spark.runtime.faults import KEYS, Instances
from tests.spark.runtime.test_instance import with_instances

COUNTS = StoreInfo(
    "counts", (("key", "string"),), windowed=False, json_keys=False, subtopology="1", route=Route.TEXT,
    routed_by=("key",), partition_certain=True,
)  # fmt: skip


class Answering:
    """An instance with all that answers queries, as an application has it."""

    def __init__(self, world: Instances, name: str) -> None:
        self._made: list[Counting] = []
        self.world = world
        options = {"heartbeat_interval_ms": 100, "session_timeout_ms": 10_000, "num_standby_replicas": 1}
        given = settings(world.app, world.servers, world.home / name, application_server="127.0.0.1:0", **options)
        self.instance = Instance(plan(world.app), given, self._make, before_joining=self._before_joining)
        self.service = Observability(
            world.app,
            QueryableInstance(self.instance, {"counts": COUNTS}),
            application_server=given.endpoint,
            progress=False,
        )
        self.instance.tell(*self.service.listeners)

    @property
    def address(self) -> str:
        """Where it answers."""
        assert self.service.endpoint is not None
        return address(self.service.endpoint)

    async def run(self) -> None:
        """Until it is stopped."""
        try:
            await self.instance.run()
        finally:
            await self.service.close()
            for jobs in self._made:
                jobs.close()

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and content of a page."""
        async with ClientSession() as session, session.get(f"http://{self.address}{path}") as reply:
            return reply.status, await (reply.json() if path != "/metrics" else reply.text())

    async def count(self, key: str, more: str = "") -> tuple[int, Any]:
        """What it says of a key."""
        return await self.get(f"/stores/counts/{key}{more}")

    async def _before_joining(self, admin: Admin) -> None:
        await self.service.start()
        self.instance.endpoint = self.service.endpoint

    def _make(self, part: str) -> Counting:
        self._made.append(Counting(part, self.world.servers, self.instance.lookup))
        return self._made[-1]


@asynccontextmanager
async def two(world: Instances) -> AsyncIterator[tuple[Answering, Answering]]:
    """Two of them, which are stopped at the end of the block."""
    both = Answering(world, "one"), Answering(world, "two")
    running = [asyncio.create_task(each.run()) for each in both]
    try:
        yield both
    finally:
        for each in both:
            each.instance.stop()
        async with asyncio.timeout(30):
            await asyncio.gather(*running)


def test_each_passes_questions_on_and_a_standby_answers_where_the_owner_does_not(
    kohort_broker: Broker, tmp_path: Path
) -> None:
    async def scenario(world: Instances) -> None:
        keys = [f"k{number}" for number in range(KEYS)]
        async with two(world) as (one, other), asyncio.timeout(60):
            async with world.feeding():
                while not all(len(_copies(each)) == 1 for each in (one, other)):
                    await asyncio.sleep(0.05)
            await world.counted()
            _, counts = await asyncio.to_thread(world.read)
            assert set(counts) == set(keys)

            owners: dict[str, str] = {}
            for asked in (one, other):
                for key in keys:
                    # The group may not have told yet; and what is committed is stored a little later.
                    while (said := await asked.count(key))[0] != 200 or said[1]["value"] != {"n": counts[key]}:
                        await asyncio.sleep(0.05)
                    assert said[1]["role"] == "active"
                    assert owners.setdefault(key, said[1]["instance"]) == said[1]["instance"]
            assert set(owners.values()) == {one.address, other.address}
            assert 'kafka_streams_records_lag_age_seconds{subtopology="1"}' in (await one.get("/metrics"))[1]

            await other.service.close()  # to those who ask it is gone; the group doesn't know
            key = next(key for key in keys if owners[key] == other.address)
            status, said = await one.count(key)
            assert status == 503
            (lack,) = said["missing"]
            assert f"{other.address} should have it, but" in lack["reason"] and lack["copies"] == [one.address]
            # It is asked now and then how far the changelog goes, so the lag may be 0 a little too soon.
            while (stale := (await one.count(key, "?stale=true"))[1])["lag"] or stale["value"] != {"n": counts[key]}:
                await asyncio.sleep(0.05)
            assert (stale["instance"], stale["role"], stale["lag"]) == (one.address, "standby", 0)

    with_instances(kohort_broker, tmp_path, scenario)


def _copies(answering: Answering) -> list[str]:
    """The tasks of which an instance has a standby that follows."""
    return [
        str(store.partition)
        for store in QueryableInstance(answering.instance, {"counts": COUNTS}).open_stores("counts")
        if store.role.value == "standby"
    ]
