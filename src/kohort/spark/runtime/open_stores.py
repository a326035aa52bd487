"""The stores that are open in an instance, by task."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

import pyarrow as pa

from kohort.client.types import TopicPartition
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.state import ScannedRanges, StateDirectory, StateError, Store
from kohort.streams.tasks import TaskId


class OpenStores:
    """Opens and closes tasks' stores, and looks keys up in them. Stores are opened and closed in threads."""

    def __init__(self, plan: ApplicationPlan, directory: StateDirectory) -> None:
        self._plan, self._directory = plan, directory
        self._of_tasks: dict[TaskId, dict[str, Store]] = {}
        self._by_partition: dict[tuple[str, int | None], Store] = {}
        self._mutex = threading.Lock()

    def of(self, task: TaskId) -> dict[str, Store]:
        """A task's stores, as far as they are open."""
        return self._of_tasks.get(task, {})

    def get(self, name: str, partition: int | None) -> Store | None:
        """A store, if it is open."""
        return self._by_partition.get((name, partition))

    async def open(self, task: TaskId) -> dict[str, Store]:
        """Open a task's stores, unless they are.

        Raises:
            StateError: they can't be.
        """
        if task not in self._of_tasks:
            opened: dict[str, Store] = {}
            try:
                for name in self._plan.changelogs(task):
                    opened[name] = await _opened(self._directory, task, name)
            except BaseException:
                _close_all(opened.values())
                raise
            with self._mutex:
                self._of_tasks[task] = opened
                self._by_partition |= {(name, task.partition): store for name, store in opened.items()}
        return self._of_tasks[task]

    async def open_global(self, name: str) -> Store:
        """Open a global table's store. Raises as `open`."""
        store = await asyncio.to_thread(self._directory.open_global, name)
        with self._mutex:
            self._by_partition[name, None] = store
        return store

    async def close(self, task: TaskId) -> dict[TopicPartition, int]:
        """Close a task's stores; where they stand."""
        with self._mutex:
            stores = self._of_tasks.pop(task, {})
            for name in stores:
                self._by_partition.pop((name, task.partition), None)
        changelogs = self._plan.changelogs(task)
        stand = {changelogs[name]: store.position for name, store in stores.items()}
        await _uninterrupted(asyncio.to_thread(_close_all, list(stores.values())))
        return {partition: at for partition, at in stand.items() if at is not None}

    def lookup(self, name: str, partition: int | None, keys: pa.Array) -> pa.Array:
        """Values of keys, null where there is none. From any thread.

        Raises:
            StateError: the store isn't open here.
        """
        return self._open(name, partition).get_many(keys)

    def scan(
        self,
        name: str,
        partition: int,
        starts: Sequence[bytes],
        ends: Sequence[bytes],
        most_bytes: int,
        neighbours_from: Sequence[bytes | None] | None = None,
        neighbours_to: Sequence[bytes | None] | None = None,
    ) -> ScannedRanges:
        """The rows of ranges, as `Store.scan_ranges`. From any thread. Raises as `lookup`."""
        return self._open(name, partition).scan_ranges(starts, ends, most_bytes, neighbours_from, neighbours_to)

    def _open(self, name: str, partition: int | None) -> Store:
        store = self._by_partition.get((name, partition))
        if store is None:
            where = "" if partition is None else f" of partition {partition}"
            raise StateError(f"store {name}{where} isn't open here: its task has gone")
        return store


async def _opened(directory: StateDirectory, task: TaskId, name: str) -> Store:
    """Open a store in a thread; one that nobody waits for any more is closed again."""
    opened: list[Store] = []
    try:
        await _uninterrupted(asyncio.to_thread(lambda: opened.append(directory.open_store(task, name))))
    except asyncio.CancelledError:
        _close_all(opened)
        raise
    return opened[0]


def _close_all(stores: Iterable[Store]) -> None:
    for store in stores:
        store.close()


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Finish something even if this is cancelled: what comes next finds it done."""
    doing = asyncio.create_task(work)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        doing.exception()
        raise
