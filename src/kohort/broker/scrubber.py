"""Scrubs all logs at an interval, in a thread, at a pace that leaves the machine to the clients."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from kohort.broker.log_manager import LogManager
from kohort.broker.topics import Topics
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.log import Log

log = logging.getLogger("kohort.broker.scrubber")

FIRST_SCRUB_MS: Final = 30_000
"""The first scrub begins so long after a start, which reads no more than the ends of logs that were closed."""

LONGEST_SCRUB_INTERVAL_MS: Final = 1 << 33
"""A hundred days stand for never."""

WORK_SECONDS: Final = 0.005
SHARE: Final = 0.05
"""Of a core: after that work the thread sleeps, until it has had no more than this share."""


class Pace:
    """Lets a thread work for a share of the time.

    Args:
        stopping: ends a sleep.
        clock: seconds.
        sleep: of seconds; returns early if the thread shall end.
    """

    def __init__(
        self,
        stopping: threading.Event,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._stopping = stopping
        self._clock = clock
        self._sleep = stopping.wait if sleep is None else sleep
        self._since = clock()

    def __call__(self) -> bool:
        """Sleeps, if it is time to; returns whether the thread shall go on."""
        worked = self._clock() - self._since
        if worked >= WORK_SECONDS:
            self._sleep(worked * (1 / SHARE - 1))
            self._since = self._clock()
        return not self._stopping.is_set()


class Scrubber:
    """Compares the checksums of all batches there are: one log after another, one segment after another."""

    def __init__(self, topics: Topics, log_manager: LogManager) -> None:
        self._topics = topics
        self._log_manager = log_manager
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, "kohort-scrub")

    async def scrub(self) -> None:
        """Scrubs all logs once; damages are told as wherever they are met."""
        for name, scrubbed in self._log_manager.logs(self._topics).items():
            try:
                await self._scrub(scrubbed)
            except KafkaError:  # it is offline, and has said why
                continue
            except OSError as error:
                log.warning("%s can't be scrubbed: %s", name, error)

    async def _scrub(self, scrubbed: Log) -> None:
        if scrubbed.offline is not None:
            return
        loop = asyncio.get_running_loop()
        for part in scrubbed.plan_scrub():
            try:
                whole = await loop.run_in_executor(self._thread, part.run, Pace(self._stopping))
            except FileNotFoundError:  # deleted, or compacted, meanwhile; else the next reader takes the log offline
                continue
            if whole:
                scrubbed.finish_scrub(part)

    def stop(self) -> None:
        """Ends a scrub that is under way; nothing more is told."""
        self._stopping.set()
        self._thread.shutdown(cancel_futures=True)
