"""An instance in the background: its end, what it fails with, and what is seen of it meanwhile."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace

import pytest

from kohort.spark.errors import ApplicationError, ProgramError
from kohort.spark.monitoring.events import TasksNow
from kohort.spark.monitoring.lag import RecordsLag
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.running_app import RunningApp


class Made:
    """One that runs until it is asked to end, or fails when it is."""

    def __init__(self, error: Exception | None = None, name: str = "app", queues: bool = False) -> None:
        self._asked, self._error = threading.Event(), error
        self.running = RunningApp(name, self._asked.set, queues=queues)

    def begin(self) -> RunningApp:
        self.running.begin(self._run)
        return self.running

    def _run(self) -> None:
        assert self._asked.wait(60)
        if self._error is not None:
            raise self._error


@pytest.fixture
def made() -> Iterator[Callable[..., Made]]:
    all_made: list[Made] = []

    def make(*arguments: object, **options: object) -> Made:
        all_made.append(Made(*arguments, **options))  # type: ignore[arg-type]
        return all_made[-1]

    yield make
    for each in all_made:
        each._asked.set()


def test_stop_ends_it_and_waits(made: Callable[..., Made]) -> None:
    running = made().begin()
    assert not running.wait(0)
    assert running.state == "starting"
    running.stop()
    running.stop()
    assert running.wait(0)
    assert running.state == "stopped"


def test_what_it_fails_with_is_logged_and_raised_each_time(
    made: Callable[..., Made], caplog: pytest.LogCaptureFixture
) -> None:
    running = made(ApplicationError("a record can't be read")).begin()
    running.ask()
    for call in (running.wait, running.stop, running.wait):
        with pytest.raises(ApplicationError, match="a record"):
            call()
    assert running.state == "failed"
    assert "a record can&#x27;t be read" in running._repr_html_()
    assert repr(running) == "RunningApp('app', failed: a record can't be read)"
    assert [each.message for each in caplog.records if each.levelno == logging.ERROR] == [
        "app has ended, and wait() raises why: a record can't be read"
    ]


def test_one_that_does_not_end_in_time_goes_on_ending() -> None:
    over = threading.Event()
    running = RunningApp("slow", lambda: None)
    running.begin(over.wait)
    with pytest.raises(TimeoutError, match="slow hasn't ended after 0 s"):
        running.stop(0)
    assert running.state == "stopping"
    over.set()
    running.stop()


def test_it_ends_with_its_block(made: Callable[..., Made]) -> None:
    with made().begin() as running:
        assert not running.wait(0)
    assert running.wait(0)

    with pytest.raises(ApplicationError, match="failed"), made(ApplicationError("failed")).begin():
        pass

    with pytest.raises(ZeroDivisionError) as raised, made(ApplicationError("failed")).begin():
        raise ZeroDivisionError
    assert raised.value.__notes__ == ["app, in the background: failed"]


def test_an_application_runs_once_in_a_process(made: Callable[..., Made]) -> None:
    first = made().begin()
    with pytest.raises(ProgramError, match="app runs in this process already: stop it first"):
        made().begin()
    with made(name="another").begin():
        first.stop()
    made().begin().stop()


def test_its_state_is_that_of_its_events(made: Callable[..., Made]) -> None:
    running = made().begin()
    running.overview.starting("starting Spark")
    assert repr(running) == "RunningApp('app', starting (starting Spark): 0 tasks, lag 0, 0 records)"
    assert "starting Spark" in running._repr_html_()
    running.overview.tasks(TasksNow(1.0, ["0_0", "0_1"], [], []))
    assert repr(running) == "RunningApp('app', running: 2 tasks, lag 0, 0 records)"
    running.overview.waiting("no broker")
    assert "waiting: no broker" in running._repr_html_()
    assert repr(running) == "RunningApp('app', waiting (no broker): 2 tasks, lag 0, 0 records)"
    running.stop()
    running.overview.waiting(None)
    assert ">stopped</span>" in running._repr_html_()


def test_a_worker_shows_its_queues(made: Callable[..., Made]) -> None:
    running = made(queues=True).begin()
    running.overview.starting("starting Spark")
    assert repr(running) == "RunningApp('app', starting (starting Spark))"
    running.counted([QueueCounts("jobs", acquired=3)])
    assert repr(running) == "RunningApp('app', running; jobs: 3 acquired, 0 accepted)"
    assert "3 acquired" in running._repr_html_()


def test_outside_of_notebooks_it_is_shown_in_lines(
    made: Callable[..., Made], capsys: pytest.CaptureFixture[str]
) -> None:
    running = made().begin()
    running.overview.starting("starting Spark")
    running.live()
    running.live()
    (shown,) = (each for each in threading.enumerate() if each.name == "kohort-app-live")
    running.listener.starting("starting Spark")  # which somebody wants to see just then
    running.overview.tasks(TasksNow(1.0, ["0_0"], [], []))
    running.listener.tasks(TasksNow(1.0, ["0_0"], [], []))
    running.stop()
    shown.join(60)
    said = capsys.readouterr().err
    assert said.count("app: starting Spark") == said.count("app: tasks: active 0_0") == 1


@pytest.mark.parametrize("early", [True, False])
def test_outside_of_notebooks_queues_are_shown_in_lines(
    made: Callable[..., Made], capsys: pytest.CaptureFixture[str], early: bool
) -> None:
    """Whether or not the worker has come to count when somebody wants to see it."""
    running, counts = made(queues=True).begin(), [QueueCounts("jobs")]
    if early:
        running.live()
    running.counted(counts)
    running.live()
    (shown,) = (each for each in threading.enumerate() if each.name == "kohort-app-live")
    running.stop()
    shown.join(60)
    assert capsys.readouterr().err.count("queue jobs: 0 acquired") == 1


def test_queues_that_are_counted_just_then_are_shown_once(made: Callable[..., Made]) -> None:
    """The worker comes to count after somebody has asked to see it, and before that has looked for counts."""
    running = made(queues=True).begin()
    reading = running._reading

    class Between:
        def __enter__(self) -> None:
            reading.acquire()

        def __exit__(self, *_: object) -> None:
            reading.release()
            if running._reading is self:
                running._reading = reading
                running.counted([QueueCounts("jobs")])

    running._reading = Between()  # type: ignore[assignment]
    running.live()
    shown = [each for each in threading.enumerate() if each.name == "kohort-app-live"]
    running.stop()
    for each in shown:
        each.join(60)
    assert len(shown) == 1


class Display:
    """What a kernel has shown, by how often."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.changed = threading.Condition()

    def display(self, bundle: dict[str, str], raw: bool, display_id: bool) -> Display:
        assert raw and display_id
        self.pages.append(bundle["text/html"])
        return self

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        assert raw and bundle["text/plain"].startswith("RunningApp(")
        with self.changed:
            self.pages.append(bundle["text/html"])
            self.changed.notify()

    def shows(self, text: str) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: text in self.pages[-1], 60)


def in_a_kernel(monkeypatch: pytest.MonkeyPatch, display: Display) -> None:
    """From now on, this process is a notebook's kernel, which shows what it displays there."""
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", display)  # type: ignore[arg-type]


def test_who_waits_for_its_end_waits_for_what_shows_it(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not for long: a cell that has ended can be past being changed, and a display may hang."""
    going_on = threading.Event()

    class Slow(Display):
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            assert going_on.wait(60)
            super().update(bundle, raw)

    shown = Slow()
    in_a_kernel(monkeypatch, shown)
    running = made().begin()
    running.live(seconds=60)
    running.ask()
    threading.Timer(0.2, going_on.set).start()
    assert running.wait()
    assert ">stopped</span>" in shown.pages[-1]

    going_on.clear()
    hanging = made(name="another").begin()
    hanging.live(seconds=60)
    hanging.ask()
    assert hanging.await_end(60)
    assert hanging.wait(0)
    assert ">stopped</span>" not in shown.pages[-1]
    going_on.set()


def test_in_a_notebook_it_is_shown_until_it_ends(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Display()
    in_a_kernel(monkeypatch, shown)
    running = made().begin()
    running.live(seconds=0.01)
    assert "starting" in shown.pages[0]
    running.overview.tasks(TasksNow(1.0, ["0_0"], [], []))
    assert shown.shows(">running</span>")
    running.overview.waiting("no broker")
    assert shown.shows("waiting: no broker")
    running.overview.waiting(None)
    running.stop()
    assert shown.shows(">stopped</span>")
    assert all(one != other for one, other in pairwise(shown.pages))


def test_what_changes_while_it_is_read_is_read_again(made: Callable[..., Made]) -> None:
    running, reads = made().begin(), iter([RuntimeError("dictionary changed size"), KeyError("0")])

    def lags() -> dict[str, RecordsLag]:
        if (error := next(reads, None)) is not None:
            raise error
        return {"0": RecordsLag(7, 1.0)}

    running.overview.measures(lags)
    assert repr(running) == "RunningApp('app', starting: 0 tasks, lag 7, 0 records)"


AT_EXIT = """
import asyncio, threading
from kohort.spark.running_app import RunningApp

asked = threading.Event()

def run():
    async def wait():
        await asyncio.to_thread(asked.wait)
        print("finishing", await asyncio.to_thread(lambda: "what is under way"))
    asyncio.run(wait())

RunningApp("app", asked.set).begin(run)
"""


def test_the_end_of_the_process_stops_it_in_good_order() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "finishing what is under way\n", "")
