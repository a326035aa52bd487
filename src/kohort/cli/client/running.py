"""How a command's asynchronous body runs: to its end, to its deadline, or until it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import typer

from kohort.cli.client.failures import explain
from kohort.cli.terminal import fail
from kohort.client.errors import ClientError, ConfigError
from kohort.client.time_limit import time_limit
from kohort.protocol.errors import KafkaError

__all__ = ["run"]

T = TypeVar("T")

_GRACE: Final = 1.0
"""Seconds that a deadline leaves for what has one of its own to say what was slow."""


def run(
    body: Callable[[], Coroutine[Any, Any, T]],
    timeout: float | None = None,
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """What `body` returns.

    Ctrl-C and SIGTERM cancel it, so that it closes its clients; a second one ends the process at once. A body that
    catches the cancellation and returns has ended well; else the exit code is the shell's: 130, or 143.
    Wrong settings exit with 2, whatever goes wrong between here and the brokers with 1, and a clear line.

    Args:
        timeout: seconds it may take; None for as long as it likes.
        loop_factory: makes the event loop, where asyncio's own is too slow.
    """
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(_watched(body, timeout))
    except ConfigError as error:
        fail(str(error))
    except (ClientError, KafkaError) as error:
        fail(explain(error), 1)


async def _watched(body: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(_timed(body, timeout))
    heard: list[signal.Signals] = []
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}

    def stop(which: signal.Signals) -> None:
        heard.append(which)
        for each in before:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        work.cancel()

    watched = threading.current_thread() is threading.main_thread()  # nobody else hears of signals
    if watched:
        for each in before:
            loop.add_signal_handler(each, stop, each)
    try:
        return await work
    except asyncio.CancelledError:
        if heard:
            raise typer.Exit(128 + heard[0]) from None
        raise
    finally:
        if watched:
            for each, handler in before.items():
                loop.remove_signal_handler(each)
                signal.signal(each, handler)


async def _timed(body: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
    if timeout is None:
        return await body()
    try:
        async with time_limit(timeout + _GRACE) as limit:
            return await body()
    except TimeoutError:
        if limit.expired():
            fail(f"not done within {timeout:g} s; --timeout gives it more", 1)
        raise
