"""Instances that wait for the first broker, and are to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.spark.program.settings import AppSettings
from kohort.spark.queues import running as queues
from kohort.spark.runtime.foreground import signals
from kohort.spark.runtime.instance import Instance
from kohort.spark.runtime.shutdown import Shutdown
from kohort.spark.runtime.topic_watch import run_with_topics
from kohort.spark.runtime.unless_stopped import unless_stopped
from tests.spark.runtime.counting import plan, settings
from tests.waiting import until


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, and where nobody else can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["streams", "classic", "auto"])
def test_an_instance_stops_while_there_is_no_broker(nobody: str, tmp_path: Path, protocol: str) -> None:
    async def main() -> None:
        made = settings("app", nobody, tmp_path, group_protocol=protocol)
        instance = Instance(plan("app"), made, lambda _: pytest.fail("no job is due"))
        running = asyncio.create_task(instance.run())
        await until(lambda: instance.manager.reason is not None)
        instance.stop()
        await asyncio.wait_for(running, 10)

    asyncio.run(main())


def test_queues_stop_while_there_is_no_broker(
    nobody: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "session_settings", lambda *_: contextlib.nullcontext())
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))

    async def main() -> None:
        stopping = Shutdown()
        run = queues._run(spark, [], AppSettings.of("app", nobody), False, stopping, lambda _: None)
        running = asyncio.create_task(run)
        await until(lambda: "app waits" in caplog.text)
        stopping.ask()
        await asyncio.wait_for(running, 10)

    asyncio.run(main())


def test_patterns_stop_while_there_is_no_broker(nobody: str, caplog: pytest.LogCaptureFixture) -> None:
    program: Any = SimpleNamespace(application_id="app", topology=SimpleNamespace(source_patterns={"o.*"}))
    stopping, over = Shutdown(), threading.Event()

    def run() -> None:
        run_with_topics(program, AppSettings.of("app", nobody).client, lambda _: pytest.fail("it runs"), stopping)
        over.set()

    threading.Thread(target=run, daemon=True).start()

    async def main() -> None:
        await until(lambda: "app waits" in caplog.text)
        stopping.ask()
        await until(over.is_set)

    asyncio.run(main())


def test_what_is_done_counts_and_what_fails_is_raised() -> None:
    async def wrong() -> None:
        raise ValueError("wrong")

    async def main() -> None:
        stop = asyncio.Event()
        assert await unless_stopped(stop, asyncio.sleep(0))
        with pytest.raises(ValueError, match="wrong"):
            await unless_stopped(stop, wrong())

    asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(number: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        stopped = asyncio.Event()
        with signals(stopped.set):
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stopped.wait(), 10)
            os.kill(os.getpid(), number)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.Event().wait(), 10)

    asyncio.run(main())


def test_a_first_signal_cuts_nothing_short() -> None:
    """Even what stops by itself meanwhile: it has an error to tell, which a KeyboardInterrupt would hide."""

    async def main() -> None:
        told = asyncio.Event()
        with signals(told.set):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(told.wait(), 10)
            await asyncio.sleep(0)

    asyncio.run(main())
