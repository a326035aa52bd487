"""The parts of a started share consumer, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from uuid import uuid4

from kohort.client.cluster import Cluster
from kohort.client.consuming.decoding import Deserializer
from kohort.client.errors import ClientError, RequestTimeoutError, kafka_error
from kohort.client.sharing.acknowledgements import AcknowledgeType, OffsetSpan
from kohort.client.sharing.delivery import Delivery
from kohort.client.sharing.member_loop import MemberLoop
from kohort.client.sharing.membership import ShareMembership
from kohort.client.sharing.settings import ShareSettings
from kohort.client.sharing.share_fetchers import ShareFetchers
from kohort.client.sharing.shared_partitions import AcknowledgementResult, SharedPartitions
from kohort.client.time_limit import time_limit
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode

log = logging.getLogger("kohort.client.share_consumer")

OnAcknowledged = Callable[[AcknowledgementResult], None]

_LEAVE_MS = 1_000
"""How much of the time to close is kept for telling the coordinator."""


class RunningShareConsumer:
    """A share consumer between start and close.

    Args:
        cluster: started; not closed here.
        key_deserializer, value_deserializer, on_acknowledged: see `ShareConsumer`.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ShareSettings,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        on_acknowledged: OnAcknowledged | None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._on_acknowledged = on_acknowledged
        self.partitions = SharedPartitions(self._settled)
        self.membership = ShareMembership(
            settings.group_id, str(uuid4()), cluster.config.client_rack, cluster.backoff()
        )
        self.delivery = Delivery(
            self.partitions,
            key_deserializer,
            value_deserializer,
            implicit=settings.implicit,
            on_poll=self._on_poll,
            on_need=lambda: self._fetchers.wake(),
        )
        self._fetchers = ShareFetchers(cluster, self.membership, self.partitions, self.delivery, settings, self._failed)
        self._member = MemberLoop(cluster, self.membership, self._member_changed)
        self._failure: Exception | None = None

    def subscribe(self, topics: Collection[str]) -> None:
        """Reads these topics, and no others; none: leaves the group."""
        self._cluster.follow(topics)
        self._member.subscribe(topics)

    @property
    def renews_locks(self) -> bool | None:
        """Whether brokers renew locks; None: none was asked yet."""
        return self._fetchers.renew_locks

    async def close(self, timeout_ms: float) -> None:
        """Sends acknowledgements, lets the brokers release the rest, and leaves the group."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        self.delivery.close()
        try:
            await self._fetchers.close(max(1.0, timeout_ms - min(_LEAVE_MS, timeout_ms / 4)))
        finally:
            await self._member.close(max(1.0, (deadline - asyncio.get_running_loop().time()) * 1000))

    # Acknowledging.

    def acknowledge(self, at: TopicPartition, spans: Iterable[OffsetSpan], kind: AcknowledgeType) -> None:
        """Notes what became of records. Offsets that aren't locked for us are reported as failed."""
        partition = self.partitions.by_name.get(at)
        now = self._fetchers.now
        missing: list[OffsetSpan] = []
        for span in spans:
            missing += [span] if partition is None else partition.book.acknowledge(*span, kind, now)
        if missing:
            reason = (
                f"{at}: not locked for this consumer: acknowledged before, or its lock ended, or it was never given"
            )
            self.partitions.refuse(at, missing, kind, kafka_error(ErrorCode.INVALID_RECORD_STATE, reason))
        self._fetchers.wake()

    async def commit(self, timeout_ms: float) -> dict[TopicPartition, Exception | None]:
        """Sends what is acknowledged, and waits for the brokers; returns an error or None by partition.

        Errors of acknowledgements since the commit before are among them, whenever they came.

        Raises:
            RequestTimeoutError: not all was answered in time.
        """
        self.delivery.sync(all_given=True)
        done = asyncio.Event()
        barrier = self.partitions.barrier(done.set)
        self._fetchers.wake()
        try:
            async with time_limit(timeout_ms / 1000):
                await done.wait()
        except TimeoutError:
            raise RequestTimeoutError(f"acknowledgements weren't answered within {timeout_ms:g} ms") from None
        finally:
            self.partitions.forget_barrier(barrier)
        return barrier.errors | self.partitions.take_failures()

    # For the parts.

    def _failed(self, error: Exception) -> None:
        """Raises this where the user polls."""
        self._failure = error
        self.delivery.wake()

    def _on_poll(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.membership.error is not None:
            raise self.membership.error
        if not self.membership.topics:
            raise ClientError("there's nothing to read: subscribe to topics first")

    def _member_changed(self) -> None:
        self._fetchers.update()
        self.delivery.wake()

    def _settled(self, result: AcknowledgementResult) -> None:
        if result.error is not None:
            log.info("%s: acknowledgements don't count: %s", result.partition, result.error)
        if self._on_acknowledged is not None:
            try:
                self._on_acknowledged(result)
            except Exception:
                log.exception("on_acknowledged fails")
