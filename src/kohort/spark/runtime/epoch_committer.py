"""One transaction an epoch: outputs, changelogs and how far was read, all or nothing.

What makes it exactly once: the offsets are committed in the transaction, with the member's epoch. A member that the
group has gone on without is refused there, and with the offsets everything else that it wrote.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_loaded
from kohort.client.producer import Producer
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ApplicationError
from kohort.spark.runtime.commit_errors import Reaction, while_committing, while_sending
from kohort.spark.runtime.epoch_writes import EpochWrites
from kohort.spark.runtime.errors import RestartFromCommittedError

if TYPE_CHECKING:
    from kohort.client.producing.delivery import TableDelivery

log = logging.getLogger(__name__)

Probe = Callable[[str], Awaitable[None]]
"""Called between the steps of an epoch, with the step's name: tests kill and pause there."""

_SHORTEST_S: Final = 0.05
_LONGEST_S: Final = 1.0


class Standing(Protocol):
    """The member of the group, as commits need it."""

    def group_metadata(self) -> GroupMetadata:
        """Who it is now."""


async def unprobed(step: str) -> None:
    """A probe that does nothing."""


class EpochCommitter:
    """Commits a lane's epochs: a transactional producer, opened when it is needed.

    Args:
        make: a new producer; it fences the one before.
        cluster: to look up how many partitions topics have.
        member: the member of the group.
        waiting: told why it waits; None when it goes on.
        probe: called between the steps.
    """

    def __init__(
        self,
        make: Callable[[], Producer],
        cluster: Cluster,
        member: Standing,
        waiting: Callable[[str | None], None],
        probe: Probe = unprobed,
    ) -> None:
        self._make, self._cluster, self._member = make, cluster, member
        self._waiting, self._probe = waiting, probe
        self._producer: Producer | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Have a producer. Whatever its predecessors have left open is aborted then.

        Raises:
            KafkaError, ClientError: the cluster can't be reached, or won't have it.
        """
        async with self._opening:
            if self._producer is None:
                producer = self._make()
                try:
                    await producer.start()
                except BaseException:
                    await producer.close(timeout_ms=0)
                    raise
                self._producer = producer

    async def close(self, *, timeout_ms: float = 5_000) -> None:
        """Give up the producer; an open transaction is aborted. The next `commit` begins with a new one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                await producer.close(timeout_ms=timeout_ms)
            except Exception as error:
                log.info("closing a producer: %s", error)

    async def commit(
        self, epoch_writes: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[tuple[str, int], int]:
        """Write an epoch and commit it, again and again until it counts or can't.

        Returns:
            the changelogs' offsets after what was written, by (store, partition).

        Raises:
            RestartFromCommittedError: whether it counts isn't known, or the producer has had its place taken.
            ApplicationError: it will never be taken.
        """
        pause = _SHORTEST_S
        while True:
            try:
                await self.open()
                deliveries = await self._send(epoch_writes, offsets)
            except Exception as error:
                await self._give_up(error, while_sending(error))
            else:
                if await self._end():
                    self._waiting(None)
                    return _positions(deliveries)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)

    async def _send(
        self, epoch_writes: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[tuple[str, int], TableDelivery]:
        producer, probe = self._producer, self._probe
        assert producer is not None
        await producer.begin_transaction()
        await probe("begun")
        for topic, table in epoch_writes.routed:
            await producer.send_table(topic, await self._routed(topic, table))
            await probe(f"sent {topic}")
        for topic, table in epoch_writes.sent:
            await producer.send_table(topic, table)
            await probe(f"sent {topic}")
        deliveries: dict[tuple[str, int], TableDelivery] = {}
        for (store, topic, partition), table in epoch_writes.changelogs.items():
            deliveries[store, partition] = await producer.send_table(topic, table, partition=partition)
            await probe(f"sent {topic}")
        # The member's epoch is asked for here, as late as can be: it may have changed since the epoch began.
        await producer.send_offsets_to_transaction(offsets, self._member.group_metadata())
        await probe("offsets")
        return deliveries

    async def _end(self) -> bool:
        """Commit; False if that was refused, and it is to be sent again."""
        assert self._producer is not None
        while True:
            try:
                await self._producer.commit_transaction()
                return True
            except Exception as error:
                reaction = while_committing(error)
                if reaction is not Reaction.ASK:
                    await self._give_up(error, reaction)
                    return False
                self._waiting(f"the brokers don't say whether a transaction is committed; asking again ({error})")

    async def _give_up(self, error: Exception, reaction: Reaction) -> None:
        """Abort, if that is all there is to do.

        Raises:
            RestartFromCommittedError, ApplicationError: it isn't.
        """
        log.info("a transaction failed: %s", error)
        match reaction:
            case Reaction.STOP:
                raise ApplicationError(f"what an epoch has made can't be written: {error}") from error
            case Reaction.ANEW:
                raise RestartFromCommittedError(str(error)) from error
        self._waiting(f"an epoch can't be committed, and is tried again: {error}")
        if self._producer is not None:
            try:
                await self._producer.abort_transaction()
            except RuntimeError:
                pass  # none was open
            except Exception as failure:
                log.info("a transaction can't be aborted: %s", failure)
                await self.close(timeout_ms=0)  # the next producer with this id aborts it

    async def _routed(self, topic: str, table: pa.Table) -> pa.Table:
        """With the partitions that the routes lead to, instead of the routes."""
        await columns_loaded()
        from kohort.protocol.records.partitioner import partitions_of

        partitions = partitions_of(table["route"], len((await self._cluster.topic(topic)).partitions))
        return table.drop_columns(["route"]).append_column("partition", pa.array(partitions, pa.int32()))


def _positions(deliveries: Mapping[tuple[str, int], TableDelivery]) -> dict[tuple[str, int], int]:
    """Where changelogs go on after what was written.

    Raises:
        RestartFromCommittedError: a broker had the records already and doesn't remember where.
    """
    positions: dict[tuple[str, int], int] = {}
    for (store, partition), delivery in deliveries.items():
        part = delivery.result()[partition]
        if part.first_offset < 0:
            raise RestartFromCommittedError(
                f"store {store}, partition {partition}: the broker doesn't say where records were written"
            )
        positions[store, partition] = part.first_offset + part.records
    return positions
