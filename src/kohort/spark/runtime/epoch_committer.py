"""One transaction an epoch: outputs, changelogs and how far was read, all or nothing.

What makes it exactly once: the offsets are committed in the transaction, with the member's epoch. A member that the
group has gone on without is fenced there, and with the offsets everything else that it wrote (KIP-447).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_loaded
from kohort.client.errors import raise_for
from kohort.client.producer import Producer
from kohort.client.streams_member import StreamsMember
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.spark.runtime.epoch_writes import EpochWrites
from kohort.spark.runtime.errors import RestartFromCommittedError

if TYPE_CHECKING:
    from kohort.client.producing.delivery import TableDelivery

log = logging.getLogger(__name__)

_MISSING: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)

Probe = Callable[[str], Awaitable[None]]
"""Called between the steps of an epoch, with the step's name: tests kill and pause there."""


async def unprobed(step: str) -> None:
    """A probe that does nothing."""


class EpochCommitter:
    """Sends and commits the epochs of a subtopology: a transactional producer, opened when it is needed.

    What an error means for the epoch, `commit_errors` says.

    Args:
        make: a new producer; it fences the one before.
        cluster: to look up how many partitions topics have.
        look: called with a topic and the records that it gets, but for state.
    """

    def __init__(
        self,
        make: Callable[[], Producer],
        cluster: Cluster,
        member: StreamsMember,
        probe: Probe = unprobed,
        look: Callable[[str, pa.Table], None] = lambda topic, records: None,
    ) -> None:
        self._make, self._cluster, self._member, self._probe, self._look = make, cluster, member, probe, look
        self._producer: Producer | None = None
        self._opening = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._changelogs: dict[tuple[str, int], TableDelivery] = {}
        self._seen: set[str] = set()  # topics

    async def open(self) -> None:
        """Open the producer. What its predecessors have left open is aborted then.

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
        """Close the producer; an open transaction is aborted. The next `send` opens a new one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            self._closing = asyncio.create_task(_close(producer, timeout_ms), name="kohort-closing-producer")
        if self._closing is not None:
            # Its transaction is aborted even if the one who asks for that is cancelled meanwhile.
            await asyncio.shield(self._closing)

    async def send(self, writes: EpochWrites, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Begin a transaction, and send an epoch's records and offsets in it."""
        await self.open()
        producer, probe = self._producer, self._probe
        assert producer is not None
        await producer.begin_transaction()
        await probe("begun")
        for topic, table in writes.routed:
            await self._table(producer, topic, await self._routed(topic, table))
        for topic, table in writes.sent:
            await self._table(producer, topic, table)
            self._look(topic, table)
        self._changelogs = {}
        for (store, topic, partition), table in writes.changelogs.items():
            self._changelogs[store, partition] = await self._table(producer, topic, table, partition)
        # The member's epoch is asked for here, as late as can be: it may have changed since the epoch began.
        await producer.send_offsets_to_transaction(offsets, self._member.group_metadata())
        await probe("offsets")

    async def _table(
        self, producer: Producer, topic: str, table: pa.Table, partition: int | None = None
    ) -> TableDelivery:
        try:
            delivery = await producer.send_table(topic, table, partition=partition)
        except ValueError as error:  # of a row that is too large, say: a store's name is in that of its changelog
            raise ValueError(f"topic {topic!r}: {error}") from error
        await self._probe(f"sent {topic}")
        return delivery

    async def missing(self, topics: Collection[str]) -> frozenset[str]:
        """Those of some topics that aren't there, as it is now or later.

        Those once seen are taken to be there still, until a transaction is aborted.

        Raises:
            KafkaError: a topic can't be seen.
            ClientError: no broker answers in time.
        """
        asked = sorted(set(topics) - self._seen)
        if not asked:
            return frozenset()
        request = MetadataRequest(
            topics=[MetadataRequest.Topic(name=topic) for topic in asked], allow_auto_topic_creation=False
        )
        answer = await self._cluster.ask_any(request, MetadataResponse)
        missing = frozenset(each.name or "" for each in answer.topics if each.error_code in _MISSING)
        for each in answer.topics:
            if each.error_code not in _MISSING:
                raise_for(each.error_code, f"topic {each.name}")
        self._seen |= set(asked) - missing
        return missing

    async def begin_batches(self, begun: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit where batches begin, with where they end as metadata; without a transaction, as nothing is done yet.

        Raises:
            CommitFailedError: the tasks are another member's.
            RequestTimeoutError: the coordinator can't be reached.
        """
        await self._member.commit(begun)

    async def commit(self) -> dict[tuple[str, int], int]:
        """Commit the transaction; asked again, the brokers say what became of it.

        Returns:
            the changelogs' offsets after what was sent, by (store, partition).

        Raises:
            RestartFromCommittedError: a broker had the records already and doesn't remember where.
        """
        if self._producer is None:
            raise RestartFromCommittedError("the producer is closed")
        await self._producer.commit_transaction()
        deliveries, self._changelogs = self._changelogs, {}
        return _positions(deliveries)

    async def abort(self) -> None:
        """Abort the transaction, if one is open."""
        self._seen.clear()  # one of them may have been deleted
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
    positions: dict[tuple[str, int], int] = {}
    for (store, partition), delivery in deliveries.items():
        part = delivery.result()[partition]
        if part.first_offset < 0:
            raise RestartFromCommittedError(
                f"store {store}, partition {partition}: the broker doesn't say where records were written"
            )
        positions[store, partition] = part.first_offset + part.records
    return positions


async def _close(producer: Producer, timeout_ms: float) -> None:
    try:
        await producer.close(timeout_ms=timeout_ms)
    except Exception as error:
        log.info("closing a producer: %s", error)
