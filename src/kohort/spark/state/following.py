"""A changelog that is followed into a store: what the tailer knows of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kohort.client.types import TopicPartition
from kohort.spark.state.store import Store

__all__ = ["Followed", "RestoreProgress"]


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
