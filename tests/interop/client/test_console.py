"""The console as it is started, beside Kohort's broker and Apache Kafka, older ones too: groups, records, a reset."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from kohort.client import Admin, ClientConfig, Consumer, Producer, ShareConsumer, TopicPartition
from kohort.client.streams_member import TaskId

from ...console.running import Console
from ...console.streams_members import instances, set_group
from ...console.test_server import page_of
from ...tools import MAVEN
from ...waiting import run, until
from ..newest_kafka import NewestKafka
from ..older_kafka import OlderKafka
from ..secured import SecureServer
from ..servers import Server
from .records import numbered, write
from .test_command_line import secured
from .test_sharing import set_group as set_share_group

NewTopic = Callable[..., str]
NewName = Callable[[], str]
UNKNOWN = ["–", "–"]


@asynccontextmanager
async def started(*options: str) -> AsyncIterator[Console]:
    """`kohort console` with these options, as a browser has it."""
    command = (sys.executable, "-m", "kohort.cli", "console", "--port", "0", *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        assert address.startswith("http://"), f"it ended with {await process.wait()}"
        async with aiohttp.ClientSession(address, cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            nobody = cast(Any, None)  # what looks is in the other process
            yield Console(nobody, nobody, http, int(address.rstrip("/").rpartition(":")[2]))
    finally:
        if process.returncode is None:
            process.terminate()
        assert await process.wait() == 143


async def committed(servers: str | ClientConfig, group: str) -> dict[TopicPartition, int]:
    async with Admin(servers) as admin:
        return {at: each.offset for at, each in (await admin.group_offsets.committed(group)).items()}


def test_groups_of_all_types_are_open(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    """What a share group has in flight is told by Kohort's brokers alone."""
    topic, bootstrap = new_topic(2), broker.bootstrap
    classic, consumer, share, streams = (new_name() for _ in range(4))
    write(bootstrap, topic, numbered(2, 10))
    reports = {TaskId("0", 0): 5, TaskId("0", 1): 10}, {TaskId("0", 0): 10, TaskId("0", 1): 10}

    async def read(reader: Consumer) -> None:
        reader.subscribe(topic)
        found = 0
        while found < 20:
            found += len(await reader.poll())
        await reader.commit()

    async def scenario() -> None:
        await set_share_group(bootstrap, share)
        await set_group(bootstrap, streams, num_standby_replicas=1)
        settings = ClientConfig(bootstrap_servers=bootstrap)
        early: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with (
            Consumer(settings, group_id=classic, group_protocol="classic", **early) as of_classic,
            Consumer(settings, group_id=consumer, group_protocol="consumer", **early) as of_consumer,
            ShareConsumer(bootstrap, group_id=share) as of_share,
            instances(bootstrap, streams, topic, [{}, {}], partitions=2, standbys=1, reports=reports) as members,
            started("-b", bootstrap) as at,
        ):
            await read(of_classic)
            await read(of_consumer)
            of_share.subscribe(topic)
            while not await of_share.poll():
                pass

            names = {classic: "classic", consumer: "consumer", share: "share", streams: "streams"}

            async def listed() -> bool:  # with the next look
                page = page_of(await at.page("/groups", q=classic.rpartition("-")[0]))
                return {row[0]: row[-1] for row in page.rows[1:]} == names

            await until(listed, "all groups are listed")
            for group in (classic, consumer):
                page = page_of(await at.page("/group", id=group))
                assert (page.texts["state"], page.texts["members_count"], page.texts["lag"]) == ("Stable", "1", "0")
                assert [row[1:4] for row in page.rows if row[0] == f"{topic}-1"] == [["10", "10", "0"]]

            html = await at.page("/group", id=share)
            page = page_of(html)
            assert (page.texts["state"], page.texts["members_count"]) == ("Stable", "1")
            flying = [row[2] for row in page.rows if row[1:2] == ["acquired"]]
            if isinstance(broker, NewestKafka):
                assert flying == []
                assert "Nothing is in flight, as far as the brokers tell" in html
            else:
                assert set(flying) == {"1"}

            page = page_of(await at.page("/group", id=streams))
            assert (page.texts["state"], page.texts["members_count"]) == ("Stable", "2")
            copies = {row[0]: row[3:] for row in page.rows if row[2:3] == ["standby"]}
            told = {"0_0": ["5", "50 %"], "0_1": ["0", "100 %"]}
            assert copies.keys() == told.keys()
            if isinstance(broker, NewestKafka):  # it told nothing of one of the two members
                assert list(copies.values()).count(UNKNOWN) <= 1
                told = {task: copy if copy == UNKNOWN else told[task] for task, copy in copies.items()}
            assert copies == told
            assert [row for row in page.rows if row[:2] == ["0", topic]]
            placement = page_of(await at.page("/group/placement", id=streams, remove=members[0].member_id))
            assert [row for row in placement.rows if row[2:3] == ["gone"]]

    run(scenario())


def test_a_topic_its_records_a_reset_and_the_wire(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group, bootstrap = new_topic(2), new_name(), broker.bootstrap
    write(bootstrap, topic, numbered(2, 10))
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def scenario() -> None:
        async with Admin(bootstrap) as admin:
            await admin.group_offsets.alter(group, {zero: 4, one: 10})
        async with started("-b", bootstrap, "--write") as at:
            page = page_of(await at.page("/topic", name=topic))
            assert [row[4:7] for row in page.rows if row[0] in ("0", "1")] == [["0", "10", "10"]] * 2
            page = page_of(await at.page("/records", topic=topic, partition="1", count="2"))
            assert [[row[0], row[3]] for row in page.rows[1:]] == [["1: 8", "8"], ["1: 9", "9"]]
            planned = await at.plan("group", group, "reset-offsets", to="shift", shift="-3")
            assert [f"{topic}-0", "4", "1", "reads 3 records again", ""] in page_of(planned).rows
            assert await committed(bootstrap, group) == {zero: 4, one: 10}
            page_of(await at.confirm(planned))
            assert await committed(bootstrap, group) == {zero: 1, one: 7}
            assert "StreamsGroupHeartbeat" in await at.page("/wire")

    run(scenario())


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.9", "3.3"])
def test_an_older_kafka(tmp_path: Path, version: str) -> None:
    """Its groups are classic; the list of them says so from 3.8 on."""
    MAVEN.require()
    # A busy machine mustn't have its controller forget it: it is never started again.
    node = OlderKafka(tmp_path / "kafka", version, {"broker.session.timeout.ms": "30000"})
    topic, group = "orders", "billing"
    zero = TopicPartition(topic, 0)

    async def scenario() -> None:
        async with Admin(node.bootstrap) as admin:
            await admin.topics.create(topic, partitions=1)
        write(node.bootstrap, topic, numbered(1, 10))
        settings = ClientConfig(bootstrap_servers=node.bootstrap, client_id="till")
        early: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with started("-b", node.bootstrap, "--write") as at:

            async def listed(state: str, members: str) -> bool:  # with the next look
                rows = page_of(await at.page("/groups", q=group)).rows[1:]
                return [[*row[:3], *row[-2:]] for row in rows] == [[group, state, "6", members, "classic"]]

            async with Consumer(settings, group_id=group, group_protocol="classic", **early) as member:
                member.subscribe(topic)
                while not await member.poll():
                    pass
                await member.commit({zero: 4})
                await until(lambda: listed("Stable", "1"), "the group is listed with its lag")
                page = page_of(await at.page("/group", id=group))
                assert (page.texts["state"], page.texts["members_count"], page.texts["lag"]) == ("Stable", "1", "6")
                assert [row[1:4] for row in page.rows if row[0] == f"{topic}-0"] == [["4", "10", "6"]]
                assert [(row[2], row[4]) for row in page.rows if row[1:2] == ["till"]] == [("127.0.0.1", "orders: 0")]

            async def measured() -> bool:  # with the next look at topics
                return page_of(await at.page("/topic", name=topic)).texts["size"].endswith(" bytes")

            await until(measured, "the topic's size is known")
            page = page_of(await at.page("/topic", name=topic))
            assert page.texts["offsets"] == "10"
            assert [row[4:7] for row in page.rows if row[0] == "0"] == [["0", "10", "10"]]
            page = page_of(await at.page("/records", topic=topic, partition="0", count="2"))
            assert [[row[0], row[3]] for row in page.rows[1:]] == [["0: 8", "8"], ["0: 9", "9"]]

            await until(lambda: listed("Empty", "0"), "its member has left")
            planned = await at.plan("group", group, "reset-offsets", to="earliest")
            assert [f"{topic}-0", "4", "0", "reads 4 records again", ""] in page_of(planned).rows
            page_of(await at.confirm(planned))
        assert await committed(node.bootstrap, group) == {zero: 0}

    try:
        node.start()
        run(scenario())
    finally:
        if node.process is not None:
            node.kill()


def test_a_server_with_tls_and_sasl(secure_server: SecureServer, tmp_path: Path, new_name: NewName) -> None:
    topic, group = new_name(), new_name()
    bootstrap, _ = secured(secure_server, tmp_path)
    file = tmp_path / "client.properties"
    settings = ClientConfig.from_file(file, bootstrap_servers=bootstrap)[0]
    zero = TopicPartition(topic, 0)

    async def scenario() -> None:
        async with Admin(settings) as admin, Producer(settings) as producer:
            await admin.topics.create(topic, partitions=1)
            await (await producer.send(topic, b"hello"))
            await admin.group_offsets.alter(group, {zero: 0})
        async with started("-b", bootstrap, "--config", str(file), "--write") as at:

            async def known() -> bool:
                rows = page_of(await at.page("/groups", q=group)).rows
                return [group, "1"] in [row[:3:2] for row in rows]

            await until(known, "the group is listed with its lag")
            assert page_of(await at.page("/records", topic=topic)).rows[1][3] == "hello"
            await at.confirm(await at.plan("group", group, "reset-offsets", to="latest"))
        assert await committed(settings, group) == {zero: 1}

    run(scenario())
