"""Pages of records over HTTP: what is decoded, searched, and where a page leads."""

from __future__ import annotations

import asyncio
import html
import re
import struct
import threading
import time
from unittest.mock import MagicMock

import pytest

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.producer import Producer
from kohort.client.types import TopicPartition
from kohort.console import record_reader, record_routes
from kohort.console.record_decoding import Decoded, RecordDecoder
from kohort.console.record_reader import AT_ONCE, RecordReader
from kohort.schema_registry.client import RegistryClient
from tests.console.running import Console, console
from tests.console.test_server import page_of
from tests.spark.formats.fake_registry import fake_registry

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}


async def fill(servers: str) -> None:
    async with Admin(servers) as admin, Producer(servers) as producer:
        await admin.topics.create("orders", partitions=2)
        await admin.topics.create("framed")
        for number in range(50):
            value = b'{"a": {"n": %d}, "even": %s}' % (number, b"true" if number % 2 == 0 else b"false")
            headers = [("tenth", b"%d" % number)] if number % 10 == 0 else []
            await producer.send("orders", value, key=b"k%d" % number, partition=number % 2, headers=headers)
        await producer.send("framed", struct.pack(">bI", 0, 1) + b"\x0e")
        await producer.flush()
        await admin.group_offsets.alter("first", {TopicPartition("orders", 0): 3})


async def keys(at: Console, path: str = "/records", **fields: str) -> tuple[list[str], str | None]:
    """The keys of a page, and where it leads."""
    text = await at.page(path, **fields)
    link = re.search(r'<a rel="next" href="([^"]+)">', text)
    return [row[2] for row in page_of(text).rows[1:]], html.unescape(link[1]) if link else None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"from": "offset"}, [f"k{number}" for number in range(50)]),
        ({}, [f"k{number}" for number in range(50)]),
        ({"field": "even = true", "from": "offset"}, [f"k{number}" for number in range(0, 50, 2)]),
        ({"field": "a.n != 7"}, [f"k{number}" for number in range(50) if number != 7]),
        ({"key": "K1"}, ["k1", *(f"k{number}" for number in range(10, 20))]),
        ({"key_is": "k1"}, ["k1"]),
        ({"value": '"n":4}'}, ["k4"]),
        ({"header": "tenth"}, [f"k{number}" for number in range(0, 50, 10)]),
        ({"header": "tenth = 20", "from": "time", "time": "2000-01-01"}, ["k20"]),
    ],
)
def test_pages_lead_to_each_record_that_is_searched_for(
    servers: str, fields: dict[str, str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.console.record_reader.MOST_LOOKED", 15)

    async def whole() -> None:
        async with console(servers) as at:
            found, on = await keys(at, topic="orders", count="7", **fields)
            for _ in range(50):
                if on is None:
                    break
                more, on = await keys(at, on)
                found += more
            assert sorted(found) == sorted(expected)

    asyncio.run(whole())


def test_a_search_says_at_how_many_it_has_looked(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            text = await at.page("/records", topic="orders", partition="0", key_is="k2")
            assert "1 record; 25 were looked at" in text
            assert "tests no field" in await at.page("/records", 400, topic="orders", field="x")
            assert "whole number" in await at.page("/records", 400, topic="orders", at="<b>")

    asyncio.run(whole())


def test_decoding_ends_with_the_time_for_a_page(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(RecordDecoder):
        asked = 0

        def value(self, topic: str, key: bytes | None, data: bytes | None) -> Decoded:
            self.asked += 1
            time.sleep(0.6)  # longer than there is time
            return super().value(topic, key, data)

    monkeypatch.setattr(record_reader, "WITHIN_S", 0.5)
    monkeypatch.setattr(record_routes, "WITHIN_S", 0.5)

    async def whole() -> None:
        slow = Slow()
        async with console(servers, decoder=slow) as at:
            await at.page("/records", topic="orders", partition="0", field="a.n = 48")
            assert slow.asked <= 1
        monkeypatch.setattr(record_reader, "WITHIN_S", 10.0)
        slow = Slow()
        async with console(servers, decoder=slow) as at:
            text = await at.page("/records", topic="orders", partition="0")
            assert slow.asked == 1
            assert text.count("not decoded, as the page took too long") == 2 * 24
            assert len(page_of(text).rows) == 26

    asyncio.run(whole())


def test_pages_that_are_left_leave_no_more_threads_than_there_are_pages_at_once() -> None:
    async def whole() -> None:
        reader = RecordReader(ClientConfig(bootstrap_servers="nowhere:1"), MagicMock())
        running, goes_on = [0], threading.Event()

        def work() -> None:
            running[0] += 1
            goes_on.wait()

        try:
            for _ in range(3):
                tasks = [asyncio.ensure_future(reader.in_thread(work)) for _ in range(10)]
                while running[0] < AT_ONCE:
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            assert running[0] == AT_ONCE
        finally:
            reader.close()
            goes_on.set()
        with pytest.raises(RuntimeError):
            await reader.in_thread(work)

    asyncio.run(whole())


def test_values_of_a_registry_are_decoded(servers: str) -> None:
    async def whole() -> None:
        with fake_registry() as registry:
            registry.add("framed-value", SCHEMA)
            decoder = RecordDecoder(RegistryClient(registry.registry(retry_s=0)))
            async with console(servers, decoder=decoder) as at:
                page = page_of(await at.page("/records", topic="framed", field="n = 7"))
                assert page.rows[1][3].startswith('{\n  "n": 7\n}')
                assert "schema 1" in page.rows[1][3]
        async with console(servers) as at:
            assert "it may be of schema 1" in await at.page("/records", topic="framed")

    asyncio.run(whole())


def test_kafkas_own_topics_are_decoded(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            page = page_of(await at.page("/records", topic="__consumer_offsets", field="Offset = 3"))
            assert '"Group": "first"' in page.rows[1][2]
            assert '"Offset": 3' in page.rows[1][3]

    asyncio.run(whole())
