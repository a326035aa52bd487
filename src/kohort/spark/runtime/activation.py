"""Takes on an active task: what is committed, then its state, then it runs. In this order.

1. Transactions that its last owner has left open are ended, so that it is known what counts.
2. Its committed offsets are looked up; that waits for transactions that are still being decided (KIP-447).
3. Its stores are restored up to what is in the changelogs now. All that counts is there: what was committed before the
   offsets were known was written before, and what isn't committed by then never will be.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kohort.client.admin import Admin
from kohort.client.errors import RequestTimeoutError
from kohort.client.streams_member import StreamsMember
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.monitoring.events import Listener, Restoring
from kohort.spark.program.committed_metadata import metadata
from kohort.spark.runtime.active_task import ActiveTask, later_of, stream_time_of
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.dangling_transactions import end_dangling_transactions
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.epoch_committer import Probe, unprobed
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.state import ChangelogReader, RestoreProgress, Store
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

_UNSTABLE_MS: Final = 2_000


class DanglingTransactions:
    """Ends transactions of instances that are gone: once for all tasks that are taken at a time."""

    def __init__(self, admin: Admin, application_id: str, process_id: str) -> None:
        self._admin, self._application_id, self._process_id = admin, application_id, process_id
        self._lock = asyncio.Lock()
        self._begun = float("-inf")

    async def end(self) -> None:
        """See to it that it was done since this was called."""
        asked = time.monotonic()
        async with self._lock:
            if self._begun < asked:
                begun = time.monotonic()
                await end_dangling_transactions(self._admin, self._application_id, self._process_id)
                self._begun = begun


class Activation:
    """Takes on tasks.

    Args:
        blueprint: the application.
        member: the member of the group.
        stores, tailer: of the instance.
        ends: where inputs begin and end.
        orphans: see there.
        listener: told how far restores are.
        probe: called between the steps.
    """

    def __init__(
        self,
        blueprint: ApplicationPlan,
        member: StreamsMember,
        stores: OpenStores,
        tailer: ChangelogReader,
        ends: EndOffsets,
        orphans: DanglingTransactions,
        listener: Listener,
        probe: Probe = unprobed,
    ) -> None:
        self._blueprint, self._member = blueprint, member
        self._stores, self._tailer, self._ends = stores, tailer, ends
        self._orphans, self._listener, self._probe = orphans, listener, probe

    async def take(self, task: TaskId, open_producer: Callable[[], Awaitable[None]]) -> ActiveTask:
        """Take on a task.

        Args:
            task: which.
            open_producer: has the lane have its producer: what its last one has left open ends then.

        Raises:
            ApplicationError: another program has left offsets here.
            KafkaError, ClientError, StateError: try again.
        """
        stores = await self._stores.open(task)
        await open_producer()
        await self._orphans.end()
        await self._probe("taking")
        committed = await self._committed(task)
        await self._probe("known")
        positions, stream_time = await self._places(task, committed)
        changelogs = self._blueprint.changelogs(task)
        async with asyncio.TaskGroup() as group:
            for name, store in stores.items():
                group.create_task(self._restore(task, store, changelogs[name]))
        await self._probe("restored")
        return ActiveTask(task, stores, positions, stream_time)

    async def _committed(self, task: TaskId) -> dict[TopicPartition, OffsetAndMetadata | None]:
        inputs = self._blueprint.inputs(task)
        while True:
            try:
                return await self._member.committed(inputs, timeout_ms=_UNSTABLE_MS)
            except RequestTimeoutError as error:
                # Somebody's transaction is still open: perhaps it has left the group by now.
                log.info("task %s: %s", task, error)
                await self._orphans.end()

    async def _places(
        self, task: TaskId, committed: Mapping[TopicPartition, OffsetAndMetadata | None]
    ) -> tuple[dict[TopicPartition, int], int | None]:
        """Where the task reads on, and its stream time."""
        duties, program = self._blueprint.parts[task.subtopology], self._blueprint.fingerprint
        times = [stream_time_of(at, partition, program) for partition, at in committed.items()]
        beginnings = await self._ends.beginnings(committed)
        positions: dict[TopicPartition, int] = {}
        fresh: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition, at in committed.items():
            first = beginnings[partition]
            if at is not None and at.offset >= first:
                positions[partition] = at.offset
            elif at is None and partition.topic in duties.latest:
                (end,) = (await self._ends.of([partition])).values()
                positions[partition] = end
                # Committed at once: where the end is must not depend on when the task is taken on again.
                fresh[partition] = OffsetAndMetadata(end, metadata=metadata(None, program))
            else:
                positions[partition] = first
                if at is not None:
                    self._listener.failed(
                        f"{partition}: records {at.offset} to {first - 1} were gone before they were read (the topic's"
                        " retention is too short): going on behind them"
                    )
        if fresh:
            await self._member.commit(fresh)
        return positions, later_of(times)

    async def _restore(self, task: TaskId, store: Store, changelog: TopicPartition) -> None:
        def progress(now: RestoreProgress) -> None:
            position = store.position or 0
            self._listener.restoring(
                Restoring(
                    at=time.time(), task=str(task), store=now.store, position=position,
                    end=position + now.total - now.done, remaining=now.total - now.done, done=now.finished,
                )
            )  # fmt: skip

        await self._tailer.restore(store, changelog, progress)
