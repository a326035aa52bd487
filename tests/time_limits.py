"""Every test has a time limit, and tells where every thread and task stands when it is over.

The limit is `timeout` in pyproject.toml, longer for tests that take long, or what a test says with
`@pytest.mark.timeout(seconds)`. Three nets hold a test that hangs, each one what falls through that above:

| after | what happens | so that |
| --- | --- | --- |
| the limit | pytest-timeout's signal raises in the main thread, thrice | what waits ends, and the test has failed |
| and the grace | a thread tells which test it is, and ends the process | C code and cleanups that hang do |
| and it again | faulthandler ends the process | C code that lets no other thread run does |

Where pytest-xdist runs the tests, it takes another process for one that ended, and the test has failed. The process of
pytest itself has the grace to end, once all tests have.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import inspect
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Any, Final

import pytest
from pytest_timeout import Settings, is_debugging

LONG_S: Final = 1_800
"""The limit of a test that is marked `long`."""

_STRIKES: Final = 3
"""How often the signal strikes within the grace: somebody may catch what it raises, as a finalizer does."""

_DEEP: Final = 200
"""Of how many calls a task's stack is shown."""

_STDERR: Final = pytest.StashKey[int]()
_NETS: Final = pytest.StashKey["_Nets"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("timeout_grace", "Seconds for a test to end after its timeout; then its process does", default="60")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STDERR] = os.dup(2)  # what is said last mustn't be captured


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Threads that tests have left are waited for now. A worker of pytest-xdist only waits for the others."""
    if hasattr(config, "workerinput"):
        return
    faulthandler.dump_traceback_later(_grace(config), file=config.stash[_STDERR], exit=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))


# The nets -------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> Generator[None, object, object]:
    done = yield
    if settings.method == "signal" and threading.current_thread() is threading.main_thread():
        grace = _grace(item.config)
        nets = item.stash[_NETS] = _Nets(item, settings.timeout, grace)
        signal.signal(signal.SIGALRM, nets.strike)
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, grace / _STRIKES)
        nets.spread()
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        _take_in(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """The test, its setup or its teardown has ended: what the signal raised must come no more, amidst pytest."""
    if _NETS in item.stash and item.stash[_NETS].struck:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item) -> None:
    """A test fails. Other plugins lift their limits then, but what hangs may be yet to come."""
    if _NETS in node.stash:
        node.stash[_NETS].spread_last()


class TestTimeoutError(SystemExit):
    """A test isn't done in time. Of all exceptions event loops let those pass alone that end a program."""

    __test__ = False


class _Nets:
    """The nets under a test, from now on.

    Args:
        item: the test.
        limit, grace: in seconds.
    """

    def __init__(self, item: pytest.Item, limit: float, grace: float) -> None:
        self._name = item.nodeid
        self._terminal = item.config.get_terminal_writer()
        self._stderr = item.config.stash[_STDERR]
        self._limit, self._grace = limit, grace
        self._last = time.monotonic() + limit + 2 * grace
        self._before = ""
        self._thread = threading.Timer(limit + grace, self._give_up)
        self._thread.name = "time limit"
        self._thread.daemon = True

    def spread(self) -> None:
        self._thread.start()
        self.spread_last()

    def spread_last(self) -> None:
        if not is_debugging():
            faulthandler.dump_traceback_later(max(1.0, self._last - time.monotonic()), file=self._stderr, exit=True)

    @property
    def struck(self) -> bool:
        return bool(self._before)

    def take_in(self) -> None:
        self._thread.cancel()
        self._thread.join()  # tests count threads
        faulthandler.cancel_dump_traceback_later()

    def strike(self, *_: object) -> None:
        __tracebackhide__ = True
        if is_debugging():
            return
        if not self._before:
            self._before = stacks()
            self._terminal.line()
            self._terminal.sep("+", f"{self._name}: not done within {self._limit:g} s")
            self._terminal.write(self._before)
        raise TestTimeoutError(f"not done within {self._limit:g} s")

    def _give_up(self) -> None:
        if is_debugging():
            return
        said = f"\n{self._name}: not done within {self._limit:g} s, nor {self._grace:g} s later: its process ends\n"
        if self._before:
            said += f"\n++ When its time was over ++\n{self._before}\n++ Now ++\n"
        os.write(self._stderr, (said + stacks()).encode(errors="replace"))
        os._exit(1)


def _grace(config: pytest.Config) -> float:
    return float(config.getini("timeout_grace"))


def _take_in(item: pytest.Item) -> None:
    if _NETS in item.stash:
        item.stash[_NETS].take_in()
        del item.stash[_NETS]


# What is told ---------------------------------------------------------------------------------------------------------


def stacks() -> str:
    """Where all threads stand, and all tasks of all event loops, newest call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    said = []
    for ident, frame in sys._current_frames().items():
        said += [f"-- thread {names.get(ident, ident)!r}\n", *traceback.format_stack(frame)]
    for task in (each for each in gc.get_objects() if issubclass(type(each), asyncio.Task)):
        if not task.done():
            *frames, awaited = _awaits(task.get_coro())
            said += [f"-- task {task.get_name()!r}\n", *traceback.StackSummary.extract(iter(frames)).format()]
            said += [f"  awaits {awaited!r}\n"] if awaited is not None else []
    return "".join(said)


def _awaits(awaited: Any) -> Iterator[Any]:
    """The frames of a coroutine and of what it awaits, with their lines; last of all, what has none."""
    for _ in range(_DEEP):
        if awaited is None or isinstance(awaited, asyncio.Future):
            break
        for kind in ("cr", "gi", "ag"):
            frame: FrameType | None = getattr(awaited, f"{kind}_frame", None)
            if frame is not None:
                yield frame, frame.f_lineno
                awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
                break
        else:
            # As the awaitables of futures and of async generators, which say what they stand for to nobody else.
            behind = gc.get_referents(awaited)
            awaited = next((each for each in behind if inspect.isawaitable(each) or inspect.isasyncgen(each)), None)
    yield awaited
