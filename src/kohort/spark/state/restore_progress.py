"""How far a store is in its changelog, how far its restore is, and whether the store has to be rebuilt first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from kohort.client.types import TopicPartition
from kohort.spark.state.restore_buffer import RestoreBuffer
from kohort.spark.state.store import Store

log = logging.getLogger("kohort.spark.state.changelog_reader")


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """How far a restore is.

    Attributes:
        partition: of the changelog.
        done, total: offsets that were read, and that there were to read when it began.
        finished: whether this is the last progress of the restore.
    """

    store: str
    partition: TopicPartition
    done: int
    total: int
    finished: bool


@dataclass(slots=True, eq=False)
class StoreChangelog:
    """A store, and where it is in its changelog.

    Attributes:
        partition: of the changelog.
        store: what the changelog is written to.
        reading: whether the changelog is read: the store fits it, and the consumer has the store's position.
        rebuild: why the store has to be cleared before it is read.
        retry_at: when to try again to start reading, in `time.monotonic()`.
        position: offset after what was read; -1 while unknown.
        end: last known high watermark; -1 while unknown.
        restore: the restore that goes on, if any.
        buffer: what was read after `position` and isn't written yet, while it is far behind.
    """

    partition: TopicPartition
    store: Store
    reading: bool = False
    rebuild: str | None = None
    retry_at: float = 0
    position: int = -1
    end: int = -1
    restore: Restore | None = None
    buffer: RestoreBuffer | None = None

    def fail(self, error: Exception) -> None:
        """Ends the restore, if any, with an error."""
        if self.restore is not None and not self.restore.done.done():
            self.restore.done.set_exception(error)


@dataclass(slots=True, eq=False)
class Restore:
    """A restore: it ends when the store has all that was in the changelog when it began.

    Attributes:
        done: gets the position.
        on_progress: called with the progress now and then.
        start, target: offsets where it began, and where it ends; -1 while unknown.
        reported_at: when progress was reported last.
    """

    done: asyncio.Future[int]
    on_progress: Callable[[RestoreProgress], None] | None
    start: int = -1
    target: int = -1
    reported_at: float = 0

    def report(self, changelog: StoreChangelog, *, finished: bool = False) -> None:
        """Calls `on_progress`."""
        if self.on_progress is not None:
            try:
                self.on_progress(self._progress(changelog, finished))
            except Exception:
                log.exception("a progress callback failed")

    def _progress(self, changelog: StoreChangelog, finished: bool) -> RestoreProgress:
        total = max(0, self.target - self.start)
        done = total if finished else min(total, max(0, changelog.position - self.start))
        return RestoreProgress(changelog.store.name, changelog.partition, done, total, finished)


def why_rebuild(position: int | None, store_topic_id: str, topic_id: str, beginning: int, end: int) -> str | None:
    """Why a store has to be cleared and filled from the beginning of its changelog; None if it can be read on.

    Args:
        position: the store's; None if it is empty.
        store_topic_id, topic_id: the topic that the store is a copy of ("": unknown), and the topic that there is.
        beginning, end: the first offset of the changelog, and its high watermark.
    """
    if store_topic_id and store_topic_id != topic_id:
        return "the topic was deleted and created again"
    if position is None:
        return None
    if position > end:
        return f"the store is at offset {position}, and the changelog ends at {end}"
    if position < beginning:
        return f"the store is at offset {position}, and the changelog begins at {beginning}"
    return None
