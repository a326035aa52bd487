"""The thread that a subtopology's jobs run in."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kohort.spark.runtime import job_thread as workers
from kohort.spark.runtime.job_thread import JobThread


def test_what_does_not_hear_that_it_is_cancelled_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_CANCEL_EVERY_S", 0.01)

    async def scenario() -> None:
        over, told = threading.Event(), 0

        def cancel() -> None:
            nonlocal told
            told += 1
            if told == 1:
                raise ConnectionError("Spark has no ear for this yet")
            if told == 3:
                over.set()

        worker = JobThread("test")
        running = asyncio.create_task(worker.run(over.wait, 10))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await worker.stopped(cancel)
        assert await running and not worker.busy
        before = told
        await worker.stopped(cancel)
        assert told == before >= 3
        await worker.closed()

    asyncio.run(scenario())


def test_a_thread_of_its_own() -> None:
    async def scenario() -> None:
        worker = JobThread("kohort-test")
        threads = {await worker.run(threading.get_ident) for _ in range(3)}
        assert len(threads) == 1 and threading.get_ident() not in threads
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 // 0)
        gate = threading.Event()
        waiting = asyncio.create_task(worker.run(gate.wait, 5))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert worker.busy
        gate.set()
        await worker.idle()
        assert not worker.busy
        await worker.closed()
        assert "kohort-test" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(scenario())


def test_a_thread_that_is_asked_for_nothing_never_starts() -> None:
    async def scenario() -> None:
        before = threading.active_count()
        thread = JobThread("kohort-unused")
        assert threading.active_count() == before
        await thread.closed()

    asyncio.run(scenario())


def test_a_thread_that_cannot_start_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        thread = JobThread("kohort-test")

        def refuse() -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(thread._thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start"):
                await thread.run(threading.get_ident)
        await thread.idle()
        await thread.stopped(lambda: None)
        assert await thread.run(threading.get_ident) != threading.get_ident()
        await thread.closed()

    asyncio.run(scenario())
