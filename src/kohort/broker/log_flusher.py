"""Syncs logs to the disk, and decides when an append is safe: acknowledged at once, or after a sync.

An append waits for a sync with `--durable`, and where it reaches `flush.messages`. Syncs run in a thread, one at a
time. The next sync covers everything that was appended to a log during the last, so more waiting producers mean more
acknowledgements a sync (group commit).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVarTuple

from kohort.log import Log
from kohort.protocol.errors import KafkaError

Args = TypeVarTuple("Args")

log = logging.getLogger("kohort.broker.log_flusher")


def _nothing() -> None:
    """The default `safe`: nobody waits."""


def _ignored(error: KafkaError) -> None:
    """The default `failed`: the log has reported the error, and is offline."""


class _Waiting(NamedTuple):
    """The callbacks of an append that waits for a sync."""

    safe: Callable[[], None]
    failed: Callable[[KafkaError], None]


class LogFlusher:
    """Syncs logs, and calls back when appends are safe.

    Args:
        durable: whether an append is safe only once it is on the disk.
        advanced: called with a log whose high watermark has advanced.
    """

    def __init__(self, durable: bool, advanced: Callable[[Log], object]) -> None:
        self.durable = durable
        self._advanced = advanced
        self._waiting: dict[Log, list[_Waiting]] = {}
        self._syncing: asyncio.Task[None] | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, "kohort-sync")

    def when_safe(
        self, logged: Log, safe: Callable[[], None] = _nothing, failed: Callable[[KafkaError], None] = _ignored
    ) -> None:
        """Calls `safe` once everything appended to the log so far is safe, or `failed` if the sync fails."""
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
        """Syncs a log: in the thread, or in place once `close` was called.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline.
        """
        if self._closed:
            logged.flush()
        else:
            await asyncio.get_running_loop().run_in_executor(self._thread, logged.flush)

    async def close(self) -> None:
        """Waits for the syncs that appends wait for. Later appends are synced in place."""
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
                    _call(self._advanced, logged)
                    for call in calls:
                        if error is None:
                            _call(call.safe)
                        else:
                            _call(call.failed, error)
        finally:
            self._syncing = None


def _call(function: Callable[[*Args], object], *args: *Args) -> None:
    """Calls a callback and logs its exception: the other callbacks must be called as well."""
    try:
        function(*args)
    except Exception:
        log.exception("a callback failed after a sync")
