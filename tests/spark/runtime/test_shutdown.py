"""How any thread ends a run."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from types import SimpleNamespace

import pytest

from kohort.spark.runtime.shutdown import Shutdown

pytest.importorskip("pyspark")

from kohort.spark import StreamsApp
from kohort.spark.runtime.application import run_application
from kohort.streams.topology import Topology


async def ended(stopping: Shutdown) -> bool:
    end = asyncio.Event()
    with stopping.ends(end.set):
        try:
            await asyncio.wait_for(end.wait(), 0.2)
        except TimeoutError:
            return False
        return True


def test_a_run_is_ended_from_another_thread() -> None:
    async def test() -> None:
        stopping = Shutdown()
        end = asyncio.Event()
        with stopping.ends(end.set):
            for _ in range(2):
                threading.Thread(target=stopping.ask).start()
            await asyncio.wait_for(end.wait(), 10)
        stopping.ask()  # it is over

    asyncio.run(test())


def test_what_is_asked_for_before_counts() -> None:
    stopping = Shutdown()
    assert not asyncio.run(ended(stopping))
    stopping.ask()
    assert asyncio.run(ended(stopping))


def test_an_application_that_does_not_run_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StreamsApp("app")
    began: list[Shutdown] = []
    compiled = []

    def run_and_stop(*_: object, stopping: Shutdown, **__: object) -> None:
        began.append(stopping)
        app.stop()
        app.stop()

    def compile_(_: object) -> object:
        compiled.append(True)
        if len(compiled) > 1:
            app.stop()  # while it comes to run
        return SimpleNamespace(application_id="app", notes=(), topology=Topology({}))

    monkeypatch.setattr("kohort.spark.runtime.application.run_application", run_and_stop)
    monkeypatch.setattr(app, "compile", compile_)
    monkeypatch.setattr("kohort.spark.app.register_schemas", lambda _: None)
    bars: list[object] = []  # that are stopped, as standard error is no terminal
    monkeypatch.setattr("kohort.spark.internals.stop_progress_bar", bars.append)
    app.stop()
    app.run(object())  # type: ignore[arg-type]
    (stopping,) = began
    assert stopping.asked
    app.run(object())  # type: ignore[arg-type]
    assert (len(compiled), len(began), len(bars)) == (2, 1, 2)
    app.stop()


@pytest.mark.parametrize("early", [True, False])
def test_an_interrupted_cell_of_a_notebook_ends_the_run_in_good_order(
    monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """A loop runs in the main thread there, so the application has a thread of its own, which hears no signal.

    Early: the signal comes before the main thread waits for that thread.
    """
    stopping, said, sent = Shutdown(), [], threading.Event()

    class Slow(threading.Thread):
        def start(self) -> None:
            super().start()
            assert sent.wait(10)

    def run_loop(_: object) -> None:
        asyncio.run(interrupted())

    async def interrupted() -> None:
        end = asyncio.Event()
        with stopping.ends(end.set):
            os.kill(os.getpid(), signal.SIGINT)
            sent.set()
            await asyncio.wait_for(end.wait(), 10)
            said.append("ended")

    async def cell() -> None:
        run_application(None, None, None, stopping=stopping)  # type: ignore[arg-type]

    monkeypatch.setattr("kohort.spark.runtime.foreground._run_loop", run_loop)
    if early:
        monkeypatch.setattr(threading, "Thread", Slow)
    # Another handler than Python's own, which the first SIGINT leaves for the second.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(cell())
    finally:
        loop.close()
        after = signal.signal(signal.SIGINT, before)
    assert said == ["ended"]
    assert after is signal.SIG_IGN
