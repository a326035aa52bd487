"""Commits: the user's, at once or in the background, and auto commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final

from kohort.client.consuming.consumed_partitions import ConsumedPartitions
from kohort.client.consuming.fetch_collector import FetchCollector
from kohort.client.coordinator_connector import CoordinatorConnector
from kohort.client.errors import ClientError, PartialFailureError
from kohort.client.time_limit import time_limit
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError

_AUTO_COMMIT: Final = "kohort-auto-commit"

log = logging.getLogger("kohort.client.consumer")

CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], None]
"""Called after a commit in the background, with the offsets, and the error or None."""


class Commits:
    """Commits a group's offsets, one commit after another.

    Args:
        partitions, collector: know what was given and consumed.
        interval_ms: `auto_commit_interval_ms`; None without auto commit.
        timeout_ms: how long an automatic commit, or one in the background, may take.
    """

    def __init__(
        self,
        connector: CoordinatorConnector,
        partitions: ConsumedPartitions,
        collector: FetchCollector,
        *,
        interval_ms: int | None,
        timeout_ms: int,
    ) -> None:
        self._connector = connector
        self._partitions = partitions
        self._collector = collector
        self._auto_commit_enabled = interval_ms is not None
        self._timeout_ms = timeout_ms
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        if interval_ms is not None:
            self._start(self._auto_commit_loop(interval_ms), _AUTO_COMMIT)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, *, timeout_ms: int) -> None:
        """Commits these offsets, or those after everything that was given.

        Raises:
            PartialFailureError: some partitions' offsets couldn't be committed.
            CommitFailedError, FencedError, KafkaError, ConnectionLostError, RequestTimeoutError: none could.
        """
        await self._commit(self._to_commit(given=True) if offsets is None else offsets, timeout_ms)

    def commit_soon(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, callback: CommitCallback | None
    ) -> None:
        chosen = self._to_commit(given=True) if offsets is None else offsets

        async def work() -> None:
            failure: Exception | None = None
            try:
                await self._commit(chosen, self._timeout_ms)
            except (KafkaError, ClientError) as error:
                failure = error
            if callback is not None:
                try:
                    callback(chosen, failure)
                except Exception:
                    log.exception("commit_soon: the callback fails")
            elif failure is not None:
                log.warning("commit_soon: %s", failure)

        self._start(work(), "kohort-commit")

    async def auto_commit(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Commits what is consumed, with auto commit. Errors go to the log."""
        if not self._auto_commit_enabled:
            return
        try:
            await self._commit(self._to_commit(partitions, given=False), self._timeout_ms)
        except (KafkaError, ClientError) as error:
            log.warning("automatic commit: %s", error)

    async def close(self, timeout_ms: float) -> None:
        """Commits what is consumed, with auto commit, and waits for commits in the background while there's time."""
        for task in tuple(self._tasks):
            if task.get_name() == _AUTO_COMMIT:
                task.cancel()
        try:
            async with time_limit(timeout_ms / 1000):
                await self.auto_commit()
                await asyncio.gather(*self._tasks, return_exceptions=True)
        except TimeoutError:
            log.warning("closing: the last offsets couldn't be committed within %d ms", timeout_ms)
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _to_commit(
        self, partitions: Collection[TopicPartition] | None = None, *, given: bool
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        self._collector.sync()
        return self._partitions.to_commit(partitions, given=given)

    async def _commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int) -> None:
        async with self._lock:
            if not offsets:
                return
            errors = await self._connector.commit(offsets, timeout_ms=timeout_ms)
            done = {at: offset for at, offset in offsets.items() if at not in errors}
            self._partitions.committed(done.items())
        if errors:
            raise PartialFailureError(done, errors)

    async def _auto_commit_loop(self, interval_ms: int) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await self.auto_commit()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
