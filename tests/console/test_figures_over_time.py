"""What takes two looks to be known, beside a broker: how far behind a group is in time, and how quickly topics grow.

As if there were so much time between two looks: only the console's books are told so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kohort.client.admin import Admin
from kohort.client.producer import Producer
from kohort.client.types import TopicPartition
from kohort.console.flow import Flow
from kohort.console.group_book import GroupBook
from kohort.testing import Broker
from tests.client.administration.members import join_streams
from tests.console.running import console
from tests.console.test_server import page_of

P0 = TopicPartition("orders", 0)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds go by for the books of the console."""
    gone = [0.0]
    for book, name in ((GroupBook, "looked"), (Flow, "add")):
        told: Callable[..., None] = getattr(book, name)

        def shifted(self: Any, at: float, *more: Any, told: Callable[..., None] = told) -> None:
            told(self, at + gone[0], *more)

        monkeypatch.setattr(book, name, shifted)

    def go_by(seconds: float) -> None:
        gone[0] += seconds

    return go_by


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


async def write(servers: str, topic: str, count: int) -> None:
    async with Producer(servers) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=0)
        await producer.flush()


def test_how_long_ago_was_written_what_a_group_reads_next(servers: str, later: Callable[[float], None]) -> None:
    async def whole() -> None:
        async with Admin(servers) as admin:
            await admin.topics.create("orders")
            await write(servers, "orders", 10)
            await admin.group_offsets.alter("slow", {P0: 0})
            await admin.group_offsets.alter("quick", {P0: 10})
            async with console(servers) as at:

                async def shown() -> tuple[str, str, list[str]]:
                    """Behind on the group's page and in the list, and the list's order by it."""
                    page = page_of(await at.page("/group", id="slow"))
                    listed = page_of(await at.page("/groups", sort="behind"))
                    names = [row[0] for row in listed.rows if row[0] in ("slow", "quick")]
                    (row,) = [row for row in listed.rows if row[0] == "slow"]
                    return page.texts["behind"], row[4], names

                later(90)
                await write(servers, "orders", 10)
                await admin.group_offsets.alter("quick", {P0: 20})
                await at.watcher.look()
                page, row, names = await shown()
                assert re.fullmatch(r"over 1 min \d+ s", page), page  # the console hasn't looked for longer
                assert re.fullmatch(r"over 1 min \d+ s", row), row
                assert names == ["slow", "quick"]

                await admin.group_offsets.alter("slow", {P0: 10})
                later(600)
                await at.watcher.look()
                page, row, _ = await shown()
                assert re.fullmatch(r"1[12] min \d+ s", page), page  # since the first look, when that was the end
                assert re.fullmatch(r"1[12] min \d+ s", row), row

                await admin.group_offsets.alter("slow", {P0: 20})
                await at.watcher.look()
                assert (await shown())[:2] == ("less than 1 s", "less than 1 s")

    asyncio.run(whole())


def test_how_quickly_a_topology_is_written_to_and_reads(servers: str, later: Callable[[float], None]) -> None:
    async def whole() -> None:
        async with Admin(servers) as admin:
            await admin.topics.create("flights")
            await write(servers, "flights", 1)
            read = TopicPartition("flights", 0)
            await admin.group_offsets.alter("app", {read: 0})
            await join_streams(servers, "app", "flights")
            async with console(servers) as at:
                await at.page("/group", id="app")
                later(1_000)
                await write(servers, "flights", 6_000)
                await at.watcher.look()
                page = page_of(await at.page("/group", id="app"))
                written = re.fullmatch(r"([0-9.]+)/s written", page.texts["rate topic flights"])
                assert written is not None, page.texts
                assert 5.5 < float(written[1]) <= 6
                assert page.texts["rate part 0"] == "reads 0/s"
                (row,) = [row for row in page.rows if row[:2] == ["0", "flights"]]
                assert re.fullmatch(r"flights: [0-9.]+/s written, 0/s read", row[2]), row

    asyncio.run(whole())
