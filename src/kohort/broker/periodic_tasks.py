"""What the broker does by itself every now and then: flush, checkpoint, drop what is old, compact."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.log.compaction import CompactionPlan

__all__ = ["PeriodicTasks"]

log = logging.getLogger("kohort.broker.periodic_tasks")

FLUSH_MS: Final = 1000
"""How often to look whether something is to be flushed. Kafka looks every log.flush.scheduler.interval.ms alone, which
is never by default, so that `flush.ms` has no effect there unless that is set, too."""

AT_ONCE: Final = 100
"""Partitions looked after before requests get their turn."""


class PeriodicTasks:
    """The chores of a broker, each in its own rhythm."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self._plan: CompactionPlan | None = None
        self._thread = ThreadPoolExecutor(1, "kohort-chores")

    def start(self) -> None:
        """Begin."""
        config = self._broker.config
        every = [
            (self.retain, config.int("log.retention.check.interval.ms")),
            (self.compact, config.int("log.cleaner.backoff.ms")),
            (self.flush, min(config.int("log.flush.scheduler.interval.ms"), FLUSH_MS)),
            (self.checkpoint, config.int("log.flush.offset.checkpoint.interval.ms")),
            (self.expire_offsets, config.int("offsets.retention.check.interval.ms")),
            (
                self.abort_transactions,
                config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            ),
            (
                self.expire_transactional_ids,
                config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            ),
            (self.expire_producers, config.int("producer.id.expiration.check.interval.ms")),
        ]
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(_repeat(chore, interval / 1000)) for chore, interval in every]

    async def stop(self) -> None:
        """Stop; a compaction that is under way is given up."""
        plan = self._plan
        if plan is not None:
            plan.cancelled = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread.shutdown(cancel_futures=True)
        if plan is not None:
            plan.discard()

    async def retain(self) -> None:
        """Delete segments by age and size, and roll those that are old."""
        now = self._broker.now()
        for count, partition in enumerate(list(self._broker.topics.partitions())):
            if partition.offline is None and not partition.topic.deleted:
                try:
                    partition.log.roll_if_due(now)
                    partition.log.enforce_retention(now)
                except KafkaError as error:
                    log.error("retention of %s failed: %s", partition, error)
            if count % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)

    async def compact(self) -> None:
        """Compact the partitions that are dirty enough, one after another, in a thread."""
        if not self._broker.config.flag("log.cleaner.enable"):
            return
        loop = asyncio.get_running_loop()
        for partition in list(self._broker.topics.partitions()):
            logged = partition.log
            if "compact" not in logged.config.cleanup_policy or partition.offline is not None:
                continue
            try:
                self._plan = plan = logged.plan_compaction(self._broker.now())
                if plan is None:
                    continue
                await loop.run_in_executor(self._thread, plan.run)
                if partition.topic.deleted:
                    plan.discard()
                elif logged.finish_compaction(plan):
                    log.debug("compacted %s", partition)
            except KafkaError as error:
                log.error("compaction of %s failed: %s", partition, error)
            except Exception:  # the others want to be compacted all the same
                log.exception("compaction of %s failed", partition)
            finally:
                self._plan = None

    async def flush(self) -> None:
        """Sync logs whose `flush.ms` is over, and segments that are complete. With `--durable` all is synced anyway."""
        broker = self._broker
        if broker.durable:
            return
        now = broker.now()
        for name, logged in broker.log_manager.logs(broker.topics).items():
            if logged.offline is None and logged.flush_due(now):
                try:
                    await broker.flusher.flush(logged)
                except KafkaError as error:
                    log.error("flush of %s failed: %s", name, error)

    async def checkpoint(self) -> None:
        """Note from where each log has to be recovered after a crash."""
        broker = self._broker
        await self.flush()
        logs = broker.log_manager.logs(broker.topics)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, broker.log_manager.checkpoint, logs)
        except OSError as error:
            log.error("the checkpoints can't be written: %s; after a crash, recovery begins at the older ones", error)

    async def expire_offsets(self) -> None:
        """Forget offsets that nobody needs."""
        self._broker.groups.expire_offsets()

    async def abort_transactions(self) -> None:
        """Abort transactions that take too long."""
        self._broker.transactions.abort_timed_out()

    async def expire_transactional_ids(self) -> None:
        """Forget transactional ids that nobody uses."""
        self._broker.transactions.expire()

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for long."""
        now = self._broker.now()
        for partition in self._broker.topics.partitions():
            partition.log.expire_producers(now)


async def _repeat(chore: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        # At most a day: the event loop counts in C doubles, and Kafka's "never" is 2^63 - 1 ms.
        await asyncio.sleep(min(seconds, 86_400.0))
        try:
            await chore()
        except Exception:
            log.exception("%s failed", getattr(chore, "__name__", "a chore"))
