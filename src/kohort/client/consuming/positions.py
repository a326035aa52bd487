"""Positions: looks up the offsets to begin at, and validates positions after a leader change (KIP-320)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping

from kohort.client.cluster import Cluster
from kohort.client.consuming.consumed_partitions import (
    EARLIEST,
    LATEST,
    ConsumedPartition,
    ConsumedPartitions,
    FetchState,
)
from kohort.client.consuming.log_offsets import EpochEnd, LogOffsets
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError, is_retriable
from kohort.client.time_limit import event_within
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError

log = logging.getLogger("kohort.client.consumer")

Committed = Callable[[Collection[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata | None]]]


class Positions:
    """Tasks that bring partitions into the state FETCHING, one for each state before: the coordinator may be slow where
    no leader is. They are woken by `wake`, and idle otherwise.

    Args:
        cluster: started.
        committed: looks up the group's offsets; None without a group.
        on_change: called when some partition is fetchable or has failed.
        failed: takes an error of the whole group's offsets.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: ConsumedPartitions,
        offsets: LogOffsets,
        committed: Committed | None,
        on_change: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._offsets = offsets
        self._committed = committed
        self._on_change = on_change
        self._failed = failed
        steps = {
            FetchState.AWAIT_COMMITTED: self._start_at_committed,
            FetchState.AWAIT_RESET: self._reset,
            FetchState.AWAIT_VALIDATION: self._validate,
        }
        self._wakeups = {state: asyncio.Event() for state in steps}
        self._tasks = [
            asyncio.create_task(self._run(state, step), name=f"kohort-positions-{state.value}")
            for state, step in steps.items()
        ]

    def wake(self) -> None:
        for wakeup in self._wakeups.values():
            wakeup.set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, state: FetchState, step: Callable[[list[ConsumedPartition]], Awaitable[None]]) -> None:
        loop, wakeup = asyncio.get_running_loop(), self._wakeups[state]
        while True:
            wakeup.clear()
            if ready := self._partitions.in_state(state, loop.time() * 1000):
                try:
                    await step(ready)
                except Exception as error:  # the user has to know why no records come
                    log.exception("offsets of partitions in state %r can't be found", state.value)
                    self._failed(error)
                    self._try_later(ready)
            if wakeup.is_set():
                continue
            waiting = [each for each in self._partitions if each.state is state]
            if not waiting:
                await wakeup.wait()
                continue
            # A partition with queued records is looked at again when these were given (`wake`), or soon.
            soonest = min(each.retry_at for each in waiting)
            await event_within(wakeup, max(soonest - loop.time() * 1000, self._cluster.config.retry_backoff_ms))

    async def _start_at_committed(self, wanted: list[ConsumedPartition]) -> None:
        names = [each.topic_partition for each in wanted]
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self._committed is not None:
            try:
                offsets = await self._committed(names)
            except (ConnectionLostError, RequestTimeoutError) as error:
                log.info("committed offsets: %s", error)
                self._try_later(wanted)
                return
            except (KafkaError, ClientError) as error:
                if not is_retriable(error):
                    self._failed(error)
                self._try_later(wanted)
                return
        for partition in wanted:
            if not self._unchanged(partition, FetchState.AWAIT_COMMITTED):
                continue
            committed = offsets.get(partition.topic_partition)
            if committed is not None and committed.offset >= 0:
                self._partitions.seek(partition, committed.offset, committed.leader_epoch)
                partition.committed = committed.offset
            else:
                self._partitions.reset_by_policy(partition, "the group has committed no offset")
        self._on_change()
        self.wake()

    async def _reset(self, wanted: list[ConsumedPartition]) -> None:
        times = {each.topic_partition: each.reset_to for each in wanted}
        found, failed = await self._offsets.find_once(times)
        for partition in wanted:
            at = partition.topic_partition
            if not self._unchanged(partition, FetchState.AWAIT_RESET) or partition.reset_to != times[at]:
                continue
            if at in failed:
                self._handle_error(partition, failed[at])
            elif (place := found[at]) is None:
                self._no_such_record(partition)
            else:
                self._partitions.seek(partition, place.offset)
        self._on_change()

    def _no_such_record(self, partition: ConsumedPartition) -> None:
        if partition.reset_to in (EARLIEST, LATEST):
            self._try_later([partition])
        else:
            self._partitions.reset(partition, LATEST)  # no record is that late: begin with the next one
            self.wake()

    async def _validate(self, wanted: list[ConsumedPartition]) -> None:
        """Asks the new leaders whether their logs still have what was read (OffsetForLeaderEpoch, KIP-320)."""
        epochs = {each.topic_partition: each.position_epoch for each in wanted if each.position_epoch >= 0}
        ends, failed = await self._offsets.epoch_ends(epochs)
        for partition in wanted:
            at = partition.topic_partition
            if not self._unchanged(partition, FetchState.AWAIT_VALIDATION):
                continue
            if at in failed:
                self._handle_error(partition, failed[at])
            elif at in ends and not self._has_position(partition, ends[at]):
                log.warning("%s: the log was truncated before offset %d", at, partition.position)
                self._partitions.truncated(partition, ends[at].end_offset)
                self.wake()
            else:
                partition.state = FetchState.FETCHING
                partition.leader_epoch = self._cluster.info.leader_epoch(at)
                partition.succeeded()
        self._on_change()

    @staticmethod
    def _has_position(partition: ConsumedPartition, end: EpochEnd) -> bool:
        return end.leader_epoch >= 0 and end.end_offset >= partition.position

    def _unchanged(self, partition: ConsumedPartition, state: FetchState) -> bool:
        """Whether the state is unchanged, as without a seek meanwhile."""
        return partition.state is state and self._partitions.by_name.get(partition.topic_partition) is partition

    def _handle_error(self, partition: ConsumedPartition, error: KafkaError | ClientError) -> None:
        if not is_retriable(error):
            self._partitions.fail(partition, error)
        self._try_later([partition])

    def _try_later(self, partitions: list[ConsumedPartition]) -> None:
        now = asyncio.get_running_loop().time() * 1000
        backoff = self._cluster.backoff()
        for partition in partitions:
            backoff.attempts = partition.failures
            partition.failures += 1
            partition.retry_at = now + backoff.next()
