"""The page of stores, beside an instance's own HTTP server, which reads a store on the disk."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pyarrow as pa

from kohort.client.admin import Admin
from kohort.client.streams_member import Endpoint
from kohort.http_access import OPEN
from kohort.spark.queries.queryable import OpenStore, StoreRole
from kohort.spark.state.store import Store
from kohort.testing import Broker
from tests.console.running import console
from tests.console.streams_members import instances
from tests.console.test_server import page_of
from tests.spark.queries.fakes import PARTITIONS, Instances, partition_of, window_key

JFK = partition_of("JFK")
HOURS = [f"2013-01-{day:02}T{hour:02}:00:00.000Z" for day in (1, 2, 3) for hour in range(24)]


def test_keys_and_values_come_from_the_instance(tmp_path: Path) -> None:
    """Of a windowed store: its rows, page by page, those of a time, and one by its key."""

    async def whole(servers: str) -> None:
        async with Admin(servers) as admin, Instances(1) as running:
            await admin.topics.create("flights")
            running.own("delays", dict.fromkeys(range(PARTITIONS), 0))
            store = Store(tmp_path / "delays", "delays", JFK)
            values = [b'{"n":%d,"state":{"n":1}}' % number for number in range(len(HOURS))]
            keys = [window_key("JFK", hour) for hour in HOURS]
            store.write(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), len(HOURS))
            running.fakes[0].opened.append(OpenStore("delays", JFK, StoreRole.ACTIVE, 0, store))
            for partition in range(PARTITIONS):
                if partition != JFK:
                    running.fakes[0].opens("delays", partition)
            endpoint = Endpoint("127.0.0.1", running.servers[0].port)
            async with (
                instances(servers, "app", "flights", [{"user_endpoint": endpoint}], partitions=1),
                console(servers, stores=OPEN) as at,
            ):

                async def rows(**fields: str) -> tuple[list[tuple[str, str]], str]:
                    html = await at.page("/group/stores", id="app", store="delays", **fields)
                    found = [(row[0], row[1]) for row in page_of(html).rows if row[0].startswith("{")]
                    return found, html

                page = page_of(await at.page("/group/stores", id="app"))
                (listed,) = [row for row in page.rows if row[0] == "delays"]
                assert listed[:4] == ["delays", "window (start), origin (string)", "1", str(PARTITIONS)]
                assert f"{JFK} active" in listed[4]

                first, html = await rows()
                assert len(first) == 50
                key, value = map(json.loads, first[7])
                assert (key, value) == ({"window": HOURS[7], "origin": "JFK"}, {"n": 7})
                after = html.partition("after=")[2].partition('"')[0].partition("&")[0]
                assert after
                async with at.http.get(f"/group/stores?id=app&store=delays&after={after}") as answer:
                    rest = [row for row in page_of(await answer.text()).rows if row[0].startswith("{")]
                assert [json.loads(row[1])["n"] for row in rest] == list(range(50, len(HOURS)))

                some, _ = await rows(**{"from": "2013-01-02T00", "to": "2013-01-02T03"})
                assert [json.loads(value)["n"] for _, value in some] == [24, 25, 26]
                one, html = await rows(key="JFK@2013-01-01T05")
                assert [json.loads(value) for _, value in one] == [{"n": 5}]
                assert f"partition {JFK} on 127.0.0.1:{endpoint.port}, active, 0 records behind" in html
                assert "has no key" in await at.page("/group/stores", id="app", store="delays", key="JFK@2014-01-01")
                assert "no store" in await at.page("/group/stores", id="app", store="none")
            store.close()

    with Broker() as broker:
        asyncio.run(whole(broker.bootstrap_servers))
