"""A member of a streams group (KIP-1071): the asyncio shell around `kohort.client.streams`."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Collection, Mapping
from typing import Final, Self

from kohort.client.cluster import Cluster
from kohort.client.config import Servers
from kohort.client.errors import ClosedError, CommitFailedError, ConfigError
from kohort.client.lifecycle import Lifecycle
from kohort.client.member_offsets import MemberOffsets
from kohort.client.membership.settings import MembershipSettings
from kohort.client.streams.classic.settings import ClassicSettings
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
from kohort.client.streams.membership import StreamsMembership
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import GroupProtocol, MemberSettings
from kohort.client.streams.transitions import State
from kohort.client.streams_group_protocol import choose_group_protocol
from kohort.client.streams_member_loop import StreamsMemberLoop, now_ms
from kohort.client.streams_member_news import StreamsMemberNews
from kohort.client.time_limit import time_limit
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology, TopologyError

__all__ = [
    "Assigned", "ClassicSettings", "Endpoint", "EndpointPartitions", "EndpointsChanged", "Event", "InternalTopic",
    "Lost", "Revoked", "Role", "RolesChanged", "ShutdownRequested", "State", "Status", "StatusCode",
    "StatusesChanged", "StreamsMember", "Subtopology", "TaskId", "Topology", "TopologyError",
]  # fmt: skip

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
        rebalance_timeout_ms: how long it may take to close revoked tasks before the group fences it; in a classic
            group, how long the others wait for the member to join again.
        group_protocol: "streams"; or "classic", on brokers that have no streams groups: then one of the members places
            the tasks; or "auto": a streams group where the brokers have them, and the group isn't a classic one with
            members. All members of a group have the same one.
        classic: what in a streams group is the group's configuration.
        disconnect_timeout_ms: how long its connection may be broken before the group fences it, where the broker is
            `kohort serve`: the tasks of a process that is killed are others' then. By default, with other brokers, and
            in a classic group, they are when its session ends.
        held_heartbeats: whether such a broker tells it at once what changes, over a connection of its own; otherwise,
            and in a classic group, it hears of that with its next heartbeat.

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
        group_protocol: GroupProtocol = "streams",
        classic: ClassicSettings | None = None,
        disconnect_timeout_ms: int | None = None,
        held_heartbeats: bool = False,
    ) -> None:
        if group_protocol not in ("streams", "classic", "auto"):
            raise ConfigError(f'group_protocol={group_protocol!r} should be "streams", "classic" or "auto"')
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
        self._settings, self._group_protocol = settings, group_protocol
        self._classic = ClassicSettings() if classic is None else classic
        self._event_ready = asyncio.Event()  # there may be an event
        self._use("classic" if group_protocol == "classic" else "streams")
        self._runner: asyncio.Task[None] | None = None
        self._closed = False

    def _use(self, protocol: str) -> None:
        """Becomes a member by a protocol; nothing has been sent yet."""
        cluster, settings = self._cluster, self._settings
        self._membership: StreamsMembership
        if protocol == "classic":
            # Placement is much to load, and members of streams groups don't need it.
            from kohort.client.streams.classic.membership import ClassicMembership
            from kohort.client.streams_group_leader import StreamsGroupLeader

            self._membership = member = ClassicMembership(
                settings, cluster.backoff(), self._classic, leave_within_ms=_LEAVE_WITHIN_MS
            )
            self._loop = StreamsMemberLoop(cluster, member, self._event_ready.set)
            self._loop.leader = StreamsGroupLeader(cluster, member, self._classic, rebalance_wanted=self._loop.wake)
        else:
            self._membership = manager = StreamsMembershipManager(
                settings, cluster.backoff(), leave_within_ms=_LEAVE_WITHIN_MS
            )
            self._loop = StreamsMemberLoop(cluster, manager, self._event_ready.set)
            self._loop.news = StreamsMemberNews(cluster, manager, now_ms=now_ms, changed=self._loop.wake)
        self._offsets = MemberOffsets(
            cluster,
            MembershipSettings(
                group_id=settings.group_id,
                group_instance_id=settings.instance_id,
                # Offsets of streams groups are committed and looked up as those of consumer groups.
                group_protocol="classic" if protocol == "classic" else "consumer",
                request_timeout_ms=cluster.config.request_timeout_ms,
            ),
            CommittingStreamsMember(self._membership, self._loop.heartbeat_now),
        )

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
            if self._group_protocol == "auto" and self._membership.state is State.UNJOINED:
                await self._choose_protocol()
            self._membership.begin(self._now())
            self._runner = asyncio.create_task(self._loop.run(), name="kohort-streams-member")

    async def _choose_protocol(self) -> None:
        if await choose_group_protocol(self._cluster, self._settings.group_id) == "classic":
            reported = self._membership.offsets
            self._use("classic")
            self._membership.offsets = reported

    def leave(self, *, for_good: bool = False) -> None:
        """Revoke all tasks, and leave the group when they are closed. The events end after that.

        A static member leaves for a while, and its tasks wait for it until its session timeout, unless `for_good`.
        """
        self._membership.stop(self._now(), for_good=for_good)
        self._wake_all()

    async def close(self, *, for_good: bool = False, timeout_ms: int | None = None) -> None:
        """Leave the group now, and disconnect. Close the tasks first (`leave` revokes them): others get them.

        Args:
            for_good: of a static member: its tasks don't wait for it.
            timeout_ms: how long it may take to tell the group; if it fails, the session timeout ends the membership. By
                default 5 s, and in a classic group that is to stop as a whole as much longer as that takes.
        """
        self._closed = True
        runner, self._runner = self._runner, None
        try:
            if runner is not None:
                self._membership.quit(self._now(), for_good=for_good)
                self._wake_all()
                if timeout_ms is None:
                    timeout_ms = max(_LEAVE_WITHIN_MS, self._membership.leave_by - self._now())
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
                        self._loop.wake()
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
        group gets a report every `task_offset_interval_ms`, and at once when a warm-up has caught up, and when the
        restore of an active task begins or is done; a classic group gets one when the member joins again.

        Args:
            offsets: the sum of the offsets that the task's stores have, over its changelogs.
            end_offsets: the sum of the changelogs' ends.
        """
        self._membership.offsets.update(offsets, end_offsets)
        self._loop.wake()

    def shutdown_application(self) -> None:
        """Ask that all members of the group stop; this one gets `ShutdownRequested`, too.

        In a classic group, a `leave` or a `close` after it waits until the group knows.
        """
        self._membership.shut_application_down()
        self._loop.wake()

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
        return self._membership.member_id

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

    # Requests --------------------------------------------------------------------------------------------------

    @staticmethod
    def _now() -> int:
        return now_ms()

    def _wake_all(self) -> None:
        self._loop.wake()
        self._event_ready.set()
