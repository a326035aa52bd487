"""A member of a streams group (KIP-1071): what it sends, receives and does. No socket, clock or randomness."""

from __future__ import annotations

import logging
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.heartbeat_errors import Reaction
from kohort.client.streams.heartbeat_errors import HEARTBEAT_ERRORS
from kohort.client.streams.heartbeat_response import ParsedResponse, parse_response
from kohort.client.streams.membership import JOIN, Call, StreamsMembership
from kohort.client.streams.news_watch import NewsWatch
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import HEARTBEATING, Input, State
from kohort.protocol.messages.streams_group_heartbeat import Endpoint as WireEndpoint
from kohort.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kohort.streams.tasks import Role, TaskId, task_ids
from kohort.streams.topology_messages import topology_request

log = logging.getLogger(__name__)

_LEAVE: Final = -1
_LEAVE_FOR_A_WHILE: Final = -2
_REPORTS_OFFSETS: Final = 1  # first version of the heartbeat whose brokers take task offsets
_SESSION_MS: Final = 60_000  # the longest that brokers allow by default
_HEARTBEAT: Final = Call(StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse)


class StreamsMembershipManager(StreamsMembership):
    """Joins, heartbeats, is fenced and leaves, all by one request.

    Beside it, the driver sends `news_request` at `news_due_at` over another connection, and calls `on_news` or
    `on_news_failure` after it.

    Attributes:
        heartbeat_interval_ms: the one that the group sent last.
    """

    errors = HEARTBEAT_ERRORS

    def __init__(self, settings: MemberSettings, backoff: Backoff, *, leave_within_ms: int) -> None:
        super().__init__(settings, backoff, leave_within_ms=leave_within_ms)
        self.heartbeat_interval_ms = 0
        self._endpoint_epoch = -1
        self._reported: dict[TaskId, Role] | None = None  # the tasks that the group knows of; None: report everything
        self._response_lost = False  # and with it perhaps tasks that the group assigned or revoked
        self._in_flight: StreamsGroupHeartbeatRequest | None = None
        self._version = 0  # of the request in flight
        self._news = NewsWatch(settings)

    def call(self, now: int) -> Call:
        """A heartbeat: all that such a member sends."""
        return _HEARTBEAT

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
            or self._has_offset_news()
        )

    def _has_offset_news(self) -> bool:
        """Whether the group waits for offsets that it would otherwise get with the next report."""
        active = self.tasks.in_role(Role.ACTIVE)
        return self.offsets.caught_up(self._warmups()) or self.offsets.restores_changed(active)

    def request(self, now: int, version: int) -> StreamsGroupHeartbeatRequest:
        """Returns the heartbeat that is due, in this version of the API."""
        settings = self.settings
        request = StreamsGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
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
        elif static and self._response_lost and self.epoch == JOIN:
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
        joins, changed = self.epoch == JOIN, owned != self._reported
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
        self.offsets.add_to(request, now, at_once=changed or self._has_offset_news())
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
        """Applies a response; see `StreamsMembership.on_response`."""
        request, self._in_flight = self._in_flight, None
        assert request is not None, "no request is in flight"
        leaving = request.member_epoch < JOIN
        if self.state is State.DEPARTING and not leaving:
            return Reaction.ACCEPT  # the response to an earlier heartbeat
        reaction = HEARTBEAT_ERRORS.reaction_to(response.error_code, joining=request.member_epoch == JOIN)
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
            self._fenced(now)
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
        self._pause(now)

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
        if response.endpoints is not None:
            self._apply_endpoints(response.endpoints)
        if response.statuses is not None:
            self._apply_statuses(response.statuses)
        if response.tasks is None and self._response_lost and self.state is not State.LEAVING:
            # Apache Kafka sends a member its tasks once, and all of them when it joins.
            log.warning("%s: a response got lost, and with it perhaps tasks; joining again", self)
            self._on_input(Input.FENCED, now)
            return
        self._response_lost = False
        leaving = self.state is State.LEAVING
        if response.tasks is None or leaving or self._apply_tasks(response.tasks, now):
            self._after_response(now)

    def _join_afresh(self) -> None:
        self._reported = None
        self.offsets.forget_reported()
        self._endpoint_epoch = -1

    # Held heartbeats -----------------------------------------------------------------------------------------

    @property
    def news_due_at(self) -> int | None:
        """When to ask for news over another connection; None if that isn't to be done now."""
        in_group = self.state in (State.RECONCILING, State.STABLE) and self.epoch != JOIN
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
