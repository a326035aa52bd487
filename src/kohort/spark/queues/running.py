"""Runs an application's queues in this process, a worker for each, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kohort.client.admin import Admin
from kohort.client.administration.configs import ConfigResource, ResourceType
from kohort.client.errors import ClientError
from kohort.client.no_broker import saying_once
from kohort.client.producer import Producer
from kohort.protocol.errors import KafkaError
from kohort.spark.errors import ProgramError
from kohort.spark.internals import stop_progress_bar
from kohort.spark.jobs.session_settings import session_settings
from kohort.spark.program.settings import AppSettings
from kohort.spark.program.topics_there import create
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.consumer import QueueConsumer
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.jobs import QueueJobs
from kohort.spark.queues.progress import QueueProgress
from kohort.spark.queues.worker import QueueWorker
from kohort.spark.runtime.foreground import in_foreground, signals
from kohort.spark.runtime.job_thread import JobThread
from kohort.spark.runtime.shutdown import Shutdown
from kohort.spark.runtime.unless_stopped import unless_stopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kohort.client.config import ClientConfig

log = logging.getLogger(__name__)

SHUTDOWN_S: Final = 20.0
"""What is under way has so long to end."""

_RENEWAL: Final = "share.renew.acknowledge.enable"
_LIMIT: Final = "share.delivery.count.limit"
_USUAL_LIMIT: Final = 5


def run_queues(
    spark: SparkSession,
    queues: Sequence[CompiledQueue],
    settings: AppSettings,
    *,
    progress: bool = True,
    stopping: Shutdown,
    counted: Callable[[Sequence[QueueCounts]], object] = lambda _: None,
) -> None:
    """Works on queues until SIGINT or SIGTERM, or until that is asked for.

    What is under way then is finished, if that takes no longer than `SHUTDOWN_S`; the rest is released. `counted` is
    called once with what is counted of each queue, which goes on changing.

    Raises:
        ProgramError: a topic isn't there, or the group can't be set up.
        ApplicationError: it can't go on: says why.
        KafkaError, ClientError: the group won't have it, or no broker was found within
            `bootstrap_timeout_ms`, if that is set.
    """
    in_foreground(functools.partial(_run, spark, queues, settings, progress, stopping, counted), stopping)


async def _run(
    spark: SparkSession,
    queues: Sequence[CompiledQueue],
    settings: AppSettings,
    progress: bool,
    stopping: Shutdown,
    counted: Callable[[Sequence[QueueCounts]], object],
) -> None:
    stopped = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        if progress:
            stop_progress_bar(spark)
        stack.enter_context(session_settings(spark, max(1, spark.sparkContext.defaultParallelism)))
        stack.enter_context(signals(stopped.set))
        stack.enter_context(stopping.ends(stopped.set))
        renewed = True

        async def begin() -> None:
            nonlocal renewed
            renewed = await set_up(queues, settings)

        if not await unless_stopped(stopped, begin()):
            return
        producer = await stack.enter_async_context(Producer(settings.client))
        counts = [QueueCounts(each.topic) for each in queues]
        counted(counts)
        if progress:
            stack.callback(QueueProgress(settings.application_id, counts).close)
        if settings.endpoint is not None:
            await _serve(counts, settings, stack)
        pairs = zip(queues, counts, strict=True)
        workers = [await _worker(spark, queue, settings, producer, count, renewed, stack) for queue, count in pairs]
        running = [asyncio.create_task(worker.run(stopped, SHUTDOWN_S)) for worker in workers]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            stopped.set()  # where one fails, the others end in good order
            await asyncio.wait(running)
            await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()


async def _worker(
    spark: SparkSession,
    queue: CompiledQueue,
    settings: AppSettings,
    producer: Producer,
    counts: QueueCounts,
    renewed: bool,
    stack: contextlib.AsyncExitStack,
) -> QueueWorker:
    work = SparkWork(QueueJobs(spark, queue), queue.topic)
    stack.callback(work.close)
    consumer = QueueConsumer(settings.client, settings.application_id, queue, counts, renewed=renewed)
    stack.push_async_callback(consumer.close)
    await consumer.start()
    send = functools.partial(deliver, producer)
    return QueueWorker(queue, consumer, work, send, counts, uuid.uuid4().hex, clock=time.monotonic)


async def deliver(producer: Producer, topic: str, table: pa.Table) -> None:
    """Delivers records. It waits for these alone: other queues send by the same producer, and their losses are theirs.

    Raises:
        ValueError: one is too large; then none is sent.
        NotDeliveredError: some of them aren't delivered.
        KafkaError, ClientError: the topic can't be written.
    """
    await (await producer.send_table(topic, table))


async def _serve(counts: Sequence[QueueCounts], settings: AppSettings, stack: contextlib.AsyncExitStack) -> None:
    """Serves metrics and health. Who doesn't want that needn't load what it takes."""
    from kohort.spark.queues.http_server import QueueServer

    assert settings.endpoint is not None
    server = QueueServer(counts, *settings.endpoint, settings.http_access())
    stack.push_async_callback(server.close)
    await server.start()


class SparkWork:
    """The jobs of a queue, in a thread of their own."""

    def __init__(self, jobs: QueueJobs, topic: str) -> None:
        self._jobs = jobs
        self._thread = JobThread(f"kohort-queue-{topic}")

    async def run(self, rows: pa.Table) -> pa.Table:
        return await self._thread.run(self._jobs.run, rows)

    async def call(self, function: Callable[[DataFrame, str], object], rows: pa.Table, batch_id: str) -> None:
        await self._thread.run(self._jobs.call, function, rows, batch_id)

    async def cancel(self) -> None:
        await self._thread.stopped(self._jobs.cancel)

    def close(self) -> None:
        self._thread.close()


async def set_up(queues: Sequence[CompiledQueue], settings: AppSettings) -> bool:
    """Checks that topics are there, and sets the group's configuration where the queues say it.

    Returns:
        Whether the group lets its members renew locks.

    Raises:
        ProgramError: one isn't there, or it can't be set.
    """
    waiting = functools.partial(log.warning, "%s waits: %s", settings.application_id)
    async with Admin(saying_once(settings.client, waiting)) as admin:
        there = set(await admin.topics.list())
        _check_topics(queues, there, settings.client)
        wanted_configs: dict[str, str] = {}
        for queue in queues:
            for key, value in _group_configs(queue).items():
                if wanted_configs.setdefault(key, value) != value:
                    raise ProgramError(
                        f"queue {queue.topic!r}: the queues of an application are of one group, which has one {key}: "
                        f"{wanted_configs[key]} or {value}"
                    )
        group = ConfigResource(ResourceType.GROUP, settings.application_id)
        if wanted_configs:
            try:
                await admin.configs.alter(group, set=wanted_configs)
            except (KafkaError, ClientError) as error:
                told = ", ".join(f"{key}={value}" for key, value in wanted_configs.items())
                raise ProgramError(
                    f"the group {settings.application_id} can't be set up with {told}: {error}. With offset_reset=None "
                    f"and lock_ms=None its configuration stays as it is"
                ) from error
        configs = await _configs_of(admin, group)
        for queue in queues:
            _check_deliveries(queue, configs.get(_LIMIT))
        return configs.get(_RENEWAL) != "false"


def _check_topics(queues: Sequence[CompiledQueue], there: Collection[str], client: ClientConfig) -> None:
    """Raises ProgramError if topics of queues are missing, which names all of them, and the queues they are of."""
    lacks = [(queue.topic, [each for each in (queue.topic, *queue.written) if each not in there]) for queue in queues]
    parts = [f"queue {name!r} lacks {', '.join(map(repr, some))}" for name, some in lacks if some]
    if not parts:
        return
    missing = [*dict.fromkeys(topic for _, some in lacks for topic in some)]
    what = "a topic isn't" if len(missing) == 1 else "topics aren't"
    raise ProgramError(f"{what} there: {'; '.join(parts)}. {create(missing, client)}")


async def _configs_of(admin: Admin, group: ConfigResource) -> dict[str, str | None]:
    try:
        return {name: each.value for name, each in (await admin.configs.describe(group))[group].items()}
    except KafkaError as error:
        log.info("whether %s is set, and %s, can't be read: %s", _RENEWAL, _LIMIT, error)
        return {}


def _check_deliveries(queue: CompiledQueue, limit: str | None) -> None:
    """Warns where brokers would drop a record before the queue gives it up, or as it is released at a shutdown."""
    most = queue.settings.max_deliveries
    if most >= int(limit or _USUAL_LIMIT):
        known = f"is {limit}" if limit else f"is {_USUAL_LIMIT}, unless brokers are set up otherwise"
        log.warning(
            "queue %s: max_deliveries=%d isn't below the group's %s, which %s: brokers drop records that are released "
            "at the limit, without a dead letter. Take fewer, or raise the limit",
            queue.topic, most, _LIMIT, known,
        )  # fmt: skip


def _group_configs(queue: CompiledQueue) -> dict[str, str]:
    configs = {}
    if queue.settings.offset_reset is not None:
        configs["share.auto.offset.reset"] = queue.settings.offset_reset
    if queue.settings.lock_ms is not None:
        configs["share.record.lock.duration.ms"] = str(queue.settings.lock_ms)
    return configs
