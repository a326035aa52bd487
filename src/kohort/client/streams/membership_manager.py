"""A member of a streams group (KIP-1071): what it sends, receives and does. No socket, clock or randomness."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.errors import ClientError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.streams.events import (
    EndpointPartitions,
    EndpointsChanged,
    Event,
    ShutdownRequested,
    StatusesChanged,
)
from kohort.client.streams.heartbeat_errors import HEARTBEAT_ERRORS
from kohort.client.streams.heartbeat_response import ParsedResponse, parse_response
from kohort.client.streams.news_watch import NewsWatch
from kohort.client.streams.offset_reports import OffsetReports
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.task_reconciler import TaskReconciler
from kohort.client.streams.transitions import HEARTBEATING, TRANSITIONS, Input, State
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.messages.streams_group_heartbeat import Endpoint as WireEndpoint
from kohort.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId, shown, task_ids
from kohort.streams.topology_messages import topology_request

log = logging.getLogger(__name__)

_JOIN: Final = 0
_LEAVE: Final = -1
_LEAVE_FOR_A_WHILE: Final = -2
_REPORTS_OFFSETS: Final = 1  # first version of the heartbeat whose brokers take task offsets
_SESSION_MS: Final = 60_000  # the longest that brokers allow by default


class StreamsMembershipManager:
    """Joins, heartbeats, is fenced and leaves.

    Its driver sends `request` at `due_at`, one at a time, and calls `on_response` or `on_failure` after it. Its
    application takes `next_event` until there is none. All times are ms of one clock, given as `now`. Beside it, the
    driver sends `news_request` at `news_due_at` over another connection, and calls `on_news` or `on_news_failure`.

    Args:
        leave_within_ms: how long it tries to tell the group that it leaves.

    Attributes:
        epoch: its member epoch; 0 while it isn't in the group.
        offsets: how far copies of tasks' state are.
        statuses, endpoints: those that the group sent last.
        heartbeat_interval_ms: the one that the group sent last.
    """

    def __init__(self, settings: MemberSettings, backoff: Backoff, *, leave_within_ms: int) -> None:
        self.settings = settings
        self.state = State.UNJOINED
        self.epoch = _JOIN
        self.tasks = TaskReconciler()
        self.offsets = OffsetReports()
        self.statuses: tuple[Status, ...] = ()
        self.endpoints: dict[Endpoint, EndpointPartitions] = {}
        self.heartbeat_interval_ms = 0
        self.error: Exception | None = None
        self._backoff = backoff
        self._leave_within_ms = leave_within_ms
        self._leave_by = 0
        self._for_good = False
        self._last_epoch = -1  # the last one that the group gave it
        self._endpoint_epoch = -1
        self._reported: dict[TaskId, Role] | None = None  # the tasks that the group knows of; None: report everything
        self._shutdown = False  # the application asks for it, and the group doesn't know yet
        self._response_lost = False  # and with it perhaps tasks that the group assigned or revoked
        self._joins_since = 0
        self._in_flight: StreamsGroupHeartbeatRequest | None = None
        self._version = 0  # of the request in flight
        self._next_at = 0  # when a heartbeat without changes is due
        self._not_before = 0  # no heartbeat is sent before: there is a pause after failures
        self._pending_events: list[Event] = []  # beside tasks; at most one of a kind
        self._news = NewsWatch(settings)

    # What the user wants --------------------------------------------------------------------------------------

    def begin(self, now: int) -> None:
        """Join the group."""
        self._on_input(Input.BEGIN, now)

    def stop(self, now: int, *, for_good: bool = False) -> None:
        """Revoke all tasks, then leave; a static member leaves for a while, unless `for_good`."""
        self._for_good |= for_good
        self._on_input(Input.STOP, now)

    def quit(self, now: int, *, for_good: bool = False) -> None:
        """Leave at once: the application has closed its tasks, or won't any more."""
        self._for_good |= for_good
        self._on_input(Input.QUIT, now)

    def abandon(self, now: int) -> None:
        """Leave without telling the group."""
        self.quit(now)
        self._on_input(Input.GONE, now)

    def shut_application_down(self) -> None:
        """Ask that all members of the group stop."""
        self._shutdown = True

    def closed(self, tasks: list[TaskId], now: int) -> None:
        """The application has closed these tasks.

        Raises:
            ValueError: a task is neither revoked nor lost.
        """
        self.tasks.closed(tasks)
        self._check_reconciled(now)

    def next_event(self, now: int) -> Event | None:
        """Returns the next event for the application, which counts as known then; None if there is none."""
        if self.state is State.DEPARTING:
            return None
        for kind in (ShutdownRequested, StatusesChanged, EndpointsChanged):
            # A request to shut down comes before the tasks that are revoked for it, other events after the tasks'.
            if kind is StatusesChanged and (event := self.tasks.next_event()) is not None:
                self._check_reconciled(now)
                return event
            for pending in self._pending_events:
                if isinstance(pending, kind):
                    self._pending_events.remove(pending)
                    return pending
        return None

    @property
    def ended(self) -> bool:
        """Whether it has left or failed."""
        return self.state in (State.LEFT, State.FAILED)

    def group_metadata(self) -> GroupMetadata:
        """Returns its id and epoch, as commits need them.

        A member that isn't in the group any more has its last epoch, so that its commits are fenced. The epoch of one
        that never joined is -1.
        """
        settings = self.settings
        return GroupMetadata(settings.group_id, self._last_epoch, settings.member_id, settings.instance_id)

    def runs(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether it is in its group, and runs the tasks that read these partitions.

        Topics that only a source pattern matches may be read by any member.
        """
        if self.state not in HEARTBEATING or self.epoch == _JOIN:
            return False
        readers = self.settings.topology.readers
        return all(
            topic not in readers or self.tasks.current.get(TaskId(readers[topic], partition)) is Role.ACTIVE
            for topic, partition in partitions
        )

    # Heartbeats ----------------------------------------------------------------------------------------------

    @property
    def due_at(self) -> int | None:
        """When the next heartbeat is due; None if none is, or one is in flight."""
        if self._in_flight is not None or self.state not in HEARTBEATING:
            return None
        return self._not_before if self._is_urgent() else max(self._next_at, self._not_before)

    def _is_urgent(self) -> bool:
        """Whether the next heartbeat shouldn't wait for the interval."""
        return (
            self.state in (State.JOINING, State.DEPARTING)
            or self._shutdown
            or self._reported != self.tasks.owned
            or self.offsets.caught_up(self._warmups())
        )

    def _warmups(self) -> set[TaskId]:
        return set(self.tasks.in_role(Role.WARMUP))

    def heartbeat_soon(self, now: int) -> None:
        """Makes the next heartbeat due now."""
        self._next_at = min(self._next_at, now)

    def request(self, now: int, version: int) -> StreamsGroupHeartbeatRequest:
        """Returns the heartbeat that is due, in this version of the API. `on_response` or `on_failure` follows."""
        settings = self.settings
        request = StreamsGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=settings.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self._endpoint_epoch,
            instance_id=settings.instance_id,
            rack_id=None,
            topology=None,
            active_tasks=None,
            standby_tasks=None,
            warmup_tasks=None,
            process_id=None,
            user_endpoint=None,
            client_tags=None,
            task_offsets=None,
            task_end_offsets=None,
            shutdown_application=self._shutdown,
        )
        static = settings.instance_id is not None
        if self.state is State.DEPARTING:
            request.member_epoch = _LEAVE_FOR_A_WHILE if static and not self._for_good else _LEAVE
        elif static and self._response_lost and self.epoch == _JOIN:
            # It may be in the group already: then the instance id has to be released first.
            request.member_epoch = _LEAVE_FOR_A_WHILE
        else:
            self._add_changes(request, now, version)
            if (wishes := settings.wishes()) is not None:
                request.unknown_tags = wishes.tags()
        self._in_flight, self._version = request, version
        self._next_at = now + self.heartbeat_interval_ms
        return request

    def _add_changes(self, request: StreamsGroupHeartbeatRequest, now: int, version: int) -> None:
        """Adds what the group doesn't know to a heartbeat."""
        settings, owned = self.settings, self.tasks.owned
        joins, changed = self.epoch == _JOIN, owned != self._reported
        if joins or self._reported is None:
            request.rack_id = settings.rack_id
            request.rebalance_timeout_ms = settings.rebalance_timeout_ms
            request.process_id = settings.process_id
            request.client_tags = [
                KeyValue(key=key, value=value) for key, value in sorted(settings.client_tags.items())
            ]
            if settings.user_endpoint is not None:
                request.user_endpoint = WireEndpoint(host=settings.user_endpoint.host, port=settings.user_endpoint.port)
        if joins:
            request.topology = topology_request(settings.topology)
            request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
        elif changed:
            request.active_tasks, request.standby_tasks, request.warmup_tasks = (
                task_ids(TaskIds, owned, role) for role in Role
            )
        self.offsets.add_to(request, now, at_once=changed or self.offsets.caught_up(self._warmups()))
        if version < _REPORTS_OFFSETS:
            request.task_offsets = request.task_end_offsets = None
        self._reported = owned

    def on_failure(self, now: int) -> None:
        """No response came, or none that could be read; the group may have received the heartbeat."""
        self._response_lost |= self._in_flight is not None
        self._in_flight = None
        self._news.lost()
        self._retry(now)

    def on_response(self, response: StreamsGroupHeartbeatResponse, now: int) -> Reaction:
        """Applies a response, and returns the reaction to it: whether the driver has to find the coordinator again.

        Raises:
            ValueError: the response makes no sense. It counts as lost.
        """
        request, self._in_flight = self._in_flight, None
        assert request is not None, "no request is in flight"
        leaving = request.member_epoch < _JOIN
        if self.state is State.DEPARTING and not leaving:
            return Reaction.ACCEPT  # the response to an earlier heartbeat
        reaction = HEARTBEAT_ERRORS.reaction_to(response.error_code, joining=request.member_epoch == _JOIN)
        if reaction is Reaction.RETRY_FOR_A_MINUTE:
            reaction = Reaction.RETRY if now - self._joins_since <= _SESSION_MS else Reaction.FAIL
        if reaction in (Reaction.RETRY, Reaction.FIND_COORDINATOR):
            log.info("%s: error %d; trying again", self, response.error_code)
            self._retry(now)
        elif leaving:
            self._response_lost = False
            self._on_input(Input.GONE, now)
        elif reaction is Reaction.REJOIN:
            log.warning("%s: fenced: %s", self, response.error_message)
            # A member that is fenced again and again shouldn't come back at once each time.
            self._not_before = now + round(self._backoff.next())
            self._on_input(Input.FENCED, now)
        elif reaction is Reaction.FAIL:
            self._fail(HEARTBEAT_ERRORS.fatal_error(response.error_code, response.error_message), now)
        else:
            try:
                parsed = parse_response(response, self._version)
            except ValueError:
                self._response_lost = True
                self._retry(now)
                raise
            self._apply(parsed, request, now)
        return reaction

    def fail(self, error: Exception, now: int) -> None:
        """Heartbeats can't go on, for a reason outside the protocol."""
        self._in_flight = None
        self._fail(error, now)

    def _retry(self, now: int) -> None:
        """Reports everything again, after a pause."""
        self._reported = None
        self.offsets.forget_reported()
        self._not_before = now + round(self._backoff.next())
        if self.state is State.DEPARTING and self._not_before >= self._leave_by:
            log.warning("%s: gave up telling the group that it leaves; its session will end", self)
            self._on_input(Input.GONE, now)

    def _fail(self, error: Exception, now: int) -> None:
        self.error = error
        self._on_input(Input.REFUSED, now)

    def _apply(self, response: ParsedResponse, request: StreamsGroupHeartbeatRequest, now: int) -> None:
        """Applies what the group sent."""
        self._backoff.reset()
        self._not_before = now
        self._next_at += response.heartbeat_interval_ms - self.heartbeat_interval_ms
        self.heartbeat_interval_ms = response.heartbeat_interval_ms
        brings = response.tasks, response.endpoints, None if response.epoch == self.epoch else response.epoch
        new = any(each is not None for each in brings) or response.statuses not in (None, self.statuses)
        self._news.heard(response.grant, now, response.heartbeat_interval_ms, new=new)
        self.offsets.interval_ms = response.task_offset_interval_ms
        self.offsets.acceptable_lag = response.acceptable_recovery_lag
        self.epoch = response.epoch
        self._last_epoch = response.epoch or self._last_epoch
        self._shutdown = self._shutdown and not request.shutdown_application
        self._endpoint_epoch = response.endpoint_epoch
        if response.endpoints is not None and response.endpoints != self.endpoints:
            self.endpoints = response.endpoints
            self._queue(EndpointsChanged(self.endpoints))
        if response.statuses is not None and response.statuses != self.statuses:
            self._apply_statuses(response.statuses)
        if response.tasks is None and self._response_lost and self.state is not State.LEAVING:
            # Apache Kafka sends a member its tasks once, and all of them when it joins.
            log.warning("%s: a response got lost, and with it perhaps tasks; joining again", self)
            self._on_input(Input.FENCED, now)
            return
        self._response_lost = False
        if response.tasks is not None and self.state is not State.LEAVING:
            if strange := {task.subtopology for task in response.tasks} - self.settings.topology.subtopologies.keys():
                names = ", ".join(sorted(strange))
                error = ClientError(
                    f"the group gave the member tasks of subtopologies that its topology lacks ({names}): does "
                    "another member run another topology?"
                )
                self._fail(error, now)
                return
            if response.tasks != self.tasks.target:
                log.info("%s: assigned %s", self, shown(response.tasks))
            self.tasks.target = response.tasks
        self._on_input(Input.CONFIRMED if self.tasks.reconciled else Input.ASSIGNED, now)
        if any(status.code == StatusCode.SHUTDOWN_APPLICATION for status in self.statuses):
            self._on_input(Input.STOP, now)

    def _apply_statuses(self, statuses: tuple[Status, ...]) -> None:
        for status in statuses:
            if status not in self.statuses:
                log.warning("%s: status %s: %s", self, getattr(status.code, "name", status.code), status.detail)
                if status.code == StatusCode.SHUTDOWN_APPLICATION:
                    self._queue(ShutdownRequested(status.detail))
        self.statuses = statuses
        self._queue(StatusesChanged(statuses))

    def _queue(self, event: Event) -> None:
        """Queues an event, in place of an older one of the same kind."""
        self._pending_events = [pending for pending in self._pending_events if type(pending) is not type(event)] + [
            event
        ]

    # Held heartbeats -----------------------------------------------------------------------------------------

    @property
    def news_due_at(self) -> int | None:
        """When to ask for news over another connection; None if that isn't to be done now."""
        in_group = self.state in (State.RECONCILING, State.STABLE) and self.epoch != _JOIN
        return self._news.due_at if in_group and self._in_flight is None else None

    def news_request(self) -> StreamsGroupHeartbeatRequest:
        """Returns the heartbeat that asks for news. `on_news` or `on_news_failure` follows."""
        return self._news.request(self.epoch, self._endpoint_epoch, self.statuses)

    def on_news(self, response: StreamsGroupHeartbeatResponse, now: int) -> None:
        """There is news, or there was none for as long as the heartbeat was held."""
        if self._news.answered(response):
            self.heartbeat_soon(now)

    def on_news_failure(self, now: int) -> None:
        """The connection broke: the member says over the other one that it lives."""
        self._news.failed(now)
        self.heartbeat_soon(now)

    # States --------------------------------------------------------------------------------------------------

    def _check_reconciled(self, now: int) -> None:
        if self.tasks.reconciled:
            self._on_input(Input.RECONCILED, now)

    def _on_input(self, what: Input, now: int) -> None:
        """Goes to the next state, and does what entering it takes."""
        state = TRANSITIONS[self.state].get(what)
        if state is None or state is self.state:
            return
        log.info("%s: %s → %s (%s)", self, self.state.value, state.value, what.value)
        before, self.state = self.state, state
        match state:
            case State.JOINING:
                self._joins_since = now
                self._reported = None
                self.offsets.forget_reported()
                self._endpoint_epoch = -1
            case State.FENCED | State.LEFT | State.FAILED:
                self.epoch = _JOIN
                if before is not State.FENCED:  # then they are lost already
                    self.tasks.lose()
                self._pending_events = [event for event in self._pending_events if isinstance(event, ShutdownRequested)]
            case State.LEAVING:
                self.tasks.target = {}
            case State.DEPARTING:
                self.tasks.forget()
                self._leave_by = now + self._leave_within_ms
        if state in (State.FENCED, State.LEAVING):
            self._check_reconciled(now)

    def __str__(self) -> str:
        return f"member {self.settings.member_id} of streams group {self.settings.group_id}, epoch {self.epoch}"
