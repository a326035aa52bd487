"""Runs instances of the counting application in processes, and checks what came out with another client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import confluent_kafka

from kohort.client.admin import Admin
from kohort.client.producer import Producer
from tests.spark.runtime import faulty

PARTITIONS = 2
KEYS = 7
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.spark.runtime.faulty", "numba", "kohort.protocol.records.columns"])


class Instances:
    """Instances of one application, and what they have to work on.

    Args:
        servers: the broker.
        app: the application's id.
        home: a directory for their state and logs.
    """

    def __init__(self, servers: str, app: str, home: Path) -> None:
        self.servers, self.app, self.home = servers, app, home
        self.processes: dict[str, BaseProcess] = {}
        self.made = 0
        self.options: dict[str, Any] = {"session_timeout_ms": 1_000, "heartbeat_interval_ms": 100}

    async def __aenter__(self) -> Instances:
        self.home.mkdir(parents=True, exist_ok=True)
        async with Admin(self.servers) as admin:
            for name, partitions in (("in", PARTITIONS), ("copies", 1), ("counts", 1)):
                # The records are of 1970: Apache Kafka deletes such records half a minute after it has started.
                configs = {"retention.ms": "-1"}
                await admin.topics.create(f"{self.app}-{name}", partitions=partitions, configs=configs)
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.join()

    def start(self, name: str, *, state: str | None = None, step: str = "", nth: int = 1, action: int = 0) -> None:
        """Start an instance; at the `nth` time that it reaches a step, it sends itself a signal."""
        process = _PROCESSES.Process(
            target=faulty.child,
            args=(
                self.app, self.servers, str(self.home / (state or name)), str(self.home / f"{name}.jsonl"),
                step.format(app=self.app), nth, action, self.options,
            ),
        )  # fmt: skip
        process.start()
        self.processes[name] = process

    def signal(self, name: str, number: int) -> None:
        """Send an instance a signal."""
        pid = self.processes[name].pid
        assert pid is not None
        os.kill(pid, number)

    async def died(self, name: str, timeout_s: float = 30) -> None:
        """Wait until an instance is gone."""
        async with asyncio.timeout(timeout_s):
            while self.processes[name].is_alive():
                await asyncio.sleep(0.02)

    async def paused(self, name: str, timeout_s: float = 30) -> None:
        """Wait until an instance has stopped itself."""
        async with asyncio.timeout(timeout_s):
            while not any(line["what"] == "signal" for line in self.log(name)):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.05)

    async def begun(self, name: str, timeout_s: float = 30) -> None:
        """Wait until an instance has done something."""
        async with asyncio.timeout(timeout_s):
            while not any(line["what"] == "epoch" for line in self.log(name)):
                await asyncio.sleep(0.02)

    async def ended(self, name: str, timeout_s: float = 30) -> None:
        """Have an instance end in peace, and wait for that."""
        self.signal(name, signal.SIGTERM)
        await self.died(name, timeout_s)
        assert self.processes[name].exitcode == 0, f"{name} ended with {self.processes[name].exitcode}"

    def log(self, name: str) -> list[dict[str, Any]]:
        """What happened in an instance."""
        path = self.home / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        with contextlib.suppress(ValueError):
            return [json.loads(line) for line in lines]
        return [json.loads(line) for line in lines[:-1]]

    @contextlib.asynccontextmanager
    async def feeding(self) -> AsyncIterator[None]:
        """Produce numbered records, twenty at a time, for as long as the block runs."""
        over = asyncio.Event()
        task = asyncio.create_task(self._feed(over))
        try:
            yield
            over.set()
            await task
        finally:
            task.cancel()

    async def _feed(self, over: asyncio.Event) -> None:
        async with Producer(self.servers) as producer:
            while not over.is_set():
                for number in range(self.made, self.made + 20):
                    key = f"k{number % KEYS}".encode()
                    await producer.send(f"{self.app}-in", str(number).encode(), key=key, partition=number % PARTITIONS)
                await producer.flush()
                self.made += 20
                await asyncio.sleep(0.03)

    async def counted(self, timeout_s: float = 60) -> None:
        """Wait until all that was made is in the outputs (or more)."""
        deadline = time.monotonic() + timeout_s
        while True:
            copies, counts = await asyncio.to_thread(self.read)
            if sum(copies.values()) >= self.made and sum(counts.values()) >= self.made:
                return
            if time.monotonic() > deadline:
                missing = [number for number in range(self.made) if number not in copies]
                tails = "\n".join(f"{name}: {line}" for name in self.processes for line in self.log(name)[-4:])
                raise AssertionError(
                    f"after {timeout_s} s {len(missing)} of {self.made} records are missing in copies"
                    f" ({missing[:5]}…), counts are {sum(counts.values())}\n{tails}"
                )
            await asyncio.sleep(0.2)

    def read(self) -> tuple[Counter[int], dict[str, int]]:
        """What another client reads of what is committed: copies, and the last count of each key."""
        copies = Counter(int(value) for _, value in _read(self.servers, f"{self.app}-copies"))
        counts = {key: json.loads(value)["n"] for key, value in _read(self.servers, f"{self.app}-counts")}
        return copies, counts

    def check(self) -> None:
        """Each record was processed once."""
        copies, counts = self.read()
        twice = {number: times for number, times in copies.items() if times != 1}
        assert not twice, f"copied more than once: {twice}"
        assert sorted(copies) == list(range(self.made))
        expected = Counter(f"k{number % KEYS}" for number in range(self.made))
        assert counts == dict(expected)


def _read(servers: str, topic: str) -> list[tuple[str, str]]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "check", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False, "enable.metrics.push": False}
    )  # fmt: skip
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        found = []
        while True:
            message = consumer.poll(10)
            assert message is not None, f"{topic}: no answer"
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                return found
            found.append((message.key().decode(), message.value().decode()))
    finally:
        consumer.close()


async def kill_at(instances: Instances, step: str, nth: int, *, state: str | None = None) -> None:
    """One dies when it reaches a step for the `nth` time, and another takes over, with the disk of `state`."""
    async with instances:
        async with instances.feeding():
            instances.start("first", step=step, nth=nth, action=signal.SIGKILL)
            await instances.died("first")
            instances.start("second", state=state)
        await instances.counted()
        await instances.ended("second")
        instances.check()


async def pause_at(instances: Instances, step: str, nth: int) -> None:
    """One is paused beyond its session; another one takes its tasks and goes on; then it wakes up."""
    async with instances:
        async with instances.feeding():
            instances.start("first", step=step, nth=nth, action=signal.SIGSTOP)
            await instances.paused("first")
            instances.start("second")
        await instances.counted()
        async with instances.feeding():
            instances.signal("first", signal.SIGCONT)
            await asyncio.sleep(1)
        await instances.counted()
        await instances.ended("second")
        await instances.ended("first")
        instances.check()
