"""Runs a coroutine in this process until it ends, whatever loop there is already; and what signals mean meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Final

from kohort.spark.runtime.shutdown import Shutdown

log = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def in_foreground(run: Callable[[], Coroutine[None, None, None]], stopping: Shutdown) -> None:
    """Runs it in a loop of its own; where this thread has a loop, as in a notebook, in a thread of its own.

    Args:
        run: makes the coroutine.
        stopping: asked when SIGINT interrupts a notebook's cell.

    Raises:
        BaseException: whatever it raises.
        KeyboardInterrupt: it was cancelled.
    """
    if not _in_a_loop():  # asked apart, so that what fails here has no error of asyncio's as its context
        _run_loop(run)
        return
    failure: list[BaseException] = []
    over = threading.Event()

    def apart() -> None:
        try:
            _run_loop(run)
        except BaseException as error:
            failure.append(error)
        finally:
            over.set()

    thread = threading.Thread(target=apart, name="kohort-application")
    with _interrupt(stopping.ask):
        thread.start()
        over.wait()  # not join, which takes a thread for ended once it was interrupted
    thread.join()
    if failure:
        raise failure[0]


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def _interrupt(asks: Callable[[], object]) -> Iterator[None]:
    """Meanwhile the first SIGINT asks, and interrupts nothing, at whatever moment it comes; the second interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: object) -> None:
        asks()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        # None: the handler before wasn't Python's.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def _run_loop(run: Callable[[], Coroutine[None, None, None]]) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(run())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


@contextlib.contextmanager
def signals(stop: Callable[[], object]) -> Iterator[None]:
    """Meanwhile SIGINT and SIGTERM stop; another one cancels the task. Only the main thread gets signals.

    What stops for a reason of its own isn't cut short by the first of them: it has an error to tell.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    running = asyncio.current_task()
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if interrupted and running is not None:
            log.warning("interrupted twice: ending at once")
            running.cancel()
        else:
            interrupted = True
            log.info("interrupted: finishing what is under way; again ends at once")
            stop()

    for each in _SIGNALS:
        loop.add_signal_handler(each, interrupt)
    try:
        yield
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, before[each])
