"""When what was appended counts as safe: at once, or when it is on the disk.

It has to be on the disk with `--durable`, and where `flush.messages` is reached. Syncs run in a thread, one at a time.
All that was appended to a log while a sync ran is covered by the next, so the more producers wait, the more
acknowledgements a sync brings (group commit).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVarTuple

from kohort.log import Log
from kohort.protocol.errors import KafkaError

__all__ = ["LogFlusher"]

Args = TypeVarTuple("Args")

log = logging.getLogger("kohort.broker.log_flusher")


def _nothing() -> None:
    """What happens when records are safe that nobody waits for."""


def _ignored(error: KafkaError) -> None:
    """What happens when they aren't: the log has told of it, and is offline."""


class _Waiting(NamedTuple):
    """Whom to tell when a sync is over."""

    safe: Callable[[], None]
    failed: Callable[[KafkaError], None]


class LogFlusher:
    """Tells when appends are safe.

    Args:
        durable: whether safe means on the disk.
        advanced: called with a log whose high watermark has risen.
    """

    def __init__(self, durable: bool, advanced: Callable[[Log], None]) -> None:
        self.durable = durable
        self._advanced = advanced
        self._waiting: dict[Log, list[_Waiting]] = {}
        self._syncing: asyncio.Task[None] | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, "kohort-sync")

    def when_safe(
        self, logged: Log, safe: Callable[[], None] = _nothing, failed: Callable[[KafkaError], None] = _ignored
    ) -> None:
        """Call `safe` when all that was appended to a log until now is safe, or `failed` if that can't be."""
        unsynced = logged.log_end_offset - logged.flushed_offset
        if not unsynced or not (self.durable or unsynced >= logged.config.flush_messages):
            self._advanced(logged)
            safe()
            return
        if not self.durable:
            self._advanced(logged)
        self._waiting.setdefault(logged, []).append(_Waiting(safe, failed))
        if self._syncing is None:
            self._syncing = asyncio.get_running_loop().create_task(self._sync())

    async def flush(self, logged: Log) -> None:
        """Sync a log that nobody waits for; in a thread, until all is closed.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline.
        """
        if self._closed:
            logged.flush()
        else:
            await asyncio.get_running_loop().run_in_executor(self._thread, logged.flush)

    async def close(self) -> None:
        """Wait until everything that somebody waits for is safe; what comes later is synced on the spot."""
        while self._syncing is not None:
            await self._syncing
        self._closed = True
        self._thread.shutdown()

    async def _sync(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, {}
                for logged, calls in waiting.items():
                    error: KafkaError | None = None
                    try:
                        await self.flush(logged)
                    except KafkaError as caught:
                        error = caught
                    _tell(self._advanced, logged)
                    for call in calls:
                        if error is None:
                            _tell(call.safe)
                        else:
                            _tell(call.failed, error)
        finally:
            self._syncing = None


def _tell(function: Callable[[*Args], None], *args: *Args) -> None:
    """Call somebody who waited for a sync; whatever comes of it, the others have to be told, too."""
    try:
        function(*args)
    except Exception:
        log.exception("an answer could not be given after a sync")
