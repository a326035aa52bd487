"""The broker's periodic tasks: retention, log cleaning, flushing, checkpoints, and expiry."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.log_manager import LogManager
from kohort.broker.topics import Partition, Topics
from kohort.log.descriptors import descriptors
from kohort.protocol.errors import KafkaError
from kohort.utc_text import utc_text

if TYPE_CHECKING:
    from kohort.log.compaction import CompactionPlan

log = logging.getLogger("kohort.broker.periodic_tasks")

DAY_MS: Final = 86_400_000

FLUSH_MS: Final = 1000
"""The longest interval of checks for a due flush. Kafka checks every log.flush.scheduler.interval.ms alone, which is
never by default, so `flush.ms` has no effect there unless that is set as well."""

PARTITIONS_PER_TURN: Final = 100
"""Partitions handled before requests get their turn."""


class PeriodicTask(NamedTuple):
    """Something to do at an interval.

    Attributes:
        interval_key: the key of the broker's configuration that says how many ms.
        at_most_ms: Kafka's "never" is 2^63 - 1 ms, too long for the event loop.
        first_ms: the first run is after so many ms, if the interval is longer; None for the interval.
    """

    run: Callable[[], Awaitable[None]]
    interval_key: str
    at_most_ms: int = DAY_MS
    first_ms: int | None = None


class _Schedule:
    """A task with the time of its next run, in ms since 1970; it never runs twice at a time."""

    def __init__(self, task: PeriodicTask) -> None:
        self.task = task
        self.due = 2**63  # until it waits
        self.running = asyncio.Lock()


class PeriodicTasks:
    """Runs each periodic task at its interval.

    Args:
        clock: ms since 1970.
        others: tasks beside those of logs.
        regained: called with partitions that are online again.
    """

    def __init__(
        self,
        topics: Topics,
        log_manager: LogManager,
        flusher: LogFlusher,
        config: DynamicConfig,
        clock: Callable[[], int],
        others: Sequence[PeriodicTask],
        regained: Sequence[Callable[[Partition], None]] = (),
    ) -> None:
        self._topics = topics
        self._log_manager = log_manager
        self._flusher = flusher
        self._config = config
        self._clock = clock
        self._others = others
        self._regained = regained
        self._schedules: list[_Schedule] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._plan: CompactionPlan | None = None
        self._stopped = False
        self._thread = ThreadPoolExecutor(1, "kohort-periodic")

    def start(self) -> None:
        tasks = (
            PeriodicTask(self.enforce_retention, "log.retention.check.interval.ms"),
            PeriodicTask(self.clean_logs, "log.cleaner.backoff.ms"),
            PeriodicTask(self.flush_logs, "log.flush.scheduler.interval.ms", FLUSH_MS),
            PeriodicTask(self.checkpoint, "log.flush.offset.checkpoint.interval.ms"),
            PeriodicTask(self.regain_partitions, "log.flush.scheduler.interval.ms", FLUSH_MS),
            PeriodicTask(self.expire_producer_states, "producer.id.expiration.check.interval.ms"),
        )
        loop = asyncio.get_running_loop()
        self._schedules = [_Schedule(task) for task in (*tasks, *self._others)]
        self._tasks = [loop.create_task(self._repeat(schedule)) for schedule in self._schedules]

    async def stop(self) -> None:
        """Stops all tasks, and cancels a compaction that is running."""
        self._stopped = True
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
        now = self._clock()
        for count, partition in enumerate(list(self._topics.partitions())):
            if partition.offline is None and not partition.topic.deleted:
                try:
                    partition.log.roll_if_due(now)
                    _enforce_retention(partition, now)
                except KafkaError as error:
                    log.error("retention of %s failed: %s", partition, error)
            if count % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
                await asyncio.sleep(0)

    async def clean_logs(self) -> None:
        """Compacts the partitions that are dirty enough, one after another, in a thread."""
        if not self._config.current.flag("log.cleaner.enable"):
            return
        loop = asyncio.get_running_loop()
        for partition in list(self._topics.partitions()):
            logged = partition.log
            if "compact" not in logged.config.cleanup_policy or partition.offline is not None:
                continue
            try:
                self._plan = plan = logged.plan_compaction(self._clock())
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
        if self._flusher.durable:
            return
        now = self._clock()
        for name, logged in self._log_manager.logs(self._topics).items():
            if logged.offline is None and logged.flush_due(now):
                try:
                    await self._flusher.flush(logged)
                except KafkaError as error:
                    log.error("flush of %s failed: %s", name, error)

    async def checkpoint(self) -> None:
        """Flushes, and writes the checkpoints that recovery starts from after a crash."""
        await self.flush_logs()
        logs = self._log_manager.logs(self._topics)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._log_manager.checkpoint, logs)
        except OSError as error:
            log.error("the checkpoints can't be written: %s; after a crash, recovery starts at the older ones", error)

    async def expire_producer_states(self) -> None:
        """Expires producer state by producer.id.expiration.ms."""
        now = self._clock()
        for partition in self._topics.partitions():
            partition.log.expire_producers(now)

    async def regain_partitions(self) -> None:
        """Brings partitions back that are offline for want of file descriptors, once there are some."""
        if not descriptors.fill():
            return
        for partition in list(self._topics.partitions()):
            if partition.log.starved and not partition.topic.deleted:
                if not self._log_manager.reopen(partition):
                    break
                for callback in self._regained:
                    callback(partition)
                await asyncio.sleep(0)

    def interval_ms(self, task: PeriodicTask) -> int:
        """The time between two runs, by the configuration as it is now."""
        return min(self._config.current.int(task.interval_key), task.at_most_ms)

    async def catch_up(self) -> None:
        """Runs, one after another, the tasks that are due by a clock that was moved; the others go on waiting."""
        for schedule in self._schedules:
            async with schedule.running:
                if self._stopped:
                    return
                if schedule.due <= self._clock():
                    await self._run(schedule)

    async def _repeat(self, schedule: _Schedule) -> None:
        delay = self.interval_ms(schedule.task)
        if schedule.task.first_ms is not None:
            delay = min(delay, schedule.task.first_ms)
        schedule.due = self._clock() + delay
        while True:
            await asyncio.sleep(delay / 1000)
            async with schedule.running:
                await self._run(schedule)
            delay = self.interval_ms(schedule.task)

    async def _run(self, schedule: _Schedule) -> None:
        schedule.due = self._clock() + self.interval_ms(schedule.task)
        try:
            await schedule.task.run()
        except Exception:
            log.exception("%s failed", getattr(schedule.task.run, "__name__", "a periodic task"))


def _enforce_retention(partition: Partition, now: int) -> None:
    """Deletes what is too old or too much, and says so: results with old times would vanish without a word."""
    logged, config = partition.log, partition.log.config
    first = logged.log_start_offset
    expired = logged.enforce_retention(now)
    records = logged.log_start_offset - first
    if records:
        why = [f"retention.ms={config.retention_ms}"] if expired.by_age else []
        why += [f"retention.bytes={config.retention_bytes}"] if expired.by_age < expired.number else []
        log.info(
            "records deleted topic=%s partition=%d from=%d to=%d records=%d newest=%s reason=%s",
            partition.topic.name, partition.index, first, first + records - 1, records,
            utc_text(expired.newest) or expired.newest, " ".join(why),
        )  # fmt: skip
