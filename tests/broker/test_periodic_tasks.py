"""Periodic tasks on logs: compaction and checkpoints, interrupted by deletions, errors and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.clock import MovableClock
from kohort.broker.periodic_tasks import PeriodicTask, PeriodicTasks
from kohort.broker.server import Server
from kohort.broker.topics import ConfigResource, Partition
from kohort.log.compaction import CompactionPlan
from tests.broker.conftest import Run
from tests.log.batches import batch

DAY_OF_2013 = 1_356_998_400_000  # ms since 1970: 2013-01-01

COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


def compactable(server: Server, name: str) -> Partition:
    [partition] = server.broker.topics.create(name, 1, COMPACT).partitions
    partition.log.config = replace(partition.log.config, segment_bytes=200)
    for _ in range(4):
        partition.log.append(batch([(b"key", b"value")], timestamp=server.now()), now=server.now())
    return partition


def held(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Compactions wait, when they have begun, for a word to go on."""
    begun, go = threading.Event(), threading.Event()
    real = CompactionPlan._map_keys

    def wait(plan: CompactionPlan) -> Any:
        begun.set()
        assert go.wait(30)
        return real(plan)

    monkeypatch.setattr(CompactionPlan, "_map_keys", wait)
    return begun, go


async def reached(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


def left_behind(directory: Path) -> list[Path]:
    return list(directory.rglob("*.cleaned"))


def test_a_topic_deleted_while_it_is_compacted(
    tmp_path: Path, with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(server: Server) -> None:
        compactable(server, "one")
        real = CompactionPlan.run
        made: list[CompactionPlan] = []

        def compact(plan: CompactionPlan) -> bool:
            made.append(plan)
            done = real(plan)
            server.broker.topics._by_name["one"].deleted = True  # as when it is deleted at the last moment
            return done

        monkeypatch.setattr(CompactionPlan, "run", compact)
        await server.broker.periodic_tasks.clean_logs()
        assert made
        assert not left_behind(tmp_path)
        server.broker.topics._by_name["one"].deleted = False

    with_server(test)


def test_a_stopping_server_waits_for_no_compaction(
    tmp_path: Path, with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = held(monkeypatch)
    plans: list[CompactionPlan] = []
    real = CompactionPlan.run

    def compact(plan: CompactionPlan) -> bool:
        plans.append(plan)
        return real(plan)

    monkeypatch.setattr(CompactionPlan, "run", compact)

    async def test(server: Server) -> None:
        compactable(server, "one")
        tasks = server.broker.periodic_tasks
        tasks._tasks.append(asyncio.get_running_loop().create_task(tasks.clean_logs()))
        await reached(begun)
        go.set()
        await tasks.stop()
        assert not left_behind(tmp_path)

    with_server(test)
    assert plans[0].cancelled


def test_one_compaction_that_fails_leaves_the_others(
    with_server: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(server: Server) -> None:
        compactable(server, "one")
        fine = compactable(server, "two")
        real = CompactionPlan.run

        def compact(plan: CompactionPlan) -> bool:
            if plan.directory.name.startswith("one"):
                raise RuntimeError("nobody has thought of that")
            return real(plan)

        monkeypatch.setattr(CompactionPlan, "run", compact)
        await server.broker.periodic_tasks.clean_logs()
        assert fine.log.cleaned_offset > 0

    with_server(test)
    assert "nobody has thought of that" in caplog.text


@pytest.mark.parametrize(
    ("config", "timestamp", "newest", "reason"),
    [
        ("retention.ms", DAY_OF_2013, "2013-01-01T00:00:00Z", "retention.ms=604800000"),
        ("retention.bytes", 2**62, str(2**62), "retention.bytes=1"),
    ],
)
def test_what_retention_deletes_is_said(
    with_server: Run, caplog: pytest.LogCaptureFixture, config: str, timestamp: int, newest: str, reason: str
) -> None:
    caplog.set_level("INFO", "kohort.broker.periodic_tasks")

    async def test(server: Server) -> None:
        configs = {config: reason.partition("=")[2], "message.timestamp.after.max.ms": str(2**63 - 1)}
        partition, _ = server.broker.topics.create("results", 2, configs).partitions
        partition.log.config = replace(partition.log.config, segment_bytes=100)
        for _ in range(3):
            partition.log.append(batch([(b"key", b"value")] * 2, timestamp=timestamp), now=server.now())
        partition.log.append(batch([(b"key", b"value")] * 2, timestamp=server.now()), now=server.now())
        for _ in range(2):
            await server.broker.periodic_tasks.enforce_retention()

    with_server(test)
    assert [each.getMessage() for each in caplog.records] == [
        f"records deleted topic=results partition=0 from=0 to=5 records=6 newest={newest} reason={reason}"
    ]


def test_checkpoints_that_cannot_be_written(
    with_server: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def test(server: Server) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("kohort.log.data_directory.write_atomically", fail)
            await server.broker.periodic_tasks.checkpoint()

    with_server(test)
    assert "checkpoints" in caplog.text
    assert "No space left" in caplog.text


def test_the_interval_is_that_of_the_configuration_now(with_server: Run) -> None:
    async def test(server: Server) -> None:
        tasks = server.broker.periodic_tasks
        cleaning = PeriodicTask(tasks.clean_logs, "log.cleaner.backoff.ms")
        before = tasks.interval_ms(cleaning)

        server.broker.topics.set_configs(ConfigResource.BROKER, "", {"log.cleaner.backoff.ms": "7"})

        assert (before, tasks.interval_ms(cleaning)) == (15_000, 7)

    with_server(test)


def test_never_is_a_day(with_server: Run) -> None:
    async def test(server: Server) -> None:
        tasks = server.broker.periodic_tasks
        assert tasks.interval_ms(PeriodicTask(tasks.flush_logs, "log.flush.scheduler.interval.ms")) == 86_400_000

    with_server(test)


FIVE_MINUTES, AN_HOUR = "log.retention.check.interval.ms", "delegation.token.expiry.check.interval.ms"


@contextlib.asynccontextmanager
async def repeating(server: Server, clock: MovableClock, *others: PeriodicTask) -> AsyncIterator[PeriodicTasks]:
    """Periodic tasks of their own, with these."""
    broker = server.broker
    tasks = PeriodicTasks(broker.topics, broker.log_manager, broker.flusher, broker.dynamic_config, clock, others)
    tasks.start()
    await asyncio.sleep(0)  # they wait now
    try:
        yield tasks
    finally:
        await tasks.stop()


def test_a_clock_that_was_moved_makes_some_due(with_server: Run) -> None:
    ran: list[str] = []

    async def often() -> None:
        ran.append("often")

    async def seldom() -> None:
        ran.append("seldom")
        raise RuntimeError("others run all the same")

    async def test(server: Server) -> None:
        clock = MovableClock()
        due = PeriodicTask(seldom, AN_HOUR), PeriodicTask(often, FIVE_MINUTES)
        async with repeating(server, clock, *due) as tasks:
            for minutes in (1, 5, 1, 240):
                clock.advance(minutes * 60_000)
                await tasks.catch_up()
                ran.append("|")

    with_server(test)
    assert " ".join(ran) == "| often | | seldom often |"


def test_what_is_running_is_not_run_beside_itself(with_server: Run) -> None:
    running, most, runs = 0, 0, 0
    go = asyncio.Event()

    async def slow() -> None:
        nonlocal running, most, runs
        running, runs = running + 1, runs + 1
        most = max(most, running)
        await go.wait()
        running -= 1

    async def test(server: Server) -> None:
        clock = MovableClock()
        async with repeating(server, clock, PeriodicTask(slow, AN_HOUR)) as tasks:
            clock.advance(3_600_000)
            both = [asyncio.create_task(tasks.catch_up()) for _ in range(2)]
            while not running:
                await asyncio.sleep(0)
            clock.advance(3_600_000)
            both.append(asyncio.create_task(tasks.catch_up()))
            await asyncio.sleep(0)
            go.set()
            await asyncio.gather(*both)

    with_server(test)
    assert (most, runs) == (1, 2)


def test_what_is_due_is_not_begun_once_it_is_stopped(with_server: Run) -> None:
    ran: list[str] = []
    go = asyncio.Event()

    async def slow() -> None:
        ran.append("slow")
        await go.wait()

    async def other() -> None:
        ran.append("other")

    async def test(server: Server) -> None:
        clock = MovableClock()
        async with repeating(server, clock, PeriodicTask(slow, AN_HOUR), PeriodicTask(other, AN_HOUR)) as tasks:
            clock.advance(3_600_000)
            catching_up = asyncio.create_task(tasks.catch_up())
            while not ran:
                await asyncio.sleep(0)
            await tasks.stop()
            go.set()
            await catching_up

    with_server(test)
    assert ran == ["slow"]
