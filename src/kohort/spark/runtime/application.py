"""Runs a program in this process: an instance of the application, with all that Spark needs, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kohort.client.admin import Admin
from kohort.spark.epoch import EpochInput, EpochOutput
from kohort.spark.errors import ApplicationError, ProgramError
from kohort.spark.internals import stop_progress_bar
from kohort.spark.monitoring.events import Listener
from kohort.spark.monitoring.overview import Overview
from kohort.spark.program.compiled import CompiledSubtopology, Program
from kohort.spark.program.settings import AppSettings
from kohort.spark.runtime.errors import unreadable
from kohort.spark.runtime.foreground import in_foreground, signals
from kohort.spark.runtime.global_tables import GLOBALS
from kohort.spark.runtime.instance import Instance
from kohort.spark.runtime.planning import application_plan_of
from kohort.spark.runtime.queryable_instance import QueryableInstance
from kohort.spark.runtime.shutdown import Shutdown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from kohort.spark.executor_rpc.server import RpcServer
    from kohort.spark.jobs.subtopology_jobs import SubtopologyJobs

log = logging.getLogger(__name__)

_LOCAL: Final = "127.0.0.1"


def run_application(
    spark: SparkSession,
    program: Program,
    settings: AppSettings,
    *,
    listeners: Sequence[Listener] = (),
    progress: bool = True,
    stopping: Shutdown | None = None,
) -> None:
    """Be an instance of an application until SIGINT or SIGTERM, or until another instance has all stop.

    The first signal has it finish its epochs, close its tasks and leave the group. A second one ends it at once,
    as if it had been killed: nothing is lost by that, others only take a while to notice. Off the main thread no signal
    is heard. Where a loop runs in this thread already, as in a notebook, a second SIGINT only ends the call; the run
    goes on to its end in good order.

    Args:
        spark: the session that computes. Some of its settings are others while this runs.
        listeners: told what happens, in this process's event loop. An `Overview` among them has the lags as measured.
        progress: whether to show a live line, or where there is no terminal plain ones.
        stopping: ends it as a signal does.

    Raises:
        ProgramError: the program doesn't fit the cluster, or its group.
        ApplicationError: it can't go on: says why.
        KafkaError, ClientError: the group won't have it, or no broker was found within
            `bootstrap_timeout_ms`, if that is set.
        StateDirectoryError: another process uses the state directory, or it can't be written.
    """
    stopping = Shutdown() if stopping is None else stopping
    in_foreground(functools.partial(_run, spark, program, settings, listeners, progress, stopping), stopping)


async def _run(
    spark: SparkSession,
    program: Program,
    settings: AppSettings,
    listeners: Sequence[Listener],
    progress: bool,
    stopping: Shutdown,
) -> None:
    from kohort.spark.jobs.session_settings import session_settings
    from kohort.spark.monitoring.telemetry import OpenTelemetry
    from kohort.spark.observability import Observability
    from kohort.spark.queries.store_infos import inner_stores, store_infos

    subtopologies = {each.id: each for each in program.subtopologies}
    subtopologies[GLOBALS] = CompiledSubtopology(GLOBALS, None, program.globals, ())

    async def before_joining(admin: Admin) -> None:
        from kohort.spark.program.cluster_checks import check_against
        from kohort.spark.program.upgrade_plan import mark_left

        joining = await check_against(admin, program, settings.group_protocol, settings.client)
        instance.topology_epoch, instance.before = joining
        await mark_left(admin, program)
        await service.start()
        instance.endpoint = service.endpoint
        # A first job takes Spark seconds, with code to compile and Python workers to start: tasks that move here
        # shouldn't stand still for that long.
        waiting = instance.waits("Spark")
        waiting("Spark is warming up")
        warm_ups = (asyncio.to_thread(jobs_of(each).warm_up) for each in subtopologies)
        await asyncio.gather(*warm_ups, asyncio.to_thread(_warm_up_stores))
        waiting(None)

    def parallelism() -> int:
        return max(1, spark.sparkContext.defaultParallelism)

    @functools.cache
    def jobs_of(subtopology: str) -> SparkJobs:
        from kohort.spark.jobs.subtopology_jobs import SubtopologyJobs

        compiled = subtopologies[subtopology]
        jobs = SubtopologyJobs(spark, compiled, rpc_server, servers=settings.client, parallelism=parallelism)
        return SparkJobs(jobs, compiled)

    instance = Instance(application_plan_of(program), settings, jobs_of, before_joining=before_joining)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(instance.directory.close)
        queryable = QueryableInstance(instance, store_infos(program), inner_stores(program))
        for each in listeners:
            if isinstance(each, Overview):
                each.measures(queryable.lags)
        service = Observability(
            settings.application_id,
            queryable,
            application_server=settings.endpoint,
            access=settings.http_access(),
            journal=settings.journal,
            progress=progress,
        )
        stack.push_async_callback(service.close)
        instance.tell(*listeners, *service.listeners)
        for telemetry in (each for each in listeners if isinstance(each, OpenTelemetry)):
            telemetry.bridge(service.registry)
            stack.callback(telemetry.unbridge)
        if progress:
            stop_progress_bar(spark)
        largest = max((spec.heap_bytes for each in program.subtopologies for spec in each.aggregates), default=0)
        stack.enter_context(session_settings(spark, parallelism(), largest))
        rpc_server = stack.enter_context(_rpc_server(spark, instance, settings))
        stack.enter_context(signals(stopping.ask))
        stack.enter_context(stopping.ends(instance.stop))
        await instance.run()


class SparkJobs:
    """A subtopology's jobs, as its runner wants them: what must stop the application is an `ApplicationError`."""

    def __init__(self, jobs: SubtopologyJobs, compiled: CompiledSubtopology) -> None:
        self._jobs = jobs
        self._tables = {table.name: table for table in compiled.tables}
        self._of_group = compiled.id != GLOBALS

    def run(self, epoch_input: EpochInput) -> EpochOutput:
        with _stopping():
            return self._jobs.run(epoch_input)

    def run_table(self, table: str, epoch_input: EpochInput) -> EpochOutput:
        with _stopping(of_group=self._of_group):
            return self._jobs.run_table(self._tables[table], epoch_input)

    def call(self, branch: int, batch_id: str, rows: pa.Table) -> None:
        self._jobs.call(branch, batch_id, rows)

    def warm_up(self) -> None:
        """Run all of them on nothing. What goes wrong is left for an epoch to meet, which knows what to do about it."""
        try:
            self._jobs.warm_up()
        except Exception:
            log.info("Spark could not be warmed up", exc_info=True)

    def cancel(self) -> None:
        self._jobs.cancel()


def _warm_up_stores() -> None:
    """Load what a store's first epoch would have to. What goes wrong is left for that."""
    from kohort.spark.state import row_cache

    try:
        row_cache.load()
    except Exception:
        log.info("stores could not be warmed up", exc_info=True)


@contextlib.contextmanager
def _stopping(*, of_group: bool = True) -> Iterator[None]:
    from kohort.spark.jobs.errors import BadRecordError

    try:
        yield
    except BadRecordError as error:
        raise unreadable(error, of_group=of_group) from error
    except ProgramError as error:
        raise ApplicationError(str(error)) from error


def _rpc_server(spark: SparkSession, instance: Instance, settings: AppSettings) -> RpcServer:
    """The server that executors ask: on a cluster at the driver's address and over TLS, else on the loopback."""
    from kohort.spark.executor_rpc.server import RpcServer
    from kohort.spark.jobs.session_protection import is_on_a_cluster, warn_of_unprotected
    from kohort.spark.reading.secrets import secrets_of

    conf = dict(spark.sparkContext.getConf().getAll())
    secrets = secrets_of(settings.client)
    if not is_on_a_cluster(conf):
        return RpcServer(instance.lookup, _LOCAL, secrets=secrets, scan=instance.stores.scan)
    from kohort.spark.executor_rpc.tls import driver_tls, spark_secret

    warn_of_unprotected(conf)
    tls = driver_tls(spark_secret(conf, os.environ), datetime.now(UTC))
    return RpcServer(
        instance.lookup, conf.get("spark.driver.host", _LOCAL), tls=tls, secrets=secrets, scan=instance.stores.scan
    )
