"""A consumer's coordinator connector: the asyncio shell around the state machine in `kohort.client.connector`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from kohort.client.connector.classic import ClassicMembership
from kohort.client.connector.delegate import Delegate
from kohort.client.connector.effects import Ask, Effect, Give, Learn, Resume, Seek, Suspend, Take, Tell
from kohort.client.connector.machine import Machine
from kohort.client.connector.membership import Membership
from kohort.client.connector.modern import ConsumerMembership, unsupported
from kohort.client.connector.settings import MembershipSettings, Subscription
from kohort.client.connector.table import Input, State
from kohort.client.errors import (
    ClientError,
    ClosedError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedError,
    kafka_error,
)
from kohort.client.group_offsets import GroupOffsets
from kohort.client.server_cluster_info import Changes, CoordinatorKind
from kohort.client.time_limit import time_limit_at
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError, ProtocolError
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from kohort.client.cluster import Cluster
    from kohort.client.connection import Connection

__all__ = ["CoordinatorConnector", "Delegate", "MembershipSettings", "Subscription"]

log = logging.getLogger("kohort.client.coordinator_connector")

_LANE: Final = "coordinator"
_ASIDE: Final = "offsets"
"""Another lane to the same broker, for while it holds a join back and with it whatever stands behind it."""

_AWAY_MS: Final = 1_000
"""How often to look whether the user is back, if nobody says so."""

_LAST_WORD_MS: Final = 1_000
"""Of the time to close, what's kept for telling the coordinator."""


class CoordinatorConnector:
    """Keeps a member in its group, over a socket of its own to the group's coordinator.

    Args:
        cluster: started; the connector asks it for the coordinator and for topics (`follow`), and doesn't close it.
        settings: who the member is.
        delegate: who consumes.
    """

    def __init__(self, cluster: Cluster, settings: MembershipSettings, delegate: Delegate) -> None:
        self._cluster = cluster
        self._settings = settings
        self._delegate = delegate
        self._membership: Membership = (
            ClassicMembership(settings, cluster.info)
            if settings.group_protocol == "classic"
            else ConsumerMembership(settings, cluster.info, str(uuid4()))
        )
        self._machine = Machine(settings, self._membership)
        self._offsets = GroupOffsets(cluster, settings, self)
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._backoff = cluster.backoff()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seeking: asyncio.Task[None] | None = None
        self._worker: asyncio.Task[None] | None = None
        self._dismissed = False
        self._work: asyncio.Queue[Give | Take] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._answered = asyncio.Event()
        self._out = asyncio.Event()
        self._out.set()
        self._names_known = False
        self._unlisten = cluster.on_change(self._changed)
        self._closed = False

    # What the consumer asks ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin: if there's a subscription, look for the coordinator and join. Returns at once."""
        self.subscription_changed()

    async def close(self, *, leave: bool = True, timeout_ms: int = 30_000) -> None:
        """Give up all partitions (`Delegate.revoke`), leave the group and stop, within `timeout_ms`.

        Static members don't leave, so they may come back within the session timeout without a rebalance. With
        `leave=False` nobody does, and the group waits for the session's end.
        """
        if self._closed:
            return
        deadline = self._loop.time() + timeout_ms / 1000
        try:
            self._perform(self._machine.leave(self._now(), quietly=not leave))
            if not await self._until_out(deadline - min(_LAST_WORD_MS, timeout_ms / 4) / 1000):
                # The consumer doesn't get done. Its partitions are given up without it.
                await self._end(self._worker)
                self._perform(self._machine.done(Input.PARTED, self._machine.owned, self._now()))
                await self._until_out(deadline)
        finally:
            self._closed = True
            self._unlisten()
            if self._timer is not None:
                self._timer.cancel()
            await self._end(self._worker, self._seeking, *self._tasks)

    def subscription_changed(self) -> None:
        """`Delegate.subscription` says something new: join, tell the group, or (empty) leave.

        Raises:
            ConfigError: the pattern isn't a regular expression.
        """
        subscription = self._delegate.subscription()
        if subscription.pattern is not None:
            if self._settings.group_protocol == "classic":
                subscription.matched(())
            self._cluster.follow_all()
        else:
            self._cluster.follow(subscription.topics)
        self._perform(self._machine.subscribe(subscription, self._now()))

    def heard(self) -> None:
        """The user asks for records, after `max_poll_interval_ms` had passed: join again. Cheap, if they hadn't."""
        if self._machine.state is State.AWAY:
            self._perform([])

    @property
    def state(self) -> State:
        """Where the member stands."""
        return self._machine.state

    @property
    def failed(self) -> Exception | None:
        """Why the member is out of its group for good, until the subscription changes."""
        return self._machine.error if self._machine.state is State.FAILED else None

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions the member has, without those it's giving up."""
        return self._machine.owned - self._machine.giving

    def group_metadata(self) -> GroupMetadata:
        """Who the member is to its group now; generation -1 and no member id if it isn't one."""
        generation = self._membership.generation
        member_id = self._membership.member_id if generation >= 0 else ""
        return GroupMetadata(self._settings.group_id, generation, member_id, self._settings.group_instance_id)

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, Exception]:
        """Commit offsets for the group; those of partitions that failed come back with what went wrong.

        What can be tried again is, until the time is up (`RequestTimeoutError`). Works without a membership, too.

        Raises:
            CommitFailedError: the group has moved on: the member no longer has these partitions.
            FencedError: another has this member's group instance id.
            KafkaError: the group as a whole refuses, as for want of authorization.
            RequestTimeoutError: the coordinator couldn't be asked, or wasn't ready, in the time allowed.
        """
        return await self._offsets.commit(offsets, timeout_ms)

    async def committed(
        self, partitions: Collection[TopicPartition], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offsets; None where there's none. Waits for open transactions to end (KIP-447).

        Raises:
            FencedError, KafkaError, RequestTimeoutError: as `commit`.
        """
        return await self._offsets.committed(partitions, timeout_ms)

    # What has to be known to commit -------------------------------------------------------------------------------

    def holds(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the member has these partitions, or is none and may commit what it likes."""
        if self._machine.state is State.OUT:
            return True
        return self._membership.generation >= 0 and self._machine.owned.issuperset(partitions)

    async def moved_on(self, generation: int) -> bool:
        """Wait for the next answer of the coordinator; whether the member has another generation or epoch then."""
        if self._machine.state is not State.OUT and self._membership.generation == generation:
            self._answered.clear()
            await self._answered.wait()
        return self._membership.generation not in (generation, -1)

    @property
    def lane(self) -> str:
        """The lane to ask on: the connector's, unless answers there wait for other members."""
        return _ASIDE if self._machine.waiting else _LANE

    # The machine's effects ----------------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._loop.time() * 1000)

    def _perform(self, effects: list[Effect]) -> None:
        """Carry out what the machine wants, and what it wants next, for the time has come."""
        while True:
            for effect in effects:
                self._perform_one(effect)
            if self._closed:
                return
            user_heard = self._delegate.user_heard()
            effects = self._machine.tick(self._now(), user_heard)
            if not effects:
                break
        if self._machine.state is State.OUT:
            self._out.set()
        else:
            self._out.clear()
        self._set_timer(user_heard)

    def _set_timer(self, user_heard: int) -> None:
        due = self._machine.next_tick(user_heard)
        if due is None and self._machine.state is State.AWAY:
            due = self._now() + _AWAY_MS
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._loop.call_at(due / 1000 + 0.001, self._perform, [])

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case Suspend():
                self._delegate.suspend()
            case Resume():
                self._delegate.resume()
            case Tell(error):
                log.warning("group %s: %s", self._settings.group_id, error)
                self._delegate.failed(error)
            case Give() | Take():
                self._work.put_nowait(effect)
                if self._worker is None or self._worker.done():
                    self._worker = self._loop.create_task(self._let_work(), name="kohort-rebalance")
            case Seek():
                if self._seeking is not None:
                    self._seeking.cancel()
                self._seeking = self._begin(self._seek(effect))
            case Ask():
                self._begin(self._ask(effect))
            case Learn():
                self._begin(self._learn(effect))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        """What nobody foresaw must not leave the member waiting for ever."""
        try:
            await work
        except Exception as error:
            log.exception("group %s", self._settings.group_id)
            self._perform(self._machine.refused(error, self._now()))

    async def _let_work(self) -> None:
        """Have the consumer give and take, one thing at a time, in order."""
        while not self._work.empty():
            effect = self._work.get_nowait()
            try:
                if isinstance(effect, Take):
                    await self._delegate.assign(effect.added, effect.assigned)
                elif effect.partitions:
                    await self._delegate.revoke(effect.partitions, lost=effect.lost)
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
                if cancelled or self._dismissed:
                    raise
                # Whatever a user's callback raises is the user's to see, be it that what it waited for was cancelled.
                self._delegate.failed(error if isinstance(error, Exception) else ClientError(f"callback: {error!r}"))
            if isinstance(effect, Take):
                self._perform(self._machine.done(Input.ASSIGNED, effect.added, self._now()))
            else:
                self._perform(self._machine.done(effect.done, effect.partitions, self._now()))

    async def _seek(self, effect: Seek) -> None:
        """Find the coordinator and open the channel, however long it takes; after failures, not at once."""
        failures, pause = self._backoff.attempts, self._backoff.next()
        if effect.lost:
            self._cluster.forget_coordinator(CoordinatorKind.GROUP, self._settings.group_id)
            lost, self._connection = self._connection, None
            if lost is not None:
                await lost.close()
        if failures:
            await asyncio.sleep(pause / 1000)
        while True:
            try:
                if self._membership.subscription.pattern is not None and not self._names_known:
                    # A pattern needs topics to match.
                    await self._cluster.refresh()
                    self._names_known = True
                self._connection = await self._cluster.coordinator_connection(
                    CoordinatorKind.GROUP, self._settings.group_id, _LANE
                )
                break
            except (ConnectionLostError, RequestTimeoutError) as error:
                log.info("group %s: %s", self._settings.group_id, error)
            except ClosedError:
                return
            except KafkaError as error:
                if not error.code.retriable:
                    self._perform(self._machine.refused(error, self._now()))
                    return
            except ClientError as error:
                self._perform(self._machine.refused(error, self._now()))
                return
            await asyncio.sleep(self._backoff.next() / 1000)
        self._perform(self._machine.found(effect.search, self._now()))

    async def _ask(self, effect: Ask) -> None:
        if effect.again:
            await asyncio.sleep(self._backoff.next() / 1000)
            if effect.turn != self._machine.turn:
                return
        call = effect.call
        try:
            connection = self._connection
            if effect.aside:
                connection = await self._cluster.coordinator_connection(
                    CoordinatorKind.GROUP, self._settings.group_id, _ASIDE
                )
            if connection is None or connection.closed:
                raise ConnectionLostError("the connection to the coordinator is lost")
            response = await connection.ask(call.request, call.response, timeout_ms=call.timeout_ms)
        except (ClientError, KafkaError, ProtocolError) as error:
            why = self._explained(error, call.request)
            log.info("group %s: %s: %s", self._settings.group_id, call.request.__message__.api, why)
            self._perform(self._machine.unanswered(effect.turn, why, self._now()))
        else:
            if code := getattr(response, "error_code", 0):
                api = call.request.__message__.api
                log.info("group %s: %s was answered with %s", self._settings.group_id, api, kafka_error(code))
            else:
                self._backoff.reset()
            self._perform(self._machine.answered(effect.turn, call.request, response, self._now()))
            if self._membership.unresolved:
                self._cluster.request_refresh()
        self._answered.set()

    def _explained(self, error: Exception, request: object) -> Exception:
        if isinstance(error, KafkaError) and error.code.retriable:
            return ConnectionLostError(f"the coordinator can't be found: {error}")
        if isinstance(error, UnsupportedError) and isinstance(request, ConsumerGroupHeartbeatRequest):
            return unsupported(str(error))
        if isinstance(error, ProtocolError):
            return UnsupportedError(f"the broker is too old for what is asked of it: {error}")
        return error

    async def _learn(self, effect: Learn) -> None:
        self._cluster.follow(effect.topics)
        try:
            if not self._cluster.info.topics.keys() >= effect.topics:
                await self._cluster.refresh()
        except ClientError as error:
            self._perform(self._machine.unanswered(effect.turn, error, self._now()))
        else:
            self._perform(self._machine.learned(effect.turn, self._now()))

    def _changed(self, changes: Changes) -> None:
        self._perform(self._machine.noticed(self._now()))

    # The end ------------------------------------------------------------------------------------------------------

    async def _until_out(self, deadline: float) -> bool:
        try:
            async with time_limit_at(deadline):
                await self._out.wait()
        except TimeoutError:
            return False
        return True

    async def _end(self, *tasks: asyncio.Task[None] | None) -> None:
        alive = [task for task in tasks if task is not None and task is not asyncio.current_task() and not task.done()]
        for task in alive:
            self._dismissed = self._dismissed or task is self._worker
            task.cancel()
        await asyncio.gather(*alive, return_exceptions=True)
