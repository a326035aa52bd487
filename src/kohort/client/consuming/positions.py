"""Where to begin: finds the offsets of partitions that have none, and checks those that a new leader may not have."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping

from kohort.client.cluster import Cluster
from kohort.client.consuming.offsets import EpochEnd, Offsets, worth_retrying
from kohort.client.consuming.partitions import EARLIEST, LATEST, ConsumedPartition, ConsumedPartitions, Phase
from kohort.client.errors import ClientError, ConnectionLostError, RequestTimeoutError
from kohort.client.time_limit import time_limit
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError

__all__ = ["Positions"]

log = logging.getLogger("kohort.client.consumer")

Committed = Callable[[Collection[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata | None]]]


class Positions:
    """Tasks that bring partitions into phase `READY`; one a phase: the coordinator may be slow where no leader is.

    They are woken by `look_again`, and idle otherwise.

    Args:
        cluster: started.
        partitions: what is consumed.
        offsets: looks offsets up.
        committed: gives the group's offsets; None without a group.
        settled: called when some partition is ready or has failed.
        failed: takes an error that concerns the group's offsets as a whole.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: ConsumedPartitions,
        offsets: Offsets,
        committed: Committed | None,
        settled: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._offsets = offsets
        self._committed = committed
        self._settled = settled
        self._failed = failed
        steps = {Phase.COMMITTED: self._take_committed, Phase.RESET: self._reset, Phase.CHECK: self._check}
        self._look = {phase: asyncio.Event() for phase in steps}
        self._tasks = [
            asyncio.create_task(self._run(phase, step), name=f"kohort-positions-{phase.value}")
            for phase, step in steps.items()
        ]

    def look_again(self) -> None:
        """Some partition may need an offset."""
        for look in self._look.values():
            look.set()

    async def close(self) -> None:
        """Stop."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, phase: Phase, step: Callable[[list[ConsumedPartition]], Awaitable[None]]) -> None:
        loop, look = asyncio.get_running_loop(), self._look[phase]
        while True:
            look.clear()
            if ready := self._partitions.in_phase(phase, loop.time() * 1000):
                try:
                    await step(ready)
                except Exception as error:  # whatever it is, the user has to know why nothing comes
                    log.exception("offsets of partitions in phase %r can't be found", phase.value)
                    self._failed(error)
                    self._try_later(ready)
            if look.is_set():
                continue
            unsettled = [each for each in self._partitions if each.phase is phase]
            if not unsettled:
                await look.wait()
                continue
            # What still has something queued is looked at again when that was given (`look_again`), or soon.
            soonest = min(each.retry_at for each in unsettled)
            pause = max(soonest - loop.time() * 1000, self._cluster.config.retry_backoff_ms) / 1000
            with contextlib.suppress(TimeoutError):
                async with time_limit(pause):
                    await look.wait()

    async def _take_committed(self, wanted: list[ConsumedPartition]) -> None:
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
                if not worth_retrying(error):
                    self._failed(error)
                self._try_later(wanted)
                return
        for partition in wanted:
            if not self._still(partition, Phase.COMMITTED):
                continue
            committed = offsets.get(partition.topic_partition)
            if committed is not None and committed.offset >= 0:
                self._partitions.seek(partition, committed.offset, committed.leader_epoch)
                partition.committed = committed.offset
            else:
                self._partitions.reset_by_policy(partition, "the group has committed no offset")
        self._settled()
        self.look_again()

    async def _reset(self, wanted: list[ConsumedPartition]) -> None:
        times = {each.topic_partition: each.reset_to for each in wanted}
        found, failed = await self._offsets.find_once(times)
        for partition in wanted:
            at = partition.topic_partition
            if not self._still(partition, Phase.RESET) or partition.reset_to != times[at]:
                continue
            if at in failed:
                self._note(partition, failed[at])
            elif (place := found[at]) is None:
                self._nothing_there(partition)
            else:
                self._partitions.seek(partition, place.offset)
        self._settled()

    def _nothing_there(self, partition: ConsumedPartition) -> None:
        if partition.reset_to in (EARLIEST, LATEST):
            self._try_later([partition])
        else:
            self._partitions.reset(partition, LATEST)  # no record is so young: begin with the next that comes
            self.look_again()

    async def _check(self, wanted: list[ConsumedPartition]) -> None:
        """Ask the new leaders whether their logs still have what was read (KIP-320)."""
        epochs = {each.topic_partition: each.position_epoch for each in wanted if each.position_epoch >= 0}
        ends, failed = await self._offsets.epoch_ends(epochs)
        for partition in wanted:
            at = partition.topic_partition
            if not self._still(partition, Phase.CHECK):
                continue
            if at in failed:
                self._note(partition, failed[at])
            elif at in ends and not self._kept(partition, ends[at]):
                log.warning("%s: the log was truncated before offset %d", at, partition.position)
                self._partitions.truncated(partition, ends[at].end_offset)
                self.look_again()
            else:
                partition.phase = Phase.READY
                partition.leader_epoch = self._cluster.info.leader_epoch(at)
                partition.succeeded()
        self._settled()

    @staticmethod
    def _kept(partition: ConsumedPartition, end: EpochEnd) -> bool:
        return end.leader_epoch >= 0 and end.end_offset >= partition.position

    def _still(self, partition: ConsumedPartition, phase: Phase) -> bool:
        """Whether nothing came between, such as a seek."""
        return partition.phase is phase and self._partitions.by_name.get(partition.topic_partition) is partition

    def _note(self, partition: ConsumedPartition, error: KafkaError | ClientError) -> None:
        if not worth_retrying(error):
            self._partitions.fail(partition, error)
        self._try_later([partition])

    def _try_later(self, partitions: list[ConsumedPartition]) -> None:
        now = asyncio.get_running_loop().time() * 1000
        backoff = self._cluster.backoff()
        for partition in partitions:
            backoff.attempts = partition.failures
            partition.failures += 1
            partition.retry_at = now + backoff.next()
