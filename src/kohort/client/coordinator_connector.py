"""A consumer's connection to its group's coordinator: the asyncio shell around `kohort.client.membership`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from kohort.client.errors import (
    ClientError,
    ClosedError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedError,
    kafka_error,
)
from kohort.client.member_offsets import MemberOffsets
from kohort.client.membership.classic_group_protocol import ClassicGroupProtocol
from kohort.client.membership.consumer_group_protocol import ConsumerGroupProtocol, unsupported
from kohort.client.membership.delegate import Delegate
from kohort.client.membership.effects import (
    Assign,
    Effect,
    FetchMetadata,
    FindCoordinator,
    RaiseError,
    Resume,
    Revoke,
    SendRequest,
    Suspend,
)
from kohort.client.membership.group_protocol import GroupProtocol
from kohort.client.membership.member_states import EventType, State
from kohort.client.membership.settings import MembershipSettings, Subscription
from kohort.client.membership.state_machine import MemberStateMachine
from kohort.client.server_cluster_info import Changes, CoordinatorKind
from kohort.client.time_limit import time_limit_at
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from kohort.client.cluster import Cluster
    from kohort.client.connection import Connection

__all__ = ["CoordinatorConnector", "Delegate", "MembershipSettings", "Subscription"]

log = logging.getLogger("kohort.client.coordinator_connector")

_PURPOSE: Final = "coordinator"
_OFFSETS_PURPOSE: Final = "offsets"
"""Another connection to the same broker, while the first one waits for a join, and so would all that is sent after."""

_STALE_CHECK_MS: Final = 1_000
"""How often to look whether the user polls again, if nothing says so."""

_LEAVE_MS: Final = 1_000
"""How much of the time to close is kept for telling the coordinator."""


class CoordinatorConnector:
    """Keeps a member in its group, over a socket of its own to the group's coordinator.

    Args:
        cluster: started; the connector asks it for the coordinator and for topics (`follow`), and doesn't close it.
        settings: the member's.
        delegate: the consumer.
    """

    def __init__(self, cluster: Cluster, settings: MembershipSettings, delegate: Delegate) -> None:
        self._cluster = cluster
        self._settings = settings
        self._delegate = delegate
        self._protocol: GroupProtocol = (
            ClassicGroupProtocol(settings, cluster.info)
            if settings.group_protocol == "classic"
            else ConsumerGroupProtocol(settings, cluster.info, str(uuid4()))
        )
        self._machine = MemberStateMachine(settings, self._protocol)
        self._offsets = MemberOffsets(cluster, settings, self, self._offsets_purpose)
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._backoff = cluster.backoff()
        self._tasks: set[asyncio.Task[None]] = set()
        self._search: asyncio.Task[None] | None = None
        self._rebalancing: asyncio.Task[None] | None = None
        self._rebalance_cancelled = False
        self._rebalance_steps: asyncio.Queue[Revoke | Assign] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._responded = asyncio.Event()
        self._unsubscribed = asyncio.Event()
        self._unsubscribed.set()
        self._topics_known = False
        self._stop_listening = cluster.on_change(self._cluster_changed)
        self._closed = False

    # For the consumer ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts to look for the coordinator and to join, if there's a subscription. Returns at once."""
        self.subscription_changed()

    async def close(self, *, leave: bool = True, timeout_ms: int = 30_000) -> None:
        """Revokes all partitions (`Delegate.revoke`), leaves the group and stops, within `timeout_ms`.

        Static members don't leave, so they may come back within the session timeout without a rebalance. With
        `leave=False` no member does, and the group waits for the session timeout.
        """
        if self._closed:
            return
        deadline = self._loop.time() + timeout_ms / 1000
        try:
            self._perform(self._machine.leave(self._now(), silently=not leave))
            if not await self._wait_unsubscribed(deadline - min(_LEAVE_MS, timeout_ms / 4) / 1000):
                # The consumer takes too long: its partitions count as revoked.
                await self._cancel(self._rebalancing)
                self._perform(self._machine.done(EventType.REVOKED_TO_LEAVE, self._machine.owned, self._now()))
                await self._wait_unsubscribed(deadline)
        finally:
            self._closed = True
            self._stop_listening()
            if self._timer is not None:
                self._timer.cancel()
            await self._cancel(self._rebalancing, self._search, *self._tasks)

    def subscription_changed(self) -> None:
        """Joins, tells the group, or (empty) leaves: `Delegate.subscription` has changed.

        Raises:
            ConfigError: the pattern isn't a regular expression.
        """
        subscription = self._delegate.subscription
        if subscription.pattern is not None:
            if self._settings.group_protocol == "classic":
                subscription.matched(())
            self._cluster.follow_all()
        else:
            self._cluster.follow(subscription.topics)
        self._perform(self._machine.subscribe(subscription, self._now()))

    def polled(self) -> None:
        """The user polls: a member that had left for `max_poll_interval_ms` joins again. Cheap otherwise."""
        if self._machine.state is State.STALE:
            self._perform([])

    @property
    def state(self) -> State:
        """The member's state."""
        return self._machine.state

    @property
    def failed(self) -> Exception | None:
        """The fatal error that keeps the member out of its group until the subscription changes."""
        return self._machine.error if self._machine.state is State.FATAL else None

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions that the member owns, without those it's revoking."""
        return self._machine.owned - self._machine.revoking

    def group_metadata(self) -> GroupMetadata:
        """The member's id and generation; generation -1 and no id if it isn't a member."""
        generation = self._protocol.generation
        member_id = self._protocol.member_id if generation >= 0 else ""
        return GroupMetadata(self._settings.group_id, generation, member_id, self._settings.group_instance_id)

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, Exception]:
        """Commits offsets for the group; returns the errors of partitions that failed.

        Retriable errors are retried until the time is up (`RequestTimeoutError`). Works without a membership, too.

        Raises:
            CommitFailedError: the group has rebalanced: the member no longer has these partitions.
            FencedError: another has this member's group instance id.
            KafkaError: an error for the whole group, such as missing authorization.
            RequestTimeoutError: the coordinator couldn't be asked, or wasn't ready, in the time allowed.
        """
        return await self._offsets.commit(offsets, timeout_ms)

    async def committed(
        self, partitions: Collection[TopicPartition], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Returns the group's committed offsets, None where there are none. Waits for open transactions (KIP-447).

        Raises:
            FencedError, KafkaError, RequestTimeoutError: as `commit`.
        """
        return await self._offsets.committed(partitions, timeout_ms)

    # For `MemberOffsets` ---------------------------------------------------------------------------------------------

    def holds(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the member owns these partitions, or is no member and may commit for any."""
        if self._machine.state is State.UNSUBSCRIBED:
            return True
        return self._protocol.generation >= 0 and self._machine.owned.issuperset(partitions)

    async def moved_on(self, generation: int) -> bool:
        """Waits for the coordinator's next response; returns whether the generation or epoch is another then."""
        if self._machine.state is not State.UNSUBSCRIBED and self._protocol.generation == generation:
            self._responded.clear()
            await self._responded.wait()
        return self._protocol.generation not in (generation, -1)

    def _offsets_purpose(self) -> str:
        return _OFFSETS_PURPOSE if self._machine.join_in_flight else _PURPOSE

    # Effects ---------------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._loop.time() * 1000)

    def _perform(self, effects: list[Effect]) -> None:
        """Carries out effects, then those that are due by time."""
        while True:
            for effect in effects:
                self._perform_one(effect)
            if self._closed:
                return
            last_poll, now, before = self._delegate.last_poll(), self._now(), self._machine.state
            effects = self._machine.tick(now, last_poll)
            if self._machine.state is State.STALE and before is not State.STALE:
                self._warn_of_a_busy_user(now - last_poll)
            if not effects:
                break
        if self._machine.state is State.UNSUBSCRIBED:
            self._unsubscribed.set()
        else:
            self._unsubscribed.clear()
        self._set_timer(last_poll)

    def _warn_of_a_busy_user(self, busy_ms: int) -> None:
        log.warning(
            "group %s: the consumer has left, since its loop hasn't come back for %.1f s, longer than "
            "max_poll_interval_ms=%d: others get its partitions, and records that weren't committed are read again; "
            "it joins again when the loop comes back. If records take so long, raise max_poll_interval_ms",
            self._settings.group_id, busy_ms / 1000, self._settings.max_poll_interval_ms,
        )  # fmt: skip

    def _set_timer(self, last_poll: int) -> None:
        due = self._machine.next_tick(last_poll)
        if due is None and self._machine.state is State.STALE:
            due = self._now() + _STALE_CHECK_MS
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._loop.call_at(due / 1000 + 0.001, self._perform, [])

    def _perform_one(self, effect: Effect) -> None:
        match effect:
            case Suspend():
                self._delegate.suspend()
            case Resume():
                self._delegate.resume()
            case RaiseError(error):
                log.warning("group %s: %s", self._settings.group_id, error)
                self._delegate.failed(error)
            case Revoke() | Assign():
                self._rebalance_steps.put_nowait(effect)
                if self._rebalancing is None or self._rebalancing.done():
                    self._rebalancing = self._loop.create_task(self._rebalance(), name="kohort-rebalance")
            case FindCoordinator():
                if self._search is not None:
                    self._search.cancel()
                self._search = self._start_task(self._find_coordinator(effect))
            case SendRequest():
                self._start_task(self._send_request(effect))
            case FetchMetadata():
                self._start_task(self._fetch_metadata(effect))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(self._fail_on_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fail_on_errors(self, work: Coroutine[Any, Any, None]) -> None:
        """Fails the member after an unexpected error, so that it doesn't wait for ever."""
        try:
            await work
        except Exception as error:
            log.exception("group %s", self._settings.group_id)
            self._perform(self._machine.fatal_error(error, self._now()))

    async def _rebalance(self) -> None:
        """Lets the consumer revoke and take partitions, one step at a time, in order."""
        while not self._rebalance_steps.empty():
            effect = self._rebalance_steps.get_nowait()
            try:
                if isinstance(effect, Assign):
                    await self._delegate.assign(effect.added, effect.assigned)
                elif effect.partitions:
                    await self._delegate.revoke(effect.partitions, lost=effect.lost)
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
                if cancelled or self._rebalance_cancelled:
                    raise
                # What a user's callback raises goes to the user, even a CancelledError of something that it waited for.
                self._delegate.failed(error if isinstance(error, Exception) else ClientError(f"callback: {error!r}"))
            if isinstance(effect, Assign):
                self._perform(self._machine.done(EventType.ASSIGNED, effect.added, self._now()))
            else:
                self._perform(self._machine.done(effect.done, effect.partitions, self._now()))

    async def _find_coordinator(self, effect: FindCoordinator) -> None:
        """Finds the coordinator and opens the channel, however long it takes; backs off after failures."""
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
                if self._protocol.subscription.pattern is not None and not self._topics_known:
                    # A pattern needs topics to match.
                    await self._cluster.refresh()
                    self._topics_known = True
                self._connection = await self._cluster.coordinator_connection(
                    CoordinatorKind.GROUP, self._settings.group_id, _PURPOSE
                )
                break
            except (ConnectionLostError, RequestTimeoutError) as error:
                log.info("group %s: %s", self._settings.group_id, error)
            except ClosedError:
                return
            except KafkaError as error:
                if not error.code.retriable:
                    self._perform(self._machine.fatal_error(error, self._now()))
                    return
            except ClientError as error:
                self._perform(self._machine.fatal_error(error, self._now()))
                return
            await asyncio.sleep(self._backoff.next() / 1000)
        self._perform(self._machine.coordinator_found(effect.search, self._now()))

    async def _send_request(self, effect: SendRequest) -> None:
        if effect.after_pause:
            await asyncio.sleep(self._backoff.next() / 1000)
            if effect.attempt != self._machine.attempt:
                return
        call = effect.call
        try:
            connection = self._connection
            if effect.aside:
                connection = await self._cluster.coordinator_connection(
                    CoordinatorKind.GROUP, self._settings.group_id, _OFFSETS_PURPOSE
                )
            if connection is None or connection.closed:
                raise ConnectionLostError("the connection to the coordinator is lost")
            response = await connection.ask(call.request, call.response, timeout_ms=call.timeout_ms)
        except (ClientError, KafkaError, ProtocolError) as error:
            why = self._classified(error, call.request)
            log.info("group %s: %s: %s", self._settings.group_id, call.request.__message__.api, why)
            self._perform(self._machine.request_failed(effect.attempt, why, self._now()))
        else:
            if code := getattr(response, "error_code", 0):
                api = call.request.__message__.api
                # Each dynamic member's first join gets its id so.
                level = logging.DEBUG if code == ErrorCode.MEMBER_ID_REQUIRED else logging.INFO
                log.log(level, "group %s: %s was answered with %s", self._settings.group_id, api, kafka_error(code))
            else:
                self._backoff.reset()
            self._perform(self._machine.response_received(effect.attempt, call.request, response, self._now()))
            if self._protocol.unresolved:
                self._cluster.request_refresh()
        self._responded.set()

    def _classified(self, error: Exception, request: object) -> Exception:
        if isinstance(error, KafkaError) and error.code.retriable:
            return ConnectionLostError(f"the coordinator can't be found: {error}")
        if isinstance(error, UnsupportedError) and isinstance(request, ConsumerGroupHeartbeatRequest):
            return unsupported(str(error))
        if isinstance(error, ProtocolError):
            return UnsupportedError(f"the broker is too old for what is asked of it: {error}")
        return error

    async def _fetch_metadata(self, effect: FetchMetadata) -> None:
        self._cluster.follow(effect.topics)
        try:
            if not self._cluster.info.topics.keys() >= effect.topics:
                await self._cluster.refresh()
        except ClientError as error:
            self._perform(self._machine.request_failed(effect.attempt, error, self._now()))
        else:
            self._perform(self._machine.metadata_ready(effect.attempt, self._now()))

    def _cluster_changed(self, changes: Changes) -> None:
        self._perform(self._machine.metadata_changed(self._now()))

    # Closing ------------------------------------------------------------------------------------------------------

    async def _wait_unsubscribed(self, deadline: float) -> bool:
        try:
            async with time_limit_at(deadline):
                await self._unsubscribed.wait()
        except TimeoutError:
            return False
        return True

    async def _cancel(self, *tasks: asyncio.Task[None] | None) -> None:
        alive = [task for task in tasks if task is not None and task is not asyncio.current_task() and not task.done()]
        for task in alive:
            self._rebalance_cancelled = self._rebalance_cancelled or task is self._rebalancing
            task.cancel()
        await asyncio.gather(*alive, return_exceptions=True)
