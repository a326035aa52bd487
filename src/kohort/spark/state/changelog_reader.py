"""Restores stores from their changelogs, and keeps standbys up to date with them.

One consumer reads all the changelogs of an instance, and only what is committed. Before a changelog is read, it is
compared with the store: a store that is ahead of it, or behind its beginning, or a copy of another topic that had this
name, is cleared and filled from the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pyarrow as pa

from kohort.client.admin import Admin
from kohort.client.column_codec import load_columns
from kohort.client.config import Servers
from kohort.client.consumer import Consumer
from kohort.client.errors import ClientError, ClosedError, NoOffsetError, RecordError
from kohort.client.lifecycle import Lifecycle
from kohort.client.time_limit import event_within
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.state.changelog_waits import OnWait, WaitReasons
from kohort.spark.state.errors import StateError, StoreClosedError, StoreCorruptError
from kohort.spark.state.restore_buffer import FAR_BEHIND, FULL, RestoreBuffer
from kohort.spark.state.restore_progress import Restore, RestoreProgress, StoreChangelog, why_rebuild
from kohort.spark.state.store import Store

__all__ = ["ChangelogReader", "RestoreProgress"]

log = logging.getLogger(__name__)

OnProgress = Callable[[RestoreProgress], None]

_RESTORE_POLL_MS: Final = 10
"""How long a poll waits for records while a restore waits for them."""

_POLL_MS: Final = 50
_IDLE_S: Final = 0.25
"""What is gathered is written when nothing was added for so long, while no other changelog has records either."""

_IDLE_BESIDE_OTHERS_S: Final = 5.0
"""The same while others have records: until it is a changelog's turn again."""

_END_OFFSETS_EVERY_S: Final = 1.0
_PROGRESS_EVERY_S: Final = 0.1
_RETRY_S: Final = 0.5
_API_TIMEOUT_MS: Final = 5_000
_FETCH_BYTES: Final = 4 * 1024 * 1024
_FETCH_MAX_WAIT_MS: Final = 100
"""A changelog that is added waits up to this long for a fetch of others that have no new records."""


class ChangelogReader(Lifecycle):
    """Reads any number of changelogs into stores. Used within one event loop.

    Args:
        servers: addresses or a configuration.
        on_wait: called with the reason when it can't read on, and with None when it can again.
    """

    def __init__(self, servers: Servers, on_wait: OnWait | None = None) -> None:
        self._consumer = Consumer(
            servers,
            auto_offset_reset="none",
            isolation_level="read_committed",
            fetch_max_wait_ms=_FETCH_MAX_WAIT_MS,
            max_partition_fetch_bytes=_FETCH_BYTES,
            allow_auto_create_topics=False,
            default_api_timeout_ms=_API_TIMEOUT_MS,
        )
        self._admin = Admin(servers, default_api_timeout_ms=_API_TIMEOUT_MS)
        self._waits = WaitReasons(on_wait)
        self._changelogs: dict[TopicPartition, StoreChangelog] = {}
        self._changed = asyncio.Event()
        self._pending_write: asyncio.Future[None] | None = None
        self._pending_changelog: StoreChangelog | None = None
        self._pending_position = -1
        self._waiting_changelog: StoreChangelog | None = None  # what was read of it waits for the write before
        self._thread = ThreadPoolExecutor(1, "kohort-changelogs")
        self._sorting_thread = ThreadPoolExecutor(1, "kohort-changelogs-sorting")
        self._tasks: list[asyncio.Task[None]] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Finds the cluster. Raises as `Consumer.start`."""
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
            asyncio.create_task(self._read(), name="kohort-changelogs"),
            asyncio.create_task(self._poll_end_offsets(), name="kohort-changelog-ends"),
        ]

    async def close(self) -> None:
        """Stops; stores stay open. Restores that go on raise `ClosedError`. May be called twice."""
        if self._closed:
            return
        self._closed = True
        tasks = [*self._tasks, *self._starting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await self._finish_write()
        for changelog in self._changelogs.values():
            changelog.fail(ClosedError("the changelog reader is closed"))
        self._changelogs.clear()
        await asyncio.gather(self._consumer.close(), self._admin.close(), return_exceptions=True)
        self._thread.shutdown(wait=False)
        self._sorting_thread.shutdown(wait=False)

    def follow(self, store: Store, partition: TopicPartition) -> None:
        """Keeps a store up to date with its changelog from now on: a standby or a warm-up. Returns at once.

        Raises:
            ClosedError: the changelog reader is closed.
            ValueError: another store follows this changelog.
        """
        self._add(store, partition)

    async def unfollow(self, partition: TopicPartition) -> None:
        """Stops to follow a changelog, if it is followed; when this returns, nothing is written to its store."""
        changelog = self._changelogs.get(partition)
        if changelog is not None:
            await self._remove(changelog, StoreClosedError(f"store {changelog.store.name} isn't restored any more"))

    async def restore(
        self,
        store: Store,
        partition: TopicPartition,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Waits until the store has all that is in the changelog now; then stops to follow it.

        This includes what lies behind an open transaction: it waits for the transaction's end. A store that is followed
        already goes on from its position. When it is cancelled, the store isn't followed any more.

        Args:
            store: the store; it stays open.
            partition: of the changelog.
            on_progress: called now and then, and at the end.

        Returns:
            The position: the offset in the changelog after what the store has.

        Raises:
            StoreClosedError: the store was closed or unfollowed meanwhile.
            ClosedError: the changelog reader was closed.
            RecordError: the changelog is corrupt.
            ValueError: another store follows this changelog, or this one is being restored already.
        """
        changelog = self._add(store, partition)
        if changelog.restore is not None:
            raise ValueError(f"store {store.name} is being restored already")
        restore = changelog.restore = Restore(asyncio.get_running_loop().create_future(), on_progress)
        try:
            if changelog.reading:
                await self._find_target(changelog, restore)
            self._changed.set()
            position = await restore.done
        except BaseException:
            if self._changelogs.get(partition) is changelog:
                await self._remove(changelog, None)
            raise
        finally:
            changelog.restore = None
        await self._remove(changelog, None)
        return position

    def positions(self) -> dict[TopicPartition, tuple[int, int]]:
        """The position and the changelog's last known end offset of each store that is followed or restored.

        Leaves out those that aren't known yet.
        """
        self._update_positions()
        return {
            at: (changelog.position, max(changelog.end, changelog.position))
            for at, changelog in self._changelogs.items()
            if changelog.position >= 0 and changelog.end >= 0
        }

    # Adding, starting and removing changelogs.

    def _add(self, store: Store, partition: TopicPartition) -> StoreChangelog:
        if self._closed:
            raise ClosedError("the changelog reader is closed")
        changelog = self._changelogs.get(partition)
        if changelog is None:
            changelog = self._changelogs[partition] = StoreChangelog(partition, store)
            self._changed.set()
        elif changelog.store is not store:
            raise ValueError(f"another store follows {partition}: unfollow it first")
        return changelog

    async def _remove(self, changelog: StoreChangelog, error: Exception | None) -> None:
        """Removes a changelog; when this returns, nothing is written to its store. `error` ends its restore."""
        if self._changelogs.get(changelog.partition) is changelog:
            del self._changelogs[changelog.partition]
            self._waits.set(None, changelog.partition)
            self._assign()
        if error is not None:
            changelog.fail(error)
        if self._pending_changelog is changelog and self._pending_write is not None:
            await asyncio.wait([self._pending_write])

    def _assign(self) -> None:
        self._consumer.assign([at for at, changelog in self._changelogs.items() if changelog.reading])

    async def _start_reading(self, changelog: StoreChangelog) -> None:
        """Compares the store with its changelog, clears it if need be, and has the consumer read from its position."""
        at, store = changelog.partition, changelog.store
        try:
            topic = (await self._admin.topics.describe(at.topic))[at.topic]
            beginning = (await self._consumer.beginning_offsets(at))[at]
            end = (await self._consumer.end_offsets(at, isolation_level="read_uncommitted"))[at]
            topic_id = str(topic.topic_id) if topic.topic_id.int else store.topic_id
            position = store.positions.get(at.partition)
            if why := why_rebuild(position, store.topic_id, topic_id, beginning, end) or changelog.rebuild:
                log.warning("store %s is cleared, and restored from %s: %s", store.name, at, why)
                await self._in_thread(store.clear)
                position = None
            await self._in_thread(store.set_topic_id, topic_id)
        except StoreClosedError as error:
            await self._remove(changelog, error)
            return
        except (KafkaError, ClientError, StateError) as error:
            if self._changelogs.get(at) is changelog:
                self._waits.set(f"{at}: {error}", at)
            return
        if self._changelogs.get(at) is not changelog:
            return
        changelog.position = beginning if position is None else position
        changelog.end = end
        changelog.reading, changelog.rebuild = True, None
        self._assign()
        self._consumer.seek(at, changelog.position)
        if changelog.restore is not None:
            self._set_target(changelog, changelog.restore, end)
        self._waits.set(None, at)

    def _start_those_due(self) -> None:
        """Starts each in a task of its own, so that a changelog that isn't there delays no other."""

        async def start(changelog: StoreChangelog) -> None:
            try:
                await self._start_reading(changelog)
            except Exception:  # any error is retried
                log.exception("store %s can't follow %s yet", changelog.store.name, changelog.partition)
            finally:
                changelog.retry_at = time.monotonic() + _RETRY_S
                self._changed.set()

        now = time.monotonic()
        for changelog in self._changelogs.values():
            if not changelog.reading and changelog.retry_at <= now:
                changelog.retry_at = math.inf
                task = asyncio.create_task(start(changelog), name=f"kohort-changelog-{changelog.partition}")
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)

    def _restart(self, changelog: StoreChangelog, *, rebuild: str | None = None, after: float = 0) -> None:
        changelog.reading, changelog.buffer = False, None
        changelog.rebuild = rebuild or changelog.rebuild
        changelog.retry_at = time.monotonic() + after
        self._assign()

    # Reading and writing.

    async def _read(self) -> None:
        while True:
            try:
                self._start_those_due()
                if not self._is_reading():
                    await self._wait_for_change()
                    continue
                waited_for = any(not each.reading or each.restore is not None for each in self._changelogs.values())
                batch = await self._consumer.poll_batch(_RESTORE_POLL_MS if waited_for else _POLL_MS)
                if batch is not None:
                    await self._write_batch(batch)
                else:
                    await self._finish_write()
                await self._write_buffers(_IDLE_S if batch is None else _IDLE_BESIDE_OTHERS_S)
                if waited_for:
                    self._update_restores()
            except NoOffsetError as error:
                for at in error.partitions:
                    if changelog := self._changelogs.get(at):
                        self._restart(changelog, rebuild="the changelog no longer has what comes next")
            except RecordError as error:
                log.error("changelog %s can't be read: %s", error.partition, error)
                if changelog := self._changelogs.get(error.partition):
                    await self._remove(changelog, error)
            except (KafkaError, ClientError) as error:
                if self._is_reading():  # the last changelog may have been removed during the poll
                    self._waits.set(str(error), None)
                    await asyncio.sleep(_RETRY_S)
            except Exception:  # one store's error doesn't stop the others
                log.exception("the changelog reader failed, and goes on")
                await asyncio.sleep(_RETRY_S)

    def _is_reading(self) -> bool:
        return any(changelog.reading for changelog in self._changelogs.values())

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        retries = [each.retry_at for each in self._changelogs.values() if each.retry_at < math.inf]
        await event_within(self._changed, max(0.0, min(retries) - time.monotonic()) * 1000 if retries else None)

    async def _write_batch(self, batch: pa.RecordBatch) -> None:
        """Starts to write a batch, or gathers it; the next one is fetched meanwhile."""
        at = TopicPartition(batch["topic"][0].as_py(), batch["partition"][0].as_py())
        changelog = self._changelogs.get(at)
        if changelog is None or not changelog.reading:
            return
        position = self._consumer.position(at)
        assert position is not None
        first = batch["offset"][0].as_py()
        gathers = changelog.buffer is not None or changelog.end - first >= FAR_BEHIND
        if not gathers or (self._pending_write is not None and self._pending_write.done()):
            self._waiting_changelog = changelog
            try:
                await self._finish_write()
            finally:
                self._waiting_changelog = None
        self._update_positions()
        if self._changelogs.get(at) is not changelog or not changelog.reading:
            return  # it was removed meanwhile
        self._waits.set(None, None)
        if changelog.buffer is None:
            changelog.position = min(changelog.position, first)
        if not gathers:
            write = partial(changelog.store.write, batch["key"], batch["value"], position, at.partition)
            self._start_write(changelog, position, write)
            return
        changelog.buffer = changelog.buffer or RestoreBuffer()
        changelog.buffer.add(batch["key"], batch["value"], position)
        if position >= changelog.end:  # it has caught up, though more may come all the time
            await self._write_buffer(changelog)
            return
        gathering = [each for each in self._changelogs.values() if each.buffer is not None]
        if sum(each.buffer.size for each in gathering if each.buffer) >= FULL:
            await self._write_buffer(max(gathering, key=lambda each: each.buffer.size if each.buffer else 0))

    async def _write_buffers(self, idle_s: float) -> None:
        """Starts to write what was gathered and waits for nothing more, also if what follows has no records."""
        for at, changelog in list(self._changelogs.items()):
            # It may have been removed while another was written.
            if changelog.buffer is not None and self._changelogs.get(at) is changelog:
                position = self._consumer.position(at)
                if changelog.buffer.idle_s > idle_s or (position is not None and position >= changelog.end):
                    await self._write_buffer(changelog)

    async def _write_buffer(self, changelog: StoreChangelog) -> None:
        buffer, at = changelog.buffer, changelog.partition
        assert buffer is not None
        buffer.sorting = self._sorting_thread.submit(buffer.sort)  # while the one before is written
        await self._finish_write()
        if changelog.buffer is buffer and self._changelogs.get(at) is changelog:  # it may have been removed meanwhile
            changelog.buffer = None
            self._start_write(changelog, buffer.position, partial(buffer.write, changelog.store, at.partition))

    def _start_write(self, changelog: StoreChangelog, position: int, write: Callable[[], None]) -> None:
        self._pending_changelog, self._pending_position = changelog, position
        self._pending_write = asyncio.get_running_loop().run_in_executor(self._thread, write)

    async def _finish_write(self) -> None:
        """Waits for the write that goes on, if any, and handles its error."""
        write, changelog = self._pending_write, self._pending_changelog
        if write is None or changelog is None:
            return
        await asyncio.wait([write])
        if self._pending_write is not write:
            return
        self._pending_write = self._pending_changelog = None
        error = write.exception()
        if error is None:
            changelog.position = self._pending_position
        if error is None or self._changelogs.get(changelog.partition) is not changelog:
            return
        if isinstance(error, StoreClosedError):
            await self._remove(changelog, error)
        elif isinstance(error, StoreCorruptError):
            self._restart(changelog, rebuild=str(error))
        else:
            log.warning("%s", error, exc_info=None if isinstance(error, StateError) else error)
            self._waits.set(str(error), changelog.partition)
            self._restart(changelog, after=_RETRY_S)

    def _update_restores(self) -> None:
        """Ends the restores that are done, and reports the progress of the others now and then."""
        self._update_positions()
        now = time.monotonic()
        for changelog in list(self._changelogs.values()):
            restore = changelog.restore
            if restore is None or restore.done.done() or not changelog.reading or restore.target < 0:
                continue
            if changelog.position >= restore.target:
                if self._pending_changelog is changelog:
                    continue  # the last batch is being written
                restore.done.set_result(changelog.position)
                restore.report(changelog, finished=True)
            elif now - restore.reported_at >= _PROGRESS_EVERY_S:
                restore.reported_at = now
                restore.report(changelog)

    def _update_positions(self) -> None:
        for at, changelog in self._changelogs.items():
            # What waits to be written, is being written, or gathered, doesn't count yet.
            occupied = changelog is self._pending_changelog or changelog is self._waiting_changelog
            if changelog.reading and changelog.buffer is None and not occupied:
                position = self._consumer.position(at)
                if position is not None:
                    changelog.position = position

    # End offsets.

    async def _find_target(self, changelog: StoreChangelog, restore: Restore) -> None:
        """Looks up where the restore of a store that is followed ends."""
        at = changelog.partition
        while changelog.reading and restore.target < 0 and not restore.done.done():
            try:
                end = (await self._consumer.end_offsets(at, isolation_level="read_uncommitted"))[at]
            except (KafkaError, ClientError) as error:
                if self._closed:
                    raise
                self._waits.set(f"{at}: {error}", at)
                await asyncio.sleep(_RETRY_S)
            else:
                self._waits.set(None, at)
                if changelog.reading:  # otherwise `_start_reading` sets it
                    self._set_target(changelog, restore, end)

    def _set_target(self, changelog: StoreChangelog, restore: Restore, end: int) -> None:
        changelog.end = max(changelog.end, end)
        restore.start, restore.target = changelog.position, end

    async def _poll_end_offsets(self) -> None:
        while True:
            await asyncio.sleep(_END_OFFSETS_EVERY_S)
            changelogs = [each for each in self._changelogs.values() if each.reading]
            if not changelogs:
                continue
            try:
                await self._update_end_offsets(changelogs)
            except (KafkaError, ClientError) as error:
                log.debug("end offsets of changelogs: %s", error)
                by_topic: dict[str, list[StoreChangelog]] = {}
                for each in changelogs:
                    by_topic.setdefault(each.partition.topic, []).append(each)
                await asyncio.gather(*map(self._update_end_offsets, by_topic.values()), return_exceptions=True)

    async def _update_end_offsets(self, changelogs: Iterable[StoreChangelog]) -> None:
        by_partition = {each.partition: each for each in changelogs}
        ends = await self._consumer.end_offsets(*by_partition, isolation_level="read_uncommitted")
        for at, end in ends.items():
            by_partition[at].end = end

    async def _in_thread(self, work: Callable[..., None], *args: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
