"""Running a command's asynchronous body: to its end, to its timeout, or until it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import typer

from kohort.cli.client.errors import explain
from kohort.cli.terminal import fail
from kohort.client.errors import ClientError, ConfigError
from kohort.client.time_limit import time_limit
from kohort.protocol.errors import KafkaError

T = TypeVar("T")

_GRACE: Final = 1.0
"""Seconds beyond the timeout, in which requests with the same timeout can report what was slow."""


def run(
    body: Callable[[], Coroutine[Any, Any, T]],
    timeout: float | None = None,
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Runs `body`, and returns its result.

    Ctrl-C and SIGTERM cancel it, so that it closes its clients; a second one ends the process at once. If `body`
    catches the cancellation and returns, the command has succeeded; else the exit code is the shell's: 130, or 143.
    Wrong settings exit with 2, client errors with 1, and an error line.

    Args:
        timeout: seconds; None for no limit.
        loop_factory: makes the event loop; None for asyncio's own.
    """
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(_with_signals(body, timeout))
    except ConfigError as error:
        fail(str(error))
    except (ClientError, KafkaError) as error:
        fail(explain(error), 1)


async def _with_signals(body: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(_with_timeout(body, timeout))
    received: list[signal.Signals] = []
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}

    def stop(which: signal.Signals) -> None:
        received.append(which)
        for each in before:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        work.cancel()

    handles_signals = threading.current_thread() is threading.main_thread()  # other threads get none
    if handles_signals:
        for each in before:
            loop.add_signal_handler(each, stop, each)
    try:
        return await work
    except asyncio.CancelledError:
        if received:
            raise typer.Exit(128 + received[0]) from None
        raise
    finally:
        if handles_signals:
            for each, handler in before.items():
                loop.remove_signal_handler(each)
                signal.signal(each, handler)


async def _with_timeout(body: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
    if timeout is None:
        return await body()
    try:
        async with time_limit(timeout + _GRACE) as limit:
            return await body()
    except TimeoutError:
        if limit.expired():
            fail(f"not done within {timeout:g} s; --timeout gives it more", 1)
        raise
