"""An instance of an application: a member of its group, with all that its tasks need."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from kohort.client.admin import Admin, ConfigResource, ResourceType
from kohort.client.cluster import Cluster
from kohort.client.errors import ClientError
from kohort.client.no_broker import telling
from kohort.client.producer import Producer
from kohort.client.streams.events import (
    Assigned,
    EndpointPartitions,
    EndpointsChanged,
    Event,
    Lost,
    Revoked,
    RolesChanged,
    ShutdownRequested,
    StatusesChanged,
)
from kohort.client.streams_group_protocol import choose_group_protocol
from kohort.client.streams_member import ClassicSettings, StreamsMember
from kohort.client.types import TopicInfo
from kohort.protocol.errors import KafkaError
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import Listener, Listeners, TasksNow
from kohort.spark.program.settings import AppSettings
from kohort.spark.runtime.activation import Activation
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.chain import Chain
from kohort.spark.runtime.chain_runner import ChainRunner, Jobs
from kohort.spark.runtime.dangling_transactions import DanglingTransactions, end_own, transactional_id
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.epoch_committer import EpochCommitter, Probe, unprobed
from kohort.spark.runtime.epoch_interpreter import EpochInterpreter
from kohort.spark.runtime.epoch_limit import LimitSettings
from kohort.spark.runtime.global_tables import GLOBALS, GlobalTables
from kohort.spark.runtime.group_lag import group_lag
from kohort.spark.runtime.interpreter import Interpreter
from kohort.spark.runtime.local_task import tasks_now
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.plain_errors import plain
from kohort.spark.runtime.repartition_purging import purge_repartition_topics
from kohort.spark.runtime.short_retention import ShortRetention
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_offset_reporting import TaskOffsetReporting
from kohort.spark.runtime.under_way import UnderWay
from kohort.spark.runtime.unless_stopped import unless_stopped
from kohort.spark.state import ChangelogReader, StateDirectory
from kohort.streams.endpoint import Endpoint

log = logging.getLogger(__name__)

_STOP_WITHIN_S: Final = 30.0
_LOOK_S: Final = 1.0
_ASK_LAG_MS: Final = 2_000
"""How long the end waits for the group's lag, with all requests that it takes."""
_CLASSIC_HEARTBEAT_MS: Final = 3_000
_DISCONNECT_TIMEOUT_MS: Final = 1_000
"""Enough to connect again after a connection that something on the way has closed."""


class Instance:
    """Runs an application as a member of its group, until it is stopped or can't go on. Made in an event loop.

    What the group says goes to the task manager, which decides; the interpreter does what it decides.

    Args:
        make_jobs: the Spark jobs of a subtopology by its id, or of `GLOBALS`; called in the thread that runs them.
        before_joining: checks that need the cluster.
        probe: called between the steps of epochs and of activations.

    Attributes:
        endpoints: who has which partitions, as the group said last.
        topology_epoch: of its topology; higher than the group's where it is to take the place of that.
        before: the fingerprints of the programs that it may go on from, beside its own.

    Raises:
        StateDirectoryError: another process uses the state directory, or it can't be written.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        settings: AppSettings,
        make_jobs: Callable[[str], Jobs],
        *,
        listener: Listener | None = None,
        before_joining: Callable[[Admin], Awaitable[None]] | None = None,
        probe: Probe = unprobed,
    ) -> None:
        self.plan, self.settings = plan, settings
        self._make_jobs, self._before_joining, self._probe = make_jobs, before_joining, probe
        self._listener = Listeners([listener] if listener is not None else [])
        self.endpoint: Endpoint | None = None if settings.endpoint is None else Endpoint(*settings.endpoint)
        self.endpoints: Mapping[Endpoint, EndpointPartitions] = {}
        self.topology_epoch = plan.topology.epoch
        self.before: Collection[str] = ()
        self.directory = StateDirectory(settings.state_dir, settings.application_id)
        self.stores = OpenStores(plan, self.directory)
        self._cluster_waits = self.waits("cluster")
        # Only the first of them to be started finds no broker.
        self.admin, self.cluster = Admin(telling(settings.client, self._cluster_waits)), Cluster(settings.client)
        self.ends = EndOffsets(self.cluster, pause_ms=settings.poll_ms)
        self.changelogs = ChangelogReader(settings.client, self.waits("changelogs"))
        self.manager = TaskManager(
            plan.subtopologies,
            plan.fingerprint,
            LimitSettings(
                most_records=settings.max_epoch_records,
                most_bytes=settings.max_epoch_bytes,
                target_ms=settings.target_epoch_ms,
            ),
        )
        self.globals = self._global_tables() if plan.globals else None
        self._told: TasksNow | None = None
        self._changes_told = -1
        self._background: set[asyncio.Task[Any]] = set()
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._left_well = False

    def lookup(self, store: str, partition: int | None, keys: pa.Array) -> pa.Array:
        """Values that stores have, for Spark's jobs: from any thread. Raises StateError."""
        return self.stores.lookup(store, partition, keys)

    def stop(self) -> None:
        """Finish the epochs that are under way, close the tasks, and leave the group. `run` returns then."""
        self._stop.set()

    def tell(self, *listeners: Listener) -> None:
        """Tell these, too, what happens from now on."""
        self._listener.add(*listeners)

    def waits(self, source: str) -> Callable[[str | None], None]:
        """What `source` calls with its reason to wait, and with None when it goes on."""

        def says(reason: str | None) -> None:
            self.manager.says(source, reason)
            self._listener.waiting(self.manager.reason)

        return says

    # Life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until `stop`, or until another instance asks all to stop.

        Raises:
            ApplicationError: the application can't go on.
            KafkaError, ClientError: the group won't have it, or the cluster can't be reached at the start.
        """
        application_id, process_id = self.plan.application_id, self.directory.process_id
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.directory.close)
            stack.push_async_callback(self.admin.close)
            stack.push_async_callback(self.cluster.close)
            if not await unless_stopped(self._stop, self._find_cluster()):
                return
            self._cluster_waits(None)
            stack.push_async_exit(self._tell_what_is_left)
            stack.callback(self.directory.close)  # before asking, so that the next instance need not wait for that
            self.cluster.follow({topic for each in self.plan.subtopologies.values() for topic in each.inputs.topics})
            if self._before_joining is not None:
                await self._before_joining(self.admin)
            protocol = self.settings.group_protocol
            if protocol == "auto":
                protocol = await choose_group_protocol(self.cluster, application_id)
                log.info("the group has the protocol %s", protocol)
            # Members of a classic group bring these along.
            if protocol == "streams" and (configs := group_configs(self.settings)):
                await self.admin.configs.alter(ConfigResource(ResourceType.GROUP, application_id), set=configs)
            await end_own(self.admin, application_id, process_id)
            stack.push_async_callback(self.ends.close)
            await stack.enter_async_context(self.changelogs)
            member = StreamsMember(
                self.settings.client,
                application_id,
                replace(self.plan.topology, epoch=self.topology_epoch),
                process_id=process_id,
                instance_id=self.settings.group_instance_id,
                rack_id=self.settings.rack_id,
                client_tags=self.settings.client_tags,
                user_endpoint=self.endpoint,
                group_protocol=protocol,
                classic=classic_settings(self.settings),
                disconnect_timeout_ms=_DISCONNECT_TIMEOUT_MS,
                held_heartbeats=True,
            )
            reporting = TaskOffsetReporting(
                self.plan, member, self.manager, self.directory, self.changelogs, self.ends,
                cleanup_delay_ms=self.settings.state_cleanup_delay_ms,
            )  # fmt: skip
            homes = {name: each.id for each in self.plan.subtopologies.values() for name in each.stores}
            await asyncio.to_thread(self.directory.move_stores, homes)
            await reporting.report_disk()
            if self.globals is not None:
                stack.push_async_callback(self.globals.close)
                following = self._beside(self._until_failure(self.globals.run()), "globals")
                stack.push_async_callback(_ended, following)
            stack.push_async_callback(member.close)
            interpreter = self._interpreter(member)
            stack.push_async_callback(interpreter.close)
            stack.push_async_callback(self._end_background)
            await member.start()
            self._beside(reporting.run(), "reporting")
            if topics := self.plan.repartition_topics:
                interval_ms = self.settings.repartition_purge_interval_ms
                self._beside(
                    purge_repartition_topics(self.admin, topics, self.manager.positions, interval_ms), "purging"
                )
            await self._follow_group(member, interpreter)
        if self._failure is not None:
            raise self._failure

    async def _find_cluster(self) -> None:
        await self.admin.start()
        await self.cluster.start()

    async def _follow_group(self, member: StreamsMember, interpreter: Interpreter) -> None:
        """Do as the group says until it is over."""
        events = asyncio.create_task(self._follow_events(member, interpreter), name="kohort-events")
        stopping = asyncio.create_task(self._stop.wait(), name="kohort-stopping")
        try:
            await asyncio.wait([events, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not events.done():
                self.waits("stopping")(None if self._failure is None else plain(self._failure))
                member.leave()
                await asyncio.wait([events], timeout=_STOP_WITHIN_S)
            if not events.done():
                log.warning(
                    "tasks can't be closed in good order; they are abandoned, and what isn't committed is aborted"
                )
            elif events.exception() is not None:
                self._failure = self._failure or events.exception()
            else:
                self._left_well = True
        finally:
            for task in (events, stopping):
                task.cancel()
            await asyncio.wait([events, stopping])

    async def _follow_events(self, member: StreamsMember, interpreter: Interpreter) -> None:
        async for event in member:
            self._hear(event, interpreter)

    def _hear(self, event: Event, interpreter: Interpreter) -> None:
        match event:
            case Assigned(tasks):
                interpreter.do(self.manager.assigned(tasks))
            case Revoked(tasks):
                interpreter.do(self.manager.revoked(tasks))
            case Lost():
                log.warning("the group fenced this instance; it joins again")
                interpreter.do(self.manager.lost())
            case RolesChanged(changed):
                interpreter.do(self.manager.roles_changed(changed))
            case StatusesChanged(statuses):
                text = "; ".join(f"{_name(status.code)}: {status.detail}" for status in statuses)
                self.waits("group")(f"the group says: {text}" if text else None)
            case EndpointsChanged(endpoints):
                self.endpoints = endpoints
            case ShutdownRequested(detail):
                log.warning("another instance asks that all stop: %s", detail)

    async def _tell_what_is_left(self, *error: object) -> None:
        """Tell what the group has left to read once this instance has left it: its own tasks' lag is no more than that.

        A group that can't be asked at once holds nothing up, and after an end that isn't a good one nobody is asked.

        Args:
            error: what the end is due to, as an exit has it: three times None if all went well.
        """
        if not self._left_well or self._failure is not None or any(each is not None for each in error):
            return
        topics = {topic for each in self.plan.subtopologies.values() for topic in each.inputs.topics}
        with contextlib.suppress(ClientError, KafkaError, TimeoutError):
            left = await group_lag(self.admin, self.plan.application_id, topics, timeout_ms=_ASK_LAG_MS)
            if left is not None:
                self._listener.left(left)

    def fail(self, error: BaseException) -> None:
        """The application can't go on: leave, so that `run` raises this."""
        if self._failure is None:
            self._failure = error
            log.error(
                "the application stops: %s", error, exc_info=None if isinstance(error, ApplicationError) else error
            )
            self._listener.failed(f"the application stops: {plain(error)}")
        self._stop.set()

    def _beside(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Do something beside the rest, until it is over or the instance ends. The application stops if it fails."""
        task = asyncio.create_task(work, name=f"kohort-{name}")
        self._background.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    async def _end_background(self) -> None:
        for task in list(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(self._background)

    async def _until_failure(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ApplicationError as error:
            self.fail(error)

    # What it is made of ------------------------------------------------------------------------------------------

    def _interpreter(self, member: StreamsMember) -> Interpreter:
        plan, process_id = self.plan, self.directory.process_id
        dangling = DanglingTransactions(self.admin, plan.application_id, process_id)
        activation = Activation(
            plan, member, self.stores, self.changelogs, self.ends, dangling, self._listener, self._probe, self.before
        )

        retention = ShortRetention(
            plan.application_id,
            self.admin,
            self.settings.client,
            lambda work: self._beside(work, "retention"),
            plan.repartition_topics,
        )

        def make_runner(chain: Chain) -> ChainRunner:
            def make_producer() -> Producer:
                return Producer(
                    self.settings.client,
                    transactional_id=transactional_id(plan.application_id, process_id, chain.id),
                    transaction_timeout_ms=self.settings.transaction_timeout_ms,
                    compression_type="lz4",
                )

            return ChainRunner(
                chain,
                self._make_jobs,
                EpochCommitter(make_producer, self.cluster, member, self._probe, retention.look),
                self.stores.of,
                self._probe,
            )

        under_way = UnderWay(self.fail)
        epochs = EpochInterpreter(
            self.manager, self.ends, make_runner, under_way, listener=self._listener, fail=self.fail,
            prepared=None if self.globals is None else self.globals.loaded, stores=self.stores.of,
        )  # fmt: skip
        self._beside(_every(_LOOK_S, epochs.look), "looking")
        return Interpreter(
            plan, self.manager, member, self.stores, self.changelogs, activation, epochs, under_way,
            changed=self._changed, fail=self.fail,
        )  # fmt: skip

    def _global_tables(self) -> GlobalTables:
        return GlobalTables(
            self.plan.globals, lambda: self._make_jobs(GLOBALS), self.stores, self.cluster, self.ends,
            self._listener, self.waits("globals"),
        )  # fmt: skip

    # What is known -----------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """Tell the listener which tasks there are and why something waits, if that has changed."""
        if self.manager.changes == self._changes_told:
            return
        self._changes_told = self.manager.changes
        now = tasks_now(time.time(), self.manager.tasks.values(), self.manager.stopped)
        if self._told is None or replace(self._told, at=now.at) != now:
            self._told = now
            self._listener.tasks(now)
        self._listener.waiting(self.manager.reason)

    def known_topics(self) -> Mapping[str, TopicInfo]:
        return self.cluster.info.topics


def group_configs(settings: AppSettings) -> dict[str, str]:
    """The group's configuration that an application asks for."""
    wanted = {
        "streams.num.standby.replicas": settings.num_standby_replicas,
        "streams.num.warmup.replicas": settings.max_warmup_replicas,
        "streams.acceptable.recovery.lag": settings.acceptable_recovery_lag,
        "streams.session.timeout.ms": settings.session_timeout_ms,
        "streams.heartbeat.interval.ms": settings.heartbeat_interval_ms,
    }
    return {key: str(value) for key, value in wanted.items() if value is not None}


def classic_settings(settings: AppSettings) -> ClassicSettings:
    """The same for a member of a classic group, with Kafka Streams' defaults."""
    wanted = {
        "num_standby_replicas": settings.num_standby_replicas,
        "max_warmup_replicas": settings.max_warmup_replicas,
        "acceptable_recovery_lag": settings.acceptable_recovery_lag,
        "session_timeout_ms": settings.session_timeout_ms,
        "heartbeat_interval_ms": settings.heartbeat_interval_ms,
    }
    given: dict[str, Any] = {key: value for key, value in wanted.items() if value is not None}
    if settings.heartbeat_interval_ms is None and settings.session_timeout_ms is not None:
        given["heartbeat_interval_ms"] = max(1, min(_CLASSIC_HEARTBEAT_MS, settings.session_timeout_ms // 3))
    tags = tuple(sorted(settings.client_tags))
    return ClassicSettings(rack_aware_assignment_tags=tags, **given)


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await work()


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _name(code: object) -> str:
    return getattr(code, "name", str(code))
