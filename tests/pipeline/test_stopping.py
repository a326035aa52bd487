"""An application off the main thread, which hears no signal; and one whose port nobody has chosen."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.client.producer import Producer
from kohort.spark import StreamsApp
from kohort.spark.monitoring.events import EpochDone, Listener, TasksNow
from kohort.testing.broker import Broker

from .applications import create_topics, members_of


class _Heard(Listener):
    def __init__(self) -> None:
        self.running, self.read = threading.Event(), threading.Event()

    def tasks(self, now: TasksNow) -> None:
        if len(now.active) == 2 and not now.restoring:
            self.running.set()

    def epoch(self, done: EpochDone) -> None:
        if done.records:
            self.read.set()


def test_stop_ends_a_run_and_none_that_comes_after(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "in", "out")
    app = StreamsApp("app", bootstrap_servers=servers, state_dir=tmp_path, application_server="127.0.0.1:0")
    app.stream("in", schema="n BIGINT").to("out")

    heard, thread = _started(app, spark, progress=True)
    assert heard.running.wait(120)
    (member,) = members_of(servers, "app")
    host, port = member.streams.endpoint
    assert host == "127.0.0.1" and port > 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as response:
        assert json.load(response)["status"] == "running"
    app.stop()
    app.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert members_of(servers, "app") == ()
    said = capfd.readouterr().err
    assert " app: waiting: Spark is warming up\n" in said
    assert " app: tasks: active 0_0,0_1" in said

    app.stop()
    asyncio.run(_send(servers))
    heard, thread = _started(app, spark, progress=False)
    assert heard.read.wait(120)
    app.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert " app: " not in capfd.readouterr().err


def _started(app: StreamsApp, spark: SparkSession, *, progress: bool) -> tuple[_Heard, threading.Thread]:
    heard = _Heard()
    thread = threading.Thread(target=app.run, args=(spark,), kwargs={"listeners": [heard], "progress": progress})
    thread.start()
    return heard, thread


async def _send(servers: str) -> None:
    async with Producer(servers) as producer:
        await (await producer.send("in", b'{"n": 1}'))
