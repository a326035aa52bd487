"""The tailer: keeps stores abreast of their changelogs, and restores them.

One consumer reads all the changelogs of an instance, and only what is committed. A store is compared with its
changelog before it is read on: one that is ahead of it, or behind its beginning, or a copy of another topic that had
this name, is cleared and filled from the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from kohort.client.admin import Admin
from kohort.client.column_codec import load_columns
from kohort.client.config import Servers
from kohort.client.consumer import Consumer
from kohort.client.errors import ClientError, ClosedError, NoOffsetError, RecordError
from kohort.client.lifecycle import Lifecycle
from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.state.errors import StateError, StoreClosedError, StoreCorruptError
from kohort.spark.state.restore_progress import Followed, Restore, RestoreProgress, Waiting, Waits, unfit
from kohort.spark.state.store import Store

__all__ = ["ChangelogReader", "RestoreProgress"]

log = logging.getLogger(__name__)

OnProgress = Callable[[RestoreProgress], None]

_LOOK_MS: Final = 10
"""How long the tailer waits for records while somebody waits for it."""

_IDLE_MS: Final = 50
_ENDS_EVERY_S: Final = 1.0
_PROGRESS_EVERY_S: Final = 0.1
_RETRY_S: Final = 0.5
_API_TIMEOUT_MS: Final = 5_000
_FETCH_MAX_WAIT_MS: Final = 100
"""A changelog that comes in waits so long for the others that have no news."""


class ChangelogReader(Lifecycle):
    """Follows any number of changelogs into stores, or restores them. Used within one event loop.

    Args:
        servers: addresses or a configuration.
        waiting: called with the reason when it can't read on, and with None when it can again.
    """

    def __init__(self, servers: Servers, waiting: Waiting | None = None) -> None:
        self._consumer = Consumer(
            servers,
            auto_offset_reset="none",
            isolation_level="read_committed",
            fetch_max_wait_ms=_FETCH_MAX_WAIT_MS,
            max_partition_fetch_bytes=4 * 1024 * 1024,
            allow_auto_create_topics=False,
            default_api_timeout_ms=_API_TIMEOUT_MS,
        )
        self._admin = Admin(servers, default_api_timeout_ms=_API_TIMEOUT_MS)
        self._waits = Waits(waiting)
        self._followed: dict[TopicPartition, Followed] = {}
        self._news = asyncio.Event()
        self._writing: asyncio.Future[None] | None = None
        self._written: Followed | None = None
        self._thread = ThreadPoolExecutor(1, "kohort-tailer")
        self._tasks: list[asyncio.Task[None]] = []
        self._beginning: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Find the cluster. Raises as `Consumer.start`."""
        if self._tasks:
            return
        try:
            await self._consumer.start()
            await self._admin.start()
        except BaseException:
            await self.close()
            raise
        load_columns()
        self._tasks = [
            asyncio.create_task(self._tail(), name="kohort-tailer"),
            asyncio.create_task(self._look_at_ends(), name="kohort-tailer-ends"),
        ]

    async def close(self) -> None:
        """Stop; stores stay open. Who waits for a restore gets a `ClosedError`. May be called twice."""
        if self._closed:
            return
        self._closed = True
        tasks = [*self._tasks, *self._beginning]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await self._all_written()
        for followed in self._followed.values():
            followed.fail(ClosedError("the tailer is closed"))
        self._followed.clear()
        await asyncio.gather(self._consumer.close(), self._admin.close(), return_exceptions=True)
        self._thread.shutdown(wait=False)

    def follow(self, store: Store, partition: TopicPartition) -> None:
        """Keep a store abreast of its changelog, from now on: a standby or a warm-up. Returns at once.

        Raises:
            ClosedError: the tailer is closed.
            ValueError: another store follows this changelog.
        """
        self._follow(store, partition)

    async def unfollow(self, partition: TopicPartition) -> None:
        """Leave a store alone; when this returns, nothing is written to it any more. Unknown ones are left alone."""
        followed = self._followed.get(partition)
        if followed is not None:
            await self._drop(followed, StoreClosedError(f"store {followed.store.name} isn't restored any more"))

    async def restore(
        self,
        store: Store,
        partition: TopicPartition,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Wait until all that is in the changelog now is in the store; then leave the store alone.

        What lies behind a transaction that is still open counts: it is waited for. A store that is followed already
        goes on from where it is. If this is cancelled, the store is left alone.

        Args:
            store: closed by whoever opened it.
            partition: of the changelog.
            on_progress: called now and then, and at the end.

        Returns:
            The position: the offset in the changelog after what the store has.

        Raises:
            StoreClosedError: the store was closed or unfollowed meanwhile.
            ClosedError: the tailer was closed.
            RecordError: the changelog is corrupt.
            ValueError: another store follows this changelog, or this one is being restored already.
        """
        followed = self._follow(store, partition)
        if followed.restore is not None:
            raise ValueError(f"store {store.name} is being restored already")
        restore = followed.restore = Restore(asyncio.get_running_loop().create_future(), on_progress)
        try:
            if followed.begun:
                await self._aim(followed, restore)
            self._news.set()
            position = await restore.done
        except BaseException:
            if self._followed.get(partition) is followed:
                await self._drop(followed, None)
            raise
        finally:
            followed.restore = None
        await self._drop(followed, None)
        return position

    def positions(self) -> dict[TopicPartition, tuple[int, int]]:
        """How far each store that is followed or restored is, and where its changelog ended when last looked.

        Those for which that isn't known yet are left out.
        """
        self._read_positions()
        return {
            at: (followed.position, max(followed.end, followed.position))
            for at, followed in self._followed.items()
            if followed.position >= 0 and followed.end >= 0
        }

    # What is followed.

    def _follow(self, store: Store, partition: TopicPartition) -> Followed:
        if self._closed:
            raise ClosedError("the tailer is closed")
        followed = self._followed.get(partition)
        if followed is None:
            followed = self._followed[partition] = Followed(partition, store)
            self._news.set()
        elif followed.store is not store:
            raise ValueError(f"another store follows {partition}: unfollow it first")
        return followed

    async def _drop(self, followed: Followed, why: Exception | None) -> None:
        """Follow it no more; nothing is being written to it when this returns."""
        if self._followed.get(followed.partition) is followed:
            del self._followed[followed.partition]
            self._waits.say(None, followed.partition)
            self._assign()
        if why is not None:
            followed.fail(why)
        if self._written is followed and self._writing is not None:
            await asyncio.wait([self._writing])

    def _assign(self) -> None:
        self._consumer.assign([at for at, followed in self._followed.items() if followed.begun])

    async def _begin(self, followed: Followed) -> None:
        """Compare the store with its changelog, and have the consumer read on from where the store is."""
        at, store = followed.partition, followed.store
        try:
            topic = (await self._admin.topics.describe(at.topic))[at.topic]
            first = (await self._consumer.beginning_offsets(at))[at]
            end = (await self._consumer.end_offsets(at, isolation_level="read_uncommitted"))[at]
            origin = str(topic.topic_id) if topic.topic_id.int else store.origin
            position = store.positions.get(at.partition)
            if why := unfit(position, store.origin, origin, first, end, rebuild=followed.rebuild):
                log.warning("store %s is cleared, and restored from %s: %s", store.name, at, why)
                await self._in_thread(store.clear)
                position = None
            await self._in_thread(store.begin, origin)
        except StoreClosedError as error:
            await self._drop(followed, error)
            return
        except (KafkaError, ClientError, StateError) as error:
            if self._followed.get(at) is followed:
                self._waits.say(f"{at}: {error}", at)
            return
        if self._followed.get(at) is not followed:
            return
        followed.position = first if position is None else position
        followed.end = end
        followed.begun, followed.rebuild = True, None
        self._assign()
        self._consumer.seek(at, followed.position)
        if followed.restore is not None:
            self._aim_at(followed, followed.restore, end)
        self._waits.say(None, at)

    def _begin_those_that_can(self) -> None:
        """In tasks of their own: a changelog that isn't there keeps no other one waiting."""

        async def begin(followed: Followed) -> None:
            try:
                await self._begin(followed)
            except Exception:  # whatever it is, it's tried again
                log.exception("store %s can't follow %s yet", followed.store.name, followed.partition)
            finally:
                followed.retry_at = time.monotonic() + _RETRY_S
                self._news.set()

        now = time.monotonic()
        for followed in self._followed.values():
            if not followed.begun and followed.retry_at <= now:
                followed.retry_at = math.inf
                task = asyncio.create_task(begin(followed), name=f"kohort-tailer-{followed.partition}")
                self._beginning.add(task)
                task.add_done_callback(self._beginning.discard)

    def _begin_again(self, followed: Followed, *, rebuild: str | None = None, after: float = 0) -> None:
        followed.begun = False
        followed.rebuild = rebuild or followed.rebuild
        followed.retry_at = time.monotonic() + after
        self._assign()

    # Reading and writing.

    async def _tail(self) -> None:
        while True:
            try:
                self._begin_those_that_can()
                if not self._reads():
                    await self._some_news()
                    continue
                hurry = any(not each.begun or each.restore is not None for each in self._followed.values())
                batch = await self._consumer.poll_batch(_LOOK_MS if hurry else _IDLE_MS)
                if batch is not None:
                    await self._take(batch)
                else:
                    await self._all_written()
                if hurry:
                    await self._tell_restores()
            except NoOffsetError as error:
                for at in error.partitions:
                    if followed := self._followed.get(at):
                        self._begin_again(followed, rebuild="the changelog no longer has what comes next")
            except RecordError as error:
                log.error("changelog %s can't be read: %s", error.partition, error)
                if followed := self._followed.get(error.partition):
                    await self._drop(followed, error)
            except (KafkaError, ClientError) as error:
                if self._reads():  # the last one may have been dropped while it waited
                    self._waits.say(str(error), None)
                    await asyncio.sleep(_RETRY_S)
            except Exception:  # whatever it is, the other stores go on
                log.exception("the tailer failed, and goes on")
                await asyncio.sleep(_RETRY_S)

    def _reads(self) -> bool:
        return any(followed.begun for followed in self._followed.values())

    async def _some_news(self) -> None:
        self._news.clear()
        waits = [each.retry_at for each in self._followed.values() if each.retry_at < math.inf]
        pause = max(0.0, min(waits) - time.monotonic()) if waits else None
        with contextlib.suppress(TimeoutError):
            async with time_limit(pause):
                await self._news.wait()

    async def _take(self, batch: pa.RecordBatch) -> None:
        """Have a batch written, while the next one comes."""
        at = TopicPartition(batch["topic"][0].as_py(), batch["partition"][0].as_py())
        followed = self._followed.get(at)
        if followed is None or not followed.begun:
            return
        position = self._consumer.position(at)
        assert position is not None
        await self._all_written()
        self._read_positions()
        if self._followed.get(at) is not followed or not followed.begun:
            return  # it was dropped meanwhile
        if followed.restore is not None:
            followed.restore.records += batch.num_rows
        followed.position = min(followed.position, batch["offset"][0].as_py())
        self._written = followed
        self._writing = asyncio.get_running_loop().run_in_executor(
            self._thread, followed.store.write, batch["key"], batch["value"], position, at.partition
        )
        self._waits.say(None, None)

    async def _all_written(self) -> None:
        """Wait for the write that is under way, and see how it went."""
        writing, followed = self._writing, self._written
        if writing is None or followed is None:
            return
        await asyncio.wait([writing])
        if self._writing is not writing:
            return
        self._writing = self._written = None
        error = writing.exception()
        if error is None:
            return
        if self._followed.get(followed.partition) is not followed:
            return
        if isinstance(error, StoreClosedError):
            await self._drop(followed, error)
        elif isinstance(error, StoreCorruptError):
            self._begin_again(followed, rebuild=str(error))
        else:
            log.warning("%s", error, exc_info=None if isinstance(error, StateError) else error)
            self._waits.say(str(error), followed.partition)
            self._begin_again(followed, after=_RETRY_S)

    async def _tell_restores(self) -> None:
        """Those that are done are told, and the others' progress now and then."""
        self._read_positions()
        now = time.monotonic()
        for followed in self._all():
            restore = followed.restore
            if restore is None or restore.done.done() or not followed.begun or restore.target < 0:
                continue
            if followed.position >= restore.target:
                if self._written is followed:
                    continue  # what it waits for is being written
                restore.done.set_result(followed.position)
                restore.tell(followed, finished=True)
            elif now - restore.told >= _PROGRESS_EVERY_S:
                restore.told = now
                restore.tell(followed)

    def _all(self) -> list[Followed]:
        return list(self._followed.values())

    def _read_positions(self) -> None:
        """What is being written doesn't count yet."""
        for at, followed in self._followed.items():
            if followed.begun and followed is not self._written:
                position = self._consumer.position(at)
                if position is not None:
                    followed.position = position

    # Where changelogs end.

    async def _aim(self, followed: Followed, restore: Restore) -> None:
        """Find out where a restore of a store that is followed ends."""
        at = followed.partition
        while followed.begun and restore.target < 0 and not restore.done.done():
            try:
                end = (await self._consumer.end_offsets(at, isolation_level="read_uncommitted"))[at]
            except (KafkaError, ClientError) as error:
                if self._closed:
                    raise
                self._waits.say(f"{at}: {error}", at)
                await asyncio.sleep(_RETRY_S)
            else:
                self._waits.say(None, at)
                if followed.begun:  # otherwise `_begin` aims
                    self._aim_at(followed, restore, end)

    def _aim_at(self, followed: Followed, restore: Restore, end: int) -> None:
        followed.end = max(followed.end, end)
        restore.first, restore.target = followed.position, end

    async def _look_at_ends(self) -> None:
        while True:
            await asyncio.sleep(_ENDS_EVERY_S)
            begun = [each for each in self._followed.values() if each.begun]
            if not begun:
                continue
            try:
                await self._ends_of(begun)
            except (KafkaError, ClientError) as error:
                log.debug("ends of changelogs: %s", error)
                by_topic: dict[str, list[Followed]] = {}
                for each in begun:
                    by_topic.setdefault(each.partition.topic, []).append(each)
                await asyncio.gather(*map(self._ends_of, by_topic.values()), return_exceptions=True)

    async def _ends_of(self, some: Iterable[Followed]) -> None:
        by_name = {each.partition: each for each in some}
        for at, end in (await self._consumer.end_offsets(*by_name, isolation_level="read_uncommitted")).items():
            by_name[at].end = end

    async def _in_thread(self, work: Callable[..., None], *args: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
