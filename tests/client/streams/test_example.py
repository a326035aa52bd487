"""The program of the guide runs, as several processes would, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections import Counter
from pathlib import Path

from kohort.client.cluster import Cluster
from kohort.client.producer import Producer
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.testing.broker import Broker
from tests.waiting import run, until

PROGRAM = Path(__file__).parents[3] / "docs" / "examples" / "streams_member.py"
SETTINGS = {"group.streams.heartbeat.interval.ms": 50}


class Instance:
    """The program in a process of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def start(self, *arguments: str) -> None:
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), *arguments, stdout=asyncio.subprocess.PIPE, env=environment
        )
        self.reader = asyncio.create_task(self.read())

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().strip())

    async def stop(self) -> None:
        self.process.terminate()
        await self.reader
        assert await self.process.wait() == 0

    def tasks(self) -> set[str]:
        return {match[1] for line in self.lines if (match := re.match(r"task (\w+):", line))}


def test_instances_share_the_lines() -> None:
    async def test() -> None:
        async with Broker(SETTINGS) as broker:
            servers = broker.bootstrap_servers
            async with Cluster(servers) as cluster:
                new = CreateTopicsRequest.Topic(
                    name="lines", num_partitions=4, replication_factor=1, assignments=[], configs=[]
                )
                request = CreateTopicsRequest(topics=[new], timeout_ms=5_000, validate_only=False)
                await cluster.ask_any(request, CreateTopicsResponse)
            a, b = Instance(), Instance()
            async with Producer(servers) as producer:

                async def write(*values: str) -> None:
                    for number, value in enumerate(values):
                        await producer.send("lines", value.encode(), partition=number % 4)
                    await producer.flush()

                await a.start(servers, "lines")
                await write(*"abcd")
                await until(lambda: a.tasks() == {"0_0", "0_1", "0_2", "0_3"})
                await b.start(servers, "lines")
                while not b.lines:
                    await write(*"efgh")
                    await asyncio.sleep(0.1)
                await a.stop()
                await write(*"wxyz")
                await until(lambda: {line[-1] for line in b.lines} >= set("wxyz"))
                await b.stop()
            seen = Counter(line[-1] for line in a.lines + b.lines)
            assert {seen[value] for value in "abcdwxyz"} == {1}, "what is committed isn't read again"

    run(test())
