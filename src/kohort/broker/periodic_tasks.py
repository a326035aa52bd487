"""The broker's periodic tasks: retention, log cleaning, flushing, checkpoints, and expiry."""

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

log = logging.getLogger("kohort.broker.periodic_tasks")

FLUSH_MS: Final = 1000
"""The longest interval of checks for a due flush. Kafka checks every log.flush.scheduler.interval.ms alone, which is
never by default, so `flush.ms` has no effect there unless that is set as well."""

PARTITIONS_PER_TURN: Final = 100
"""Partitions handled before requests get their turn."""


class PeriodicTasks:
    """Runs each periodic task at its interval."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self._plan: CompactionPlan | None = None
        self._thread = ThreadPoolExecutor(1, "kohort-periodic")

    def start(self) -> None:
        config = self._broker.config
        tasks = [
            (self.enforce_retention, config.int("log.retention.check.interval.ms")),
            (self.clean_logs, config.int("log.cleaner.backoff.ms")),
            (self.flush_logs, min(config.int("log.flush.scheduler.interval.ms"), FLUSH_MS)),
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
            (self.expire_producer_states, config.int("producer.id.expiration.check.interval.ms")),
        ]
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(_repeat(task, interval / 1000)) for task, interval in tasks]

    async def stop(self) -> None:
        """Stops all tasks, and cancels a compaction that is running."""
        plan = self._plan
        if plan is not None:
            plan.cancelled = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread.shutdown(cancel_futures=True)
        if plan is not None:
            plan.discard()

    async def enforce_retention(self) -> None:
        """Rolls old active segments, and deletes segments by retention.ms and retention.bytes."""
        now = self._broker.now()
        for count, partition in enumerate(list(self._broker.topics.partitions())):
            if partition.offline is None and not partition.topic.deleted:
                try:
                    partition.log.roll_if_due(now)
                    partition.log.enforce_retention(now)
                except KafkaError as error:
                    log.error("retention of %s failed: %s", partition, error)
            if count % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
                await asyncio.sleep(0)

    async def clean_logs(self) -> None:
        """Compacts the partitions that are dirty enough, one after another, in a thread."""
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
            except Exception:  # the other logs must be compacted as well
                log.exception("compaction of %s failed", partition)
            finally:
                self._plan = None

    async def flush_logs(self) -> None:
        """Syncs logs by `flush.ms`, and sealed segments. With `--durable` every append is synced anyway."""
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
        """Flushes, and writes the checkpoints that recovery starts from after a crash."""
        broker = self._broker
        await self.flush_logs()
        logs = broker.log_manager.logs(broker.topics)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, broker.log_manager.checkpoint, logs)
        except OSError as error:
            log.error("the checkpoints can't be written: %s; after a crash, recovery starts at the older ones", error)

    async def expire_offsets(self) -> None:
        self._broker.groups.expire_offsets()

    async def abort_transactions(self) -> None:
        self._broker.transactions.abort_timed_out()

    async def expire_transactional_ids(self) -> None:
        self._broker.transactions.expire()

    async def expire_producer_states(self) -> None:
        """Expires producer state by producer.id.expiration.ms."""
        now = self._broker.now()
        for partition in self._broker.topics.partitions():
            partition.log.expire_producers(now)


async def _repeat(task: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        # At most a day: Kafka's "never" is 2^63 - 1 ms, too long for the event loop.
        await asyncio.sleep(min(seconds, 86_400.0))
        try:
            await task()
        except Exception:
            log.exception("%s failed", getattr(task, "__name__", "a periodic task"))
