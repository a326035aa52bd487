"""When what was appended counts as safe: at once, or with `--durable` when it is on the disk.

Syncs run in a thread, one at a time. All that was appended to a log while a sync ran is covered by the next, so the
more producers wait, the more acknowledgements a sync brings (group commit).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kohort.log.log import Log
from kohort.protocol.errors import KafkaError

__all__ = ["Commits"]

log = logging.getLogger("kohort.broker.commits")


class Commits:
    """Tells when appends are safe.

    Args:
        durable: whether safe means on the disk.
        advanced: called with a log whose high watermark has risen.
    """

    def __init__(self, durable: bool, advanced: Callable[[Log], None]) -> None:
        self.durable = durable
        self._advanced = advanced
        self._waiting: dict[Log, list[tuple[int, Callable[[], None], Callable[[KafkaError], None]]]] = {}
        self._syncing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "kohort-sync") if durable else None

    def after(
        self, logged: Log, end_offset: int, safe: Callable[[], None], failed: Callable[[KafkaError], None]
    ) -> None:
        """Call `safe` when all of a log before `end_offset` is safe, or `failed` if that can't be."""
        if not self.durable or logged.flushed_offset >= end_offset:
            self._advanced(logged)
            safe()
            return
        self._waiting.setdefault(logged, []).append((end_offset, safe, failed))
        if self._syncing is None:
            self._syncing = asyncio.get_running_loop().create_task(self._sync())

    async def _sync(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, {}
                results = await asyncio.gather(
                    *(loop.run_in_executor(self._thread, logged.flush) for logged in waiting), return_exceptions=True
                )
                for (logged, calls), result in zip(waiting.items(), results, strict=True):
                    self._advanced(logged)
                    for _, safe, failed in calls:
                        try:
                            if isinstance(result, KafkaError):
                                failed(result)
                            elif isinstance(result, BaseException):
                                raise result
                            else:
                                safe()
                        except Exception:
                            log.exception("an answer could not be given after a sync")
        finally:
            self._syncing = None

    async def close(self) -> None:
        """Wait until everything that was appended is safe."""
        if self._syncing is not None:
            await self._syncing
        if self._thread is not None:
            self._thread.shutdown()
