"""Queries of stores on disk while they are written, closed and opened."""

from __future__ import annotations

import asyncio
import itertools
import threading
from pathlib import Path

import pyarrow as pa

from kohort.spark.queries.queryable import OpenStore, StoreRole
from kohort.spark.state.store import Store
from tests.spark.queries.fakes import PARTITIONS, Instances, partition_of, window_key

JFK = partition_of("JFK")


def test_stores_on_disk(tmp_path: Path) -> None:
    async def test() -> None:
        async with Instances() as two:
            two.own("delays", {each: int(each == JFK) for each in range(PARTITIONS)})
            store = Store(tmp_path / "delays", "delays", JFK)
            keys = [window_key("JFK", f"2013-01-01T{hour:02}:00:00.000Z") for hour in range(24)]
            store.write(pa.array(keys, pa.binary()), pa.array([b'{"n":1,"state":{"n":1}}'] * 24, pa.binary()), 24)
            two.fakes[1].opened.append(OpenStore("delays", JFK, StoreRole.ACTIVE, 0, store))
            for partition in range(PARTITIONS):
                if partition != JFK:
                    two.fakes[0].opens("delays", partition)
            one = await two.get("/stores/delays/JFK@2013-01-01T05")
            assert (one.status, one.json["value"]) == (200, {"n": 1})
            rows = (await two.get("/stores/delays?key=JFK&from=2013-01-01T10")).json["rows"]
            assert [row["key"]["window"][11:13] for row in rows] == [str(hour) for hour in range(10, 24)]
            store.close()
            assert (await two.get("/stores/delays/JFK@2013-01-01T05")).status == 503

    asyncio.run(test())


def test_queries_while_a_store_comes_and_goes(tmp_path: Path) -> None:
    """Each query gets the right value, or a 503 as the partition moves; none fails."""

    async def test() -> None:
        async with Instances(1) as one:
            one.own("delays", dict.fromkeys(range(PARTITIONS), 0))
            fake, ended = one.fakes[0], threading.Event()

            statuses, last = set(), -1

            def live() -> None:
                for life in itertools.count():
                    store = Store(tmp_path / "delays", "delays", JFK)
                    fake.opened = [OpenStore("delays", JFK, StoreRole.ACTIVE, 0, store)]
                    for number in range(20):
                        value = f'{{"n":{life * 20 + number}}}'.encode()
                        store.write(pa.array([window_key("JFK")], pa.binary()), pa.array([value], pa.binary()), number)
                    store.close()
                    if life >= 5 and (last >= 0 or life > 500):
                        break
                ended.set()

            thread = threading.Thread(target=live)
            thread.start()
            while not ended.is_set():
                for path in ("/stores/delays/JFK@2013-01-01T05", f"/stores/delays?key=JFK&partition={JFK}"):
                    reply = await one.get(path)
                    statuses.add(reply.status)
                    if reply.status == 200:
                        rows = reply.json.get("rows", [reply.json])
                        if rows:
                            assert rows[0]["value"]["n"] >= last
                            last = rows[0]["value"]["n"]
            thread.join()
            assert statuses <= {200, 404, 503}
            assert last >= 0

    asyncio.run(test())
