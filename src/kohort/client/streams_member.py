"""A member of a streams group (KIP-1071): the asyncio shell around `kohort.client.streams`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Collection, Mapping
from typing import Final, Self

from kohort.client.cluster import Cluster
from kohort.client.config import Servers
from kohort.client.errors import (
    ClientError,
    ClosedError,
    CommitFailedError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedError,
)
from kohort.client.heartbeat_errors import Reaction
from kohort.client.lifecycle import Lifecycle
from kohort.client.member_offsets import MemberOffsets
from kohort.client.membership.settings import MembershipSettings
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.streams.committing_member import CommittingStreamsMember
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
from kohort.client.streams.heartbeat_errors import HEARTBEAT_ERRORS
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State
from kohort.client.time_limit import time_limit
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology, TopologyError

__all__ = [
    "Assigned", "Endpoint", "EndpointPartitions", "EndpointsChanged", "Event", "InternalTopic", "Lost", "Revoked",
    "Role", "RolesChanged", "ShutdownRequested", "State", "Status", "StatusCode", "StatusesChanged", "StreamsMember",
    "Subtopology", "TaskId", "Topology", "TopologyError",
]  # fmt: skip

log = logging.getLogger(__name__)

_GROUP: Final = CoordinatorKind.GROUP
_NEWS: Final = "news"
"""The purpose of the connection on which heartbeats are held, and all that is sent after them would be, too."""
_LEAVE_WITHIN_MS: Final = 5_000  # that others get the tasks sooner is not worth waiting longer


class StreamsMember(Lifecycle):
    """A member of a streams group: the group assigns it tasks, and the application runs them.

        topology = Topology({"0": Subtopology(source_topics=["lines"])})
        async with StreamsMember("localhost:9092", "app", topology) as member:
            async for event in member:
                match event:
                    case Assigned(tasks): ...
                    case Revoked(tasks) | Lost(tasks):
                        ...
                        member.closed(*tasks)

    Heartbeats go on by themselves, in the event loop, from `start` to `close`: an application whose work blocks the
    loop loses its tasks. Nothing here is for other threads. The events are for one reader; each is made when it is
    asked for, so an application that was busy gets none that is out of date.

    Args:
        servers: addresses or a configuration.
        group_id: the group, which is the application's id.
        topology: what the application is made of; the same for all members.
        process_id: of the process that it runs in: members with the same one share a disk, and never have copies of
            one task twice. By default the member is alone in its process.
        instance_id: makes it a static member, which comes back to its tasks. Apache Kafka takes these since 4.4.
        rack_id: the rack that it runs in; by default the configuration's `client_rack`.
        client_tags: over which standbys are spread: `{"zone": "eu-1a"}`.
        user_endpoint: host and port where the application answers queries.
        rebalance_timeout_ms: how long it may take to close revoked tasks before the group fences it.
        disconnect_timeout_ms: how long its connection may be broken before the group fences it, where the broker is
            `kohort serve`: the tasks of a process that is killed are others' then. By default, and with other brokers,
            they are when its session ends.
        held_heartbeats: whether such a broker tells it at once what changes, over a connection of its own; otherwise it
            hears of that with its next heartbeat.

    Raises:
        ConfigError: a value that can't be, or a topology that no group can run.
    """

    def __init__(
        self,
        servers: Servers,
        group_id: str,
        topology: Topology,
        *,
        process_id: str | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_tags: Mapping[str, str] | None = None,
        user_endpoint: tuple[str, int] | None = None,
        rebalance_timeout_ms: int = 300_000,
        disconnect_timeout_ms: int | None = None,
        held_heartbeats: bool = False,
    ) -> None:
        self._cluster = Cluster(servers)
        config = self._cluster.config
        settings = MemberSettings(
            group_id=group_id,
            topology=topology,
            member_id=str(uuid.uuid4()),
            process_id=str(uuid.uuid4()) if process_id is None else process_id,
            instance_id=instance_id,
            rack_id=rack_id or config.client_rack or None,
            client_tags=dict(client_tags or {}),
            user_endpoint=None if user_endpoint is None else Endpoint(*user_endpoint),
            rebalance_timeout_ms=rebalance_timeout_ms,
            disconnect_timeout_ms=disconnect_timeout_ms,
            held_heartbeats=held_heartbeats,
        )
        self._membership = StreamsMembershipManager(settings, self._cluster.backoff(), leave_within_ms=_LEAVE_WITHIN_MS)
        self._offsets = MemberOffsets(
            self._cluster,
            MembershipSettings(
                group_id=group_id,
                group_instance_id=instance_id,
                group_protocol="consumer",  # offsets are committed and looked up in the same way
                request_timeout_ms=config.request_timeout_ms,
            ),
            CommittingStreamsMember(self._membership, self._heartbeat_now),
        )
        self._runner: asyncio.Task[None] | None = None
        self._response_received = asyncio.Event()  # the coordinator has responded, or never will
        self._wake_up = asyncio.Event()  # there may be something to send
        self._watch_wake_up = asyncio.Event()  # there may be news to ask for
        self._event_ready = asyncio.Event()  # there may be an event
        self._closed = False

    # Life ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, and begin to join the group.

        Raises:
            NoBrokerError: none answered within `bootstrap_timeout_ms`.
            AuthenticationError, UnsupportedError: a broker was reached, but it won't do.
            ClosedError: it was closed before.
        """
        if self._closed:
            raise ClosedError("the member is closed")
        if self._runner is None:
            await self._cluster.start()
            self._membership.begin(self._now())
            self._runner = asyncio.create_task(self._run(), name="kohort-streams-member")

    def leave(self, *, for_good: bool = False) -> None:
        """Revoke all tasks, and leave the group when they are closed. The events end after that.

        A static member leaves for a while, and its tasks wait for it until its session timeout, unless `for_good`.
        """
        self._membership.stop(self._now(), for_good=for_good)
        self._wake_all()

    async def close(self, *, for_good: bool = False, timeout_ms: int = _LEAVE_WITHIN_MS) -> None:
        """Leave the group now, and disconnect. Close the tasks first (`leave` revokes them): others get them.

        Args:
            for_good: of a static member: its tasks don't wait for it.
            timeout_ms: how long it may take to tell the group; if it fails, the session timeout ends the membership.
        """
        self._closed = True
        runner, self._runner = self._runner, None
        try:
            if runner is not None:
                self._membership.quit(self._now(), for_good=for_good)
                self._wake_all()
                await asyncio.wait([runner], timeout=timeout_ms / 1000)
        finally:
            if runner is not None:
                runner.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await runner
            self._membership.abandon(self._now())
            await self._cluster.close()
            self._wake_all()

    # Events ----------------------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next_event(self, timeout_ms: int | None = None) -> Event | None:
        """The next event; None if none came in time, or when the member has left (`ended`).

        Raises:
            Exception: why the member failed, after `Lost`: a `KafkaError` of the group, or a `ClientError`.
        """
        try:
            async with time_limit(None if timeout_ms is None else timeout_ms / 1000):
                while True:
                    self._event_ready.clear()
                    if (event := self._membership.next_event(self._now())) is not None:
                        self._wake_up.set()
                        return event
                    if self._membership.state is State.FAILED and self._membership.error is not None:
                        raise self._membership.error
                    if self._membership.ended:
                        return None
                    await self._event_ready.wait()
        except TimeoutError:
            return None

    # Reports ---------------------------------------------------------------------------------------------------

    def closed(self, *tasks: TaskId) -> None:
        """These tasks are closed, after `Revoked` or `Lost`; or run no longer, after `RolesChanged` from active.

        All at once or one by one: other members may run them from then on. Commit first.

        Raises:
            ValueError: a task is neither revoked nor lost.
        """
        self._membership.closed(list(tasks), self._now())
        self._wake_all()

    def report_offsets(self, offsets: Mapping[TaskId, int], end_offsets: Mapping[TaskId, int]) -> None:
        """How far copies of tasks' state are: standbys, warm-ups, active tasks being restored, state on the disk.

        Each call replaces the one before. Call it as often as you like, and before `start` for what the disk has. The
        group gets a report every `task_offset_interval_ms`, and at once when a warm-up has caught up.

        Args:
            offsets: the sum of the offsets that the task's stores have, over its changelogs.
            end_offsets: the sum of the changelogs' ends.
        """
        self._membership.offsets.update(offsets, end_offsets)
        self._wake_up.set()

    def shutdown_application(self) -> None:
        """Ask that all members of the group stop; this one gets `ShutdownRequested`, too."""
        self._membership.shut_application_down()
        self._wake_up.set()

    async def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], *, timeout_ms: int = 60_000
    ) -> None:
        """Commit how far tasks have read their partitions: the offsets of the next records. Without transactions.

        Raises:
            CommitFailedError: the member doesn't run these tasks (any more).
            KafkaError: the broker refused one of the offsets; the others are committed.
            RequestTimeoutError: the coordinator couldn't be reached, or wasn't ready, within the timeout.
        """
        given = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        try:
            failed = await self._offsets.commit(given, timeout_ms)
        except CommitFailedError as error:
            group_id = self._membership.settings.group_id
            raise CommitFailedError(
                f"group {group_id!r}: the member doesn't run these tasks any more; the one that does reads again what "
                "wasn't committed"
            ) from error.__cause__
        if failed:
            raise next(iter(failed.values()))

    async def committed(
        self, partitions: Collection[TopicPartition], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets, None where there is none. Waits for open transactions (KIP-447).

        Raises:
            KafkaError: the broker refused.
            RequestTimeoutError: the coordinator couldn't be reached, or wasn't ready, within the timeout.
        """
        return await self._offsets.committed(partitions, timeout_ms)

    # State -----------------------------------------------------------------------------------------------------

    def group_metadata(self) -> GroupMetadata:
        """The member's id and epoch, as transactions and commits need them. Ask again for each: epochs change.

        A commit with an old epoch is refused (STALE_MEMBER_EPOCH); if the task is still the member's, it can be tried
        again with the new one.
        """
        return self._membership.group_metadata()

    @property
    def member_id(self) -> str:
        """Its id in the group."""
        return self._membership.settings.member_id

    @property
    def state(self) -> State:
        """The member's state."""
        return self._membership.state

    @property
    def ended(self) -> bool:
        """Whether it has left the group, or failed."""
        return self._membership.ended

    @property
    def tasks(self) -> dict[TaskId, Role]:
        """The tasks that the application was assigned and hasn't closed."""
        return dict(self._membership.tasks.current)

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The group's statuses."""
        return self._membership.statuses

    @property
    def endpoints(self) -> dict[Endpoint, EndpointPartitions]:
        """The partitions of each instance, by endpoint."""
        return dict(self._membership.endpoints)

    @property
    def acceptable_recovery_lag(self) -> int:
        """Records that a copy may lack and still be good enough to take its task over."""
        return self._membership.offsets.acceptable_lag

    @property
    def task_offset_interval_ms(self) -> int:
        """How often the group wants a report of offsets."""
        return self._membership.offsets.interval_ms

    # Heartbeats ------------------------------------------------------------------------------------------------

    @staticmethod
    def _now() -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def _wake_all(self) -> None:
        self._wake_up.set()
        self._event_ready.set()

    def _heartbeat_soon(self) -> None:
        """Sends a heartbeat soon, such as over a new connection when the old one has ended."""
        self._membership.heartbeat_soon(self._now())
        self._wake_up.set()

    async def _heartbeat_now(self) -> None:
        """Sends a heartbeat soon, and waits for its response."""
        self._response_received.clear()
        self._heartbeat_soon()
        await self._response_received.wait()

    async def _run(self) -> None:
        """Sends heartbeats until the member has left or failed."""
        membership = self._membership
        watch = asyncio.create_task(self._watch(), name="kohort-streams-news")
        watch.add_done_callback(self._watch_ended)
        try:
            while not membership.ended:
                self._wake_up.clear()
                due = membership.due_at
                if due is not None and due <= self._now():
                    await self._heartbeat()
                    self._response_received.set()
                    self._event_ready.set()
                    self._watch_wake_up.set()
                else:
                    await self._wait(self._wake_up, due)
        except Exception as error:
            log.exception("%s failed", membership)
            membership.fail(error, self._now())
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            self._response_received.set()
            self._event_ready.set()

    def _watch_ended(self, watch: asyncio.Task[None]) -> None:
        if not watch.cancelled() and (error := watch.exception()) is not None:
            log.error("%s hears of no news any more", self._membership, exc_info=error)

    async def _wait(self, wake_up: asyncio.Event, due: int | None) -> None:
        """Waits until something is due, or may be."""
        with contextlib.suppress(TimeoutError):
            async with time_limit(None if due is None else (due - self._now()) / 1000):
                await wake_up.wait()

    async def _watch(self) -> None:
        """Asks for news, over a connection of its own, where the coordinator holds such heartbeats."""
        membership = self._membership
        while True:
            self._watch_wake_up.clear()
            due = membership.news_due_at
            if due is None or due > self._now():
                await self._wait(self._watch_wake_up, due)
                continue
            try:
                connection = await self._cluster.coordinator_connection(_GROUP, membership.settings.group_id, _NEWS)
                request = membership.news_request()
                version = connection.version(StreamsGroupHeartbeatRequest)
                response = await connection.ask(request, StreamsGroupHeartbeatResponse, version=version)
            except (ClientError, KafkaError) as error:
                log.info("%s: no heartbeat is held: %s", membership, error)
                membership.on_news_failure(self._now())
            else:
                membership.on_news(response, self._now())
            self._wake_up.set()

    async def _heartbeat(self) -> None:
        """Sends the heartbeat that is due, and applies its response."""
        membership, group_id = self._membership, self._membership.settings.group_id
        try:
            connection = await self._cluster.coordinator_connection(_GROUP, group_id)
            if membership.settings.disconnect_timeout_ms is not None:
                connection.on_ended.add(self._heartbeat_soon)
            version = connection.version(StreamsGroupHeartbeatRequest)
            request = membership.request(self._now(), version)
            response = await connection.ask(request, StreamsGroupHeartbeatResponse, version=version)
        except (ConnectionLostError, RequestTimeoutError) as error:
            log.info("%s: %s; trying again", membership, error)
            self._cluster.forget_coordinator(_GROUP, group_id)
            membership.on_failure(self._now())
            return
        except KafkaError as error:
            if error.code.retriable:
                membership.on_failure(self._now())
            else:
                membership.fail(HEARTBEAT_ERRORS.fatal_error(error.code, error.detail), self._now())
            return
        except UnsupportedError as error:
            membership.fail(HEARTBEAT_ERRORS.fatal_error(ErrorCode.UNSUPPORTED_VERSION, str(error)), self._now())
            return
        except ClientError as error:
            membership.fail(error, self._now())
            return
        try:
            if membership.on_response(response, self._now()) is Reaction.FIND_COORDINATOR:
                self._cluster.forget_coordinator(_GROUP, group_id)
        except ValueError as error:
            log.warning("%s: %s: a response that makes no sense: %s", membership, connection.broker, error)
            await connection.close()
