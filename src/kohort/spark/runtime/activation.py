"""Activates a task: what is committed, then its state, then it runs. In this order.

1. Transactions that its last owner has left open are ended, so that it is known what counts.
2. Its committed offsets are looked up; that waits for transactions that are still being decided (KIP-447).
3. Its stores are restored up to what is in the changelogs now. All that counts is there: what was committed before the
   offsets were known was written before, and what isn't committed by then never will be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, NamedTuple

from kohort.client.streams_member import StreamsMember
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import Listener, Restoring
from kohort.spark.program.committed_metadata import Committed, Fingerprint, NotedFormats, committed_by, metadata, noted
from kohort.spark.program.store_formats import StoreFormats, carried
from kohort.spark.program.upgrade_rules import read_again
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.dangling_transactions import DanglingTransactions
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.epoch_committer import Probe, unprobed
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.state import ChangelogReader, RestoreProgress, Store
from kohort.streams.tasks import TaskId

_UNSTABLE_MS: Final = 2_000


class Activated(NamedTuple):
    """Where a task reads on.

    Attributes:
        positions: the next offset, by partition.
        stream_time: that it goes on from (ms; None: nothing read yet).
        until: where the batch ends that was begun there and isn't known to be done, by partition.
        formats: what is to be committed of what its stores hold, by partition. None: nothing.
    """

    positions: dict[TopicPartition, int]
    stream_time: int | None
    until: Mapping[TopicPartition, int] = {}
    formats: Mapping[TopicPartition, NotedFormats | None] = {}


class Activation:
    """Activates tasks.

    Args:
        dangling: ends transactions of instances that are gone.
        listener: told how far restores are.
        before: the fingerprints of programs that this one has been compared with, and may go on from.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        member: StreamsMember,
        stores: OpenStores,
        changelogs: ChangelogReader,
        ends: EndOffsets,
        dangling: DanglingTransactions,
        listener: Listener,
        probe: Probe = unprobed,
        before: Collection[str] = (),
    ) -> None:
        self._plan, self._member = plan, member
        self._before = before
        self._stores, self._changelogs, self._ends = stores, changelogs, ends
        self._dangling, self._listener, self._probe = dangling, listener, probe

    async def activate(self, task: TaskId, open_producer: Callable[[], Awaitable[None]]) -> Activated:
        """Restore a task up to what is committed.

        Args:
            open_producer: opens the subtopology's producer: what its last one has left open is aborted then.

        Raises:
            ApplicationError: another program has left offsets here.
            KafkaError, ClientError, StateError: try again.
        """
        stores = await self._stores.open(task)
        await open_producer()
        await self._dangling.end()
        await self._probe("activating")
        committed = await self._committed(task)
        await self._probe("known")
        said = {at: None if was is None else committed_by(was.metadata) for at, was in committed.items()}
        formats = self._formats(task, said)
        positions, stream_time = await self._places(task, committed, said, formats)
        until = batches_begun(committed, said, positions)
        changelogs = self._plan.changelogs(task)
        async with asyncio.TaskGroup() as group:
            for name, store in stores.items():
                group.create_task(self._restore(task, store, changelogs[name]))
        await self._probe("restored")
        return Activated(positions, stream_time, until, formats)

    def _formats(
        self, task: TaskId, said: Mapping[TopicPartition, Committed | None]
    ) -> dict[TopicPartition, NotedFormats | None]:
        """What is to be committed of what its stores hold: with what they held before."""
        ours = self._plan.subtopologies[task.subtopology].formats
        return {
            at: noted(carried(_formats_of(was) or {}, ours[at.topic])) for at, was in said.items() if at.topic in ours
        }

    async def _committed(self, task: TaskId) -> dict[TopicPartition, OffsetAndMetadata | None]:
        # If a transaction of another instance stays open for longer, this fails and the task is activated again: the
        # other instance may have left the group by then, and its transaction dangles.
        return await self._member.committed(await self._inputs(task), timeout_ms=_UNSTABLE_MS)

    async def _inputs(self, task: TaskId) -> tuple[TopicPartition, ...]:
        """What there is of what the task reads: one of several topics may have fewer partitions than others."""
        inputs = self._plan.inputs(task)
        if not self._plan.subtopologies[task.subtopology].inputs.others:
            return inputs
        counts = await self._ends.partitions({each.topic for each in inputs})
        return tuple(each for each in inputs if each.partition < counts[each.topic])

    async def _places(
        self,
        task: TaskId,
        committed: Mapping[TopicPartition, OffsetAndMetadata | None],
        said: Mapping[TopicPartition, Committed | None],
        formats: Mapping[TopicPartition, NotedFormats | None],
    ) -> tuple[dict[TopicPartition, int], int | None]:
        """Where the task reads on, and its stream time. `said`: what was committed with the offsets."""
        subtopology, program = self._plan.subtopologies[task.subtopology], self._plan.fingerprint
        times = [stream_time_of(at, partition, program, self._before) for partition, at in said.items()]
        beginnings = await self._ends.beginnings(committed)
        positions: dict[TopicPartition, int] = {}
        fresh: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition, at in committed.items():
            first, was = beginnings[partition], said[partition]
            ours = subtopology.formats.get(partition.topic, {})
            if read_again(_formats_of(was), ours, subtopology.tables):
                positions[partition] = first
            elif at is not None and at.offset >= first:
                positions[partition] = at.offset
            elif at is None and partition.topic in subtopology.latest:
                (end,) = (await self._ends.of([partition])).values()
                positions[partition] = end
                # Committed at once: where the end is must not depend on when the task is activated again.
                text = metadata(None, program, formats=formats.get(partition))
                fresh[partition] = OffsetAndMetadata(end, metadata=text)
            else:
                positions[partition] = first
                if at is not None:
                    self._listener.failed(
                        f"{partition}: records {at.offset} to {first - 1} were gone before they were read (the topic's"
                        " retention is too short): going on behind them"
                    )
            if at is not None and was is not None and was.program != program:
                # At once, so that the instances that start next see whose state it is now.
                text = metadata(was.stream_time, program, was.until, formats.get(partition))
                fresh[partition] = at._replace(offset=positions[partition], metadata=text)
        if fresh:
            await self._member.commit(fresh)
        return positions, max((time for time in times if time is not None), default=None)

    async def _restore(self, task: TaskId, store: Store, changelog: TopicPartition) -> None:
        def progress(now: RestoreProgress) -> None:
            position = store.position or 0
            self._listener.restoring(
                Restoring(
                    at=time.time(), task=str(task), store=now.store, position=position,
                    end=position + now.total - now.done, remaining=now.total - now.done, done=now.finished,
                )
            )  # fmt: skip

        await self._changelogs.restore(store, changelog, progress)


def batches_begun(
    committed: Mapping[TopicPartition, OffsetAndMetadata | None],
    said: Mapping[TopicPartition, Committed | None],
    positions: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where the batches end that were begun at the positions, or before what retention has left of them."""
    found = {}
    for partition, at in committed.items():
        if at is not None and at.offset <= positions[partition]:
            was = said[partition]
            if was is not None and was.until is not None and was.until > positions[partition]:
                found[partition] = was.until
    return found


def _formats_of(said: Committed | None) -> StoreFormats | None:
    return None if said is None else said.formats


def stream_time_of(
    said: Committed | None, partition: TopicPartition, program: Fingerprint, before: Collection[str] = ()
) -> int | None:
    """The stream time that was committed.

    Args:
        before: the fingerprints of other programs that may have committed it.

    Raises:
        ApplicationError: another program has committed it.
    """
    if said is None:
        return None
    if said.program != program and said.program.text not in before:
        raise ApplicationError(
            f"{partition}: the group's offsets and stores were made by another version of the program, whose state this"
            " one can't read: choose another application id, or delete the group and its internal topics"
        )
    return said.stream_time
