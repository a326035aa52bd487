"""An instance of an application: what the group says, made true."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from kohort.client.admin import Admin, ConfigResource, ResourceType
from kohort.client.cluster import Cluster
from kohort.client.producer import Producer
from kohort.client.streams.events import (
    Assigned,
    Endpoint,
    EndpointPartitions,
    EndpointsChanged,
    Event,
    Lost,
    Revoked,
    RolesChanged,
    ShutdownRequested,
    StatusesChanged,
)
from kohort.client.streams_member import StreamsMember
from kohort.client.types import TopicInfo
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import Listener, Listeners, TasksNow
from kohort.spark.program.settings import AppSettings
from kohort.spark.runtime.activation import Activation, DanglingTransactions
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.dangling_transactions import end_own, transactional_id
from kohort.spark.runtime.end_offsets import EndOffsets
from kohort.spark.runtime.epoch_committer import EpochCommitter, Probe, unprobed
from kohort.spark.runtime.epoch_limit import LimitSettings
from kohort.spark.runtime.global_tables import GLOBALS, GlobalTables
from kohort.spark.runtime.local_task import LocalTask, tasks_now
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.reporting import Reporting, settings_of_group
from kohort.spark.runtime.subtopology_runner import Jobs, SubtopologyRunner
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.wait_reasons import Reasons, plain
from kohort.spark.state import ChangelogReader, StateDirectory
from kohort.streams.tasks import TaskId

log = logging.getLogger(__name__)

_STOP_WITHIN_S: Final = 30.0
_LOOK_S: Final = 1.0


class Instance:
    """Runs an application as a member of its group, until it is stopped or can't go on.

    Every task is seen to by itself: what is opened, moved or closed holds up nothing else.

    Args:
        blueprint: what to run.
        settings: how.
        make_jobs: the Spark jobs of a part by its id, or of `GLOBALS`; called in the thread that runs them.
        listener: told what happens.
        before_joining: checks that need the cluster.
        probe: called between the steps of epochs and of taking tasks on.

    Raises:
        StateDirectoryError: another process uses the state directory, or it can't be written.
    """

    def __init__(
        self,
        blueprint: ApplicationPlan,
        settings: AppSettings,
        make_jobs: Callable[[str], Jobs],
        *,
        listener: Listener | None = None,
        before_joining: Callable[[Admin], Awaitable[None]] | None = None,
        probe: Probe = unprobed,
    ) -> None:
        self.blueprint, self.settings = blueprint, settings
        self._make_jobs, self._before_joining, self._probe = make_jobs, before_joining, probe
        self._listener = Listeners([listener] if listener is not None else [])
        self.endpoint: Endpoint | None = None if settings.endpoint is None else Endpoint(*settings.endpoint)
        self._reasons = Reasons(self._listener.waiting)
        self.directory = StateDirectory(settings.state_dir, settings.application_id)
        self.stores = OpenStores(blueprint, self.directory)
        self.admin, self.cluster = Admin(settings.client), Cluster(settings.client)
        self.endpoints: Mapping[Endpoint, EndpointPartitions] = {}
        self.held: dict[TaskId, LocalTask] = {}
        self.lanes: dict[str, SubtopologyRunner] = {}
        self._stopped: dict[str, str] = {}
        self._told: TasksNow | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._globals: GlobalTables | None = None
        self._stop, self._failure = asyncio.Event(), None

    _failure: BaseException | None

    def lookup(self, store: str, partition: int | None, keys: pa.Array) -> pa.Array:
        """Values that stores have, for Spark's jobs: from any thread. Raises StateError."""
        return self.stores.lookup(store, partition, keys)

    def stop(self) -> None:
        """Finish the epochs that are under way, close the tasks, and leave the group. `run` returns then."""
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Whether it is to stop."""
        return self._stop.is_set()

    def tell(self, *listeners: Listener) -> None:
        """Tell these, too, what happens from now on."""
        self._listener.add(*listeners)

    def waits(self, source: str) -> Callable[[str | None], None]:
        """What whoever `source` is calls with its reason to wait, and with None when it goes on."""
        return self._reasons.of(source)

    # Life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until `stop`, or until another instance asks all to stop.

        Raises:
            ApplicationError: the application can't go on.
            KafkaError, ClientError: the group won't have it, or the cluster can't be reached at the start.
        """
        client, application_id = self.settings.client, self.blueprint.application_id
        process_id = self.directory.process_id
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.directory.close)
            await stack.enter_async_context(self.admin)
            await stack.enter_async_context(self.cluster)
            self.cluster.follow({topic for part in self.blueprint.parts.values() for topic in part.inputs.topics})
            if self._before_joining is not None:
                await self._before_joining(self.admin)
            if configs := settings_of_group(self.settings):
                await self.admin.configs.alter(ConfigResource(ResourceType.GROUP, application_id), set=configs)
            await end_own(self.admin, application_id, process_id)
            self._ends = EndOffsets(self.cluster, pause_ms=self.settings.poll_ms)
            stack.push_async_callback(self._ends.close)
            self.tailer = ChangelogReader(client, self._reasons.of("changelogs"))
            await stack.enter_async_context(self.tailer)
            self.member = StreamsMember(
                client,
                application_id,
                self.blueprint.topology,
                process_id=process_id,
                instance_id=self.settings.group_instance_id,
                rack_id=self.settings.rack_id,
                client_tags=self.settings.client_tags,
                user_endpoint=self.endpoint,
            )
            orphans = DanglingTransactions(self.admin, application_id, process_id)
            taking = Activation(
                self.blueprint, self.member, self.stores, self.tailer, self._ends, orphans, self._listener, self._probe
            )
            self.tasks = TaskManager(
                self, self.held, self.member, self.blueprint, self.stores, self.tailer, taking, self._reasons
            )
            reporting = Reporting(self, self._ends)
            await reporting.look_at_disk()
            self._globals = await self._begin_globals(stack)
            stack.push_async_callback(self.member.close)
            stack.push_async_callback(self._close_lanes)
            await self.member.start()
            self.spawn(reporting.run(), "reporting")
            self.spawn(self._look(), "looking")
            await self._live()
        if self._failure is not None:
            raise self._failure

    async def _live(self) -> None:
        """Do as the group says until it is over."""
        events = asyncio.create_task(self._follow_events(), name="kohort-events")
        stopping = asyncio.create_task(self._stop.wait(), name="kohort-stopping")
        try:
            await asyncio.wait([events, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not events.done():
                self._reasons.of("stopping")(None if self._failure is None else plain(self._failure))
                self.member.leave()
                await asyncio.wait([events], timeout=_STOP_WITHIN_S)
            if not events.done():
                log.warning(
                    "tasks can't be closed in good order; they are abandoned, and what isn't committed is aborted"
                )
            elif events.exception() is not None:
                self._failure = self._failure or events.exception()
        finally:
            for task in (events, stopping):
                task.cancel()
            await asyncio.wait([events, stopping])

    async def _begin_globals(self, stack: contextlib.AsyncExitStack) -> GlobalTables | None:
        if not self.blueprint.globals:
            return None
        tables = GlobalTables(
            self.blueprint.globals, lambda: self._make_jobs(GLOBALS), self.stores, self.cluster, self._ends,
            self._listener, self._reasons.of("globals"),
        )  # fmt: skip
        stack.push_async_callback(tables.close)
        following = self.spawn(self._until_failure(tables.run()), "globals")
        stack.push_async_callback(_ended, following)
        return tables

    async def _close_lanes(self) -> None:
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        await asyncio.gather(*(lane.close() for lane in self.lanes.values()))

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Do something beside the rest, until it is over or the instance ends. The application stops if it fails."""
        task = asyncio.create_task(work, name=f"kohort-{name}")
        self._running.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """The application can't go on: leave, so that `run` raises this."""
        if self._failure is None:
            self._failure = error
            log.error(
                "the application stops: %s", error, exc_info=None if isinstance(error, ApplicationError) else error
            )
            self._listener.failed(f"the application stops: {plain(error)}")
        self._stop.set()

    async def _look(self) -> None:
        """Have lanes know how far their inputs go, whatever they are at: so the lag is seen to grow if one hangs."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await asyncio.gather(*(lane.look() for lane in self.lanes.values()))

    async def _until_failure(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ApplicationError as error:
            self.fail(error)

    # Events ------------------------------------------------------------------------------------------------------

    async def _follow_events(self) -> None:
        async for event in self.member:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        match event:
            case Assigned(tasks):
                self.tasks.assigned(tasks)
            case Revoked(tasks):
                self.tasks.revoked(tasks)
            case Lost(tasks):
                log.warning("the group went on without this instance; it joins anew")
                self.tasks.lost(tasks)
            case RolesChanged(changed):
                self.tasks.changed(changed)
            case StatusesChanged(statuses):
                text = "; ".join(f"{_name(status.code)}: {status.detail}" for status in statuses)
                self._reasons.of("group")(f"the group says: {text}" if text else None)
            case EndpointsChanged(endpoints):
                self.endpoints = endpoints
            case ShutdownRequested(detail):
                log.warning("another instance asks that all stop: %s", detail)
        self.tell_tasks()

    # Lanes -------------------------------------------------------------------------------------------------------

    def lane(self, part: str) -> SubtopologyRunner:
        """The lane of a part, which is made if need be."""
        if part not in self.lanes:
            waiting = self._reasons.of(f"part {part}")
            settings = self.settings
            committer = EpochCommitter(
                lambda: Producer(
                    settings.client,
                    transactional_id=transactional_id(self.blueprint.application_id, self.directory.process_id, part),
                    transaction_timeout_ms=settings.transaction_timeout_ms,
                    compression_type="lz4",
                ),
                self.cluster,
                self.member,
                waiting,
                self._probe,
            )
            lane = self.lanes[part] = SubtopologyRunner(
                self.blueprint.parts[part],
                lambda: self._make_jobs(part),
                committer,
                self._ends,
                self.tasks.reopen,
                program=self.blueprint.fingerprint,
                listener=self._listener,
                waiting=waiting,
                opening=lambda: self.tasks.opening(part),
                limits=LimitSettings(
                    most_records=settings.max_epoch_records,
                    most_bytes=settings.max_epoch_bytes,
                    target_ms=settings.target_epoch_ms,
                ),
                prepared=None if self._globals is None else self._globals.loaded,
                probe=self._probe,
            )
            self.spawn(self._run_lane(lane), f"lane-{part}")
        return self.lanes[part]

    async def _run_lane(self, lane: SubtopologyRunner) -> None:
        try:
            await lane.run()
        except ApplicationError as error:
            self._stopped[lane.duties.part] = str(error)
            self.fail(error)

    # What is known -----------------------------------------------------------------------------------------------

    def tell_tasks(self) -> None:
        """Tell the listener which tasks there are, if that has changed."""
        now = tasks_now(time.time(), self.held.values(), self._stopped)
        if self._told is None or replace(self._told, at=now.at) != now:
            self._told = now
            self._listener.tasks(now)

    def known_topics(self) -> Mapping[str, TopicInfo]:
        """What is known of the topics that the tasks read."""
        return self.cluster.info.topics

    @property
    def globals_ready(self) -> bool:
        """Whether all global tables were loaded to their end."""
        return self._globals is None or self._globals.ready

    def positions(self) -> dict[Any, int]:
        """Where the tasks that run read on, by partition."""
        return {partition: at for lane in self.lanes.values() for partition, at in lane.positions().items()}


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _name(code: object) -> str:
    return getattr(code, "name", str(code))
