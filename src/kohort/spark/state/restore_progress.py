"""A changelog that is followed into a store: what the tailer knows of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kohort.client.types import TopicPartition
from kohort.spark.state.store import Store

__all__ = ["Followed", "Restore", "RestoreProgress", "Waiting", "Waits", "unfit"]

log = logging.getLogger("kohort.spark.state.changelog_reader")

Waiting = Callable[[str | None], None]


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """How far a restore is.

    Attributes:
        store: its name.
        partition: of the changelog.
        done, total: offsets that were passed, and that were there to pass when it began.
        records: how many records lay there so far; a compacted changelog has fewer than offsets.
        per_second: records a second since it began.
        finished: whether this is the last word.
    """

    store: str
    partition: TopicPartition
    done: int
    total: int
    records: int
    per_second: float
    finished: bool


@dataclass(slots=True, eq=False)
class Followed:
    """One of a tailer's changelogs.

    Attributes:
        partition: of the changelog's topic.
        store: what it goes into.
        begun: whether it is read: it was compared with the store, and the consumer is there.
        rebuild: why the store has to be cleared before.
        retry_at: when to try again to begin (the loop's clock, in seconds).
        position: offset after what was read; -1 while not known.
        end: high watermark when last looked; -1 while not known.
        restore: who waits for it.
    """

    partition: TopicPartition
    store: Store
    begun: bool = False
    rebuild: str | None = None
    retry_at: float = 0
    position: int = -1
    end: int = -1
    restore: Restore | None = None

    def fail(self, error: Exception) -> None:
        """Whoever waits for it is told why it won't come."""
        if self.restore is not None and not self.restore.done.done():
            self.restore.done.set_exception(error)


@dataclass(slots=True, eq=False)
class Restore:
    """Somebody waits until what was in a changelog is in the store.

    Attributes:
        done: gets the position.
        on_progress: told now and then.
        first, target: offsets where it began, and where it ends; -1 while not known.
        records: how many came.
        since: when it began.
        told: when progress was told last.
    """

    done: asyncio.Future[int]
    on_progress: Callable[[RestoreProgress], None] | None
    first: int = -1
    target: int = -1
    records: int = 0
    since: float = field(default_factory=time.monotonic)
    told: float = 0

    def progress(self, followed: Followed, *, finished: bool = False) -> RestoreProgress:
        """How far it is."""
        total = max(0, self.target - self.first)
        done = total if finished else min(total, max(0, followed.position - self.first))
        took = max(time.monotonic() - self.since, 1e-3)
        name = followed.store.name
        return RestoreProgress(name, followed.partition, done, total, self.records, self.records / took, finished)

    def tell(self, followed: Followed, *, finished: bool = False) -> None:
        """Tell whoever wants to know."""
        if self.on_progress is not None:
            try:
                self.on_progress(self.progress(followed, finished=finished))
            except Exception:
                log.exception("a progress callback failed")


class Waits:
    """Why the tailer can't read on: the first reason is told, and None when there is none any more."""

    def __init__(self, waiting: Waiting | None) -> None:
        self._waiting = waiting
        self._reasons: dict[TopicPartition | None, str] = {}
        self._said: str | None = None

    def say(self, reason: str | None, at: TopicPartition | None) -> None:
        """There is a reason, or none any more: with one changelog, or (None) with all of them."""
        if reason is None:
            self._reasons.pop(at, None)
        else:
            self._reasons[at] = reason
        first = next(iter(self._reasons.values()), None)
        if first != self._said:
            self._said = first
            if first is not None:
                log.info("the tailer waits: %s", first)
            if self._waiting is not None:
                self._waiting(first)


def unfit(position: int | None, copied: str, origin: str, first: int, end: int, *, rebuild: str | None) -> str | None:
    """Why a store can't be read on from where it is; None if it can.

    Args:
        position: where the store is.
        copied, origin: ids of the topic that it is a copy of, and of the one there is now.
        first, end: where the changelog begins and ends.
        rebuild: a reason that is known already.
    """
    if copied and copied != origin:
        return "the topic was deleted and made anew"
    if rebuild:
        return rebuild
    if position is None:
        return None
    if position > end:
        return f"the store is at offset {position}, and the changelog ends at {end}"
    if position < first:
        return f"the store is at offset {position}, and the changelog begins at {first}"
    return None
