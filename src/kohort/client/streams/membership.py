"""A member of a streams group, without socket, clock or randomness (KIP-1071)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.errors import ClientError
from kohort.client.streams.answers import Told, read_answer
from kohort.client.streams.events import (
    EndpointPartitions,
    EndpointsChanged,
    Event,
    ShutdownRequested,
    StatusesChanged,
)
from kohort.client.streams.held import HeldTasks
from kohort.client.streams.offset_reports import OffsetReports
from kohort.client.streams.reactions import Reaction, fatal_error, reaction_to
from kohort.client.streams.settings import MemberSettings
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

__all__ = ["Membership"]

log = logging.getLogger(__name__)

_JOIN: Final = 0
_LEAVE: Final = -1
_LEAVE_FOR_A_WHILE: Final = -2
_REPORTS_OFFSETS: Final = 1  # first version of the heartbeat whose brokers take task offsets
_SESSION_MS: Final = 60_000  # the longest that brokers allow by default


class Membership:
    """What a member says, hears and does.

    Its driver sends `request` when `due_at` says so, one at a time, and gives it what came of that: `answered`, or
    `missed`. Its application takes `next_event` until there is none. All times are ms of one clock, given as `now`.

    Args:
        settings: who the member is.
        backoff: the pauses between attempts.
        leave_within_ms: how long leaving is tried.

    Attributes:
        state: where it is in its life (`transitions`).
        epoch: its member epoch; 0 while it isn't in the group.
        held: the tasks.
        offsets: how far copies of tasks' state are.
        statuses, endpoints: as the group told last.
        heartbeat_interval_ms: as the group wants it.
        error: why it failed.
    """

    def __init__(self, settings: MemberSettings, backoff: Backoff, *, leave_within_ms: int) -> None:
        self.settings = settings
        self.state = State.UNJOINED
        self.epoch = _JOIN
        self.held = HeldTasks()
        self.offsets = OffsetReports()
        self.statuses: tuple[Status, ...] = ()
        self.endpoints: dict[Endpoint, EndpointPartitions] = {}
        self.heartbeat_interval_ms = 0
        self.error: Exception | None = None
        self._backoff = backoff
        self._leave_within_ms = leave_within_ms
        self._leave_by = 0
        self._for_good = False
        self._last_epoch = -1  # that was one of the group's
        self._endpoint_epoch = -1
        self._said: dict[TaskId, Role] | None = None  # the tasks that the group was told; None: say everything
        self._shutdown = False  # wanted by the application, and not said yet
        self._unsure = False  # an answer got lost, and with it perhaps what the group gave or took
        self._joins_since = 0
        self._in_flight: StreamsGroupHeartbeatRequest | None = None
        self._version = 0  # of what is in flight
        self._next_at = 0  # of heartbeats with nothing new
        self._not_before = 0  # of any heartbeat: after failures there is a pause
        self._untold: list[Event] = []  # beside tasks; at most one of a kind

    # What the user wants --------------------------------------------------------------------------------------

    def begin(self, now: int) -> None:
        """Join the group."""
        self._happened(Input.BEGIN, now)

    def stop(self, now: int, *, for_good: bool = False) -> None:
        """Have the application give up its tasks, then leave; a static member for a while only, unless `for_good`."""
        self._for_good |= for_good
        self._happened(Input.STOP, now)

    def quit(self, now: int, *, for_good: bool = False) -> None:
        """Leave at once: the application has given up its tasks, or won't any more."""
        self._for_good |= for_good
        self._happened(Input.QUIT, now)

    def abandon(self, now: int) -> None:
        """Leave without telling the group any more."""
        self.quit(now)
        self._happened(Input.GONE, now)

    def shut_application_down(self) -> None:
        """Ask all members to stop."""
        self._shutdown = True

    def closed(self, tasks: list[TaskId], now: int) -> None:
        """The application has closed these tasks.

        Raises:
            ValueError: one that it shall go on with.
        """
        self.held.closed(tasks)
        self._settle(now)

    def next_event(self, now: int) -> Event | None:
        """What the application is to know now, if there is anything; it counts as told then."""
        if self.state is State.DEPARTING:
            return None
        for kind in (ShutdownRequested, StatusesChanged, EndpointsChanged):
            # A request to shut down comes before the tasks that are revoked for it, the rest when tasks are told of.
            if kind is StatusesChanged and (event := self.held.next_event()) is not None:
                self._settle(now)
                return event
            for untold in self._untold:
                if isinstance(untold, kind):
                    self._untold.remove(untold)
                    return untold
        return None

    @property
    def ended(self) -> bool:
        """Whether it has left or failed, so that nothing will happen any more."""
        return self.state in (State.LEFT, State.FAILED)

    def group_metadata(self) -> GroupMetadata:
        """Who it is to its group.

        One that isn't in the group any more has the epoch that it had last, so that what it commits is refused; -1 is
        the epoch of one that never was.
        """
        settings = self.settings
        return GroupMetadata(settings.group_id, self._last_epoch, settings.member_id, settings.instance_id)

    def runs(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether it is in its group, and runs the tasks that read these partitions. Those of patterns may be its."""
        if self.state not in HEARTBEATING or self.epoch == _JOIN:
            return False
        readers = self.settings.topology.readers
        return all(
            topic not in readers or self.held.told.get(TaskId(readers[topic], partition)) is Role.ACTIVE
            for topic, partition in partitions
        )

    # Heartbeats ----------------------------------------------------------------------------------------------

    @property
    def due_at(self) -> int | None:
        """When the next heartbeat is due; None if none is, or one is under way."""
        if self._in_flight is not None or self.state not in HEARTBEATING:
            return None
        return self._not_before if self._has_news() else max(self._next_at, self._not_before)

    def _has_news(self) -> bool:
        """Whether there is something that the group should know at once."""
        return (
            self.state in (State.JOINING, State.DEPARTING)
            or self._shutdown
            or self._said != self.held.owned
            or self.offsets.caught_up(self._warmups())
        )

    def _warmups(self) -> set[TaskId]:
        return set(self.held.in_role(Role.WARMUP))

    def hurry(self, now: int) -> None:
        """Have the next heartbeat soon: something suggests that the group has news."""
        self._next_at = min(self._next_at, now)

    def request(self, now: int, version: int) -> StreamsGroupHeartbeatRequest:
        """The heartbeat that is due, in this version of the API. After this, `answered` or `missed` follows."""
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
        elif static and self._unsure and self.epoch == _JOIN:
            # It may be in the group already: then its name isn't free, not even for itself.
            request.member_epoch = _LEAVE_FOR_A_WHILE
        else:
            self._say(request, now, version)
        self._in_flight, self._version = request, version
        self._next_at = now + self.heartbeat_interval_ms
        return request

    def _say(self, request: StreamsGroupHeartbeatRequest, now: int, version: int) -> None:
        """Put into a heartbeat what the group doesn't know."""
        settings, owned = self.settings, self.held.owned
        joins, changed = self.epoch == _JOIN, owned != self._said
        if joins or self._said is None:
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
        self._said = owned

    def missed(self, now: int) -> None:
        """No answer came, or none that one could read: the group may have heard the heartbeat or not."""
        self._unsure |= self._in_flight is not None
        self._in_flight = None
        self._again(now)

    def answered(self, response: StreamsGroupHeartbeatResponse, now: int) -> Reaction:
        """Take an answer; says whether the coordinator is to be found anew.

        Raises:
            ValueError: the answer makes no sense. It counts as missed.
        """
        asked, self._in_flight = self._in_flight, None
        assert asked is not None, "nothing was asked"
        leaving = asked.member_epoch < _JOIN
        if self.state is State.DEPARTING and not leaving:
            return Reaction.TAKE  # it is of before
        reaction = reaction_to(response.error_code, joining=asked.member_epoch == _JOIN)
        if reaction is Reaction.WAIT:
            reaction = Reaction.AGAIN if now - self._joins_since <= _SESSION_MS else Reaction.FAIL
        if reaction in (Reaction.AGAIN, Reaction.FIND_COORDINATOR):
            log.info("%s: answered with error %d; trying again", self, response.error_code)
            self._again(now)
        elif leaving:
            self._unsure = False
            self._happened(Input.GONE, now)
        elif reaction is Reaction.REJOIN:
            log.warning("%s: fenced: %s", self, response.error_message)
            # One that is thrown out time and again should not come back at once each time.
            self._not_before = now + round(self._backoff.next())
            self._happened(Input.FENCED, now)
        elif reaction is Reaction.FAIL:
            self._fail(fatal_error(response.error_code, response.error_message), now)
        else:
            try:
                told = read_answer(response, self._version)
            except ValueError:
                self._unsure = True
                self._again(now)
                raise
            self._take(told, asked, now)
        return reaction

    def fail(self, error: Exception, now: int) -> None:
        """Heartbeats can't go on, for a reason beyond the protocol."""
        self._in_flight = None
        self._fail(error, now)

    def _again(self, now: int) -> None:
        """Say everything again, after a while."""
        self._said = None
        self.offsets.forget_reported()
        self._not_before = now + round(self._backoff.next())
        if self.state is State.DEPARTING and self._not_before >= self._leave_by:
            log.warning("%s: gave up telling the group that it leaves; its session will end", self)
            self._happened(Input.GONE, now)

    def _fail(self, error: Exception, now: int) -> None:
        self.error = error
        self._happened(Input.REFUSED, now)

    def _take(self, told: Told, asked: StreamsGroupHeartbeatRequest, now: int) -> None:
        """Take what the group says."""
        self._backoff.reset()
        self._not_before = now
        self._next_at += told.heartbeat_interval_ms - self.heartbeat_interval_ms
        self.heartbeat_interval_ms = told.heartbeat_interval_ms
        self.offsets.interval_ms = told.task_offset_interval_ms
        self.offsets.acceptable_lag = told.acceptable_recovery_lag
        self.epoch = told.epoch
        self._last_epoch = told.epoch or self._last_epoch
        self._shutdown = self._shutdown and not asked.shutdown_application
        self._endpoint_epoch = told.endpoint_epoch
        if told.endpoints is not None and told.endpoints != self.endpoints:
            self.endpoints = told.endpoints
            self._tell(EndpointsChanged(self.endpoints))
        if told.statuses is not None and told.statuses != self.statuses:
            self._take_statuses(told.statuses)
        if told.tasks is None and self._unsure and self.state is not State.LEAVING:
            # Apache Kafka tells a member of its tasks once, and of all of them when it joins.
            log.warning("%s: an answer got lost, and with it perhaps tasks; joining anew", self)
            self._happened(Input.FENCED, now)
            return
        self._unsure = False
        if told.tasks is not None and self.state is not State.LEAVING:
            if strange := {task.subtopology for task in told.tasks} - self.settings.topology.subtopologies.keys():
                names = ", ".join(sorted(strange))
                error = ClientError(
                    f"the group gave the member tasks of subtopologies that its topology lacks ({names}): does "
                    "another member run another topology?"
                )
                self._fail(error, now)
                return
            if told.tasks != self.held.target:
                log.info("%s: shall have %s", self, shown(told.tasks))
            self.held.target = told.tasks
        self._happened(Input.CONFIRMED if self.held.settled else Input.ASSIGNED, now)
        if any(status.code == StatusCode.SHUTDOWN_APPLICATION for status in self.statuses):
            self._happened(Input.STOP, now)

    def _take_statuses(self, statuses: tuple[Status, ...]) -> None:
        for status in statuses:
            if status not in self.statuses:
                log.warning("%s: status %s: %s", self, getattr(status.code, "name", status.code), status.detail)
                if status.code == StatusCode.SHUTDOWN_APPLICATION:
                    self._tell(ShutdownRequested(status.detail))
        self.statuses = statuses
        self._tell(StatusesChanged(statuses))

    def _tell(self, event: Event) -> None:
        """Have the application told; what it hasn't heard of the same kind is over."""
        self._untold = [untold for untold in self._untold if type(untold) is not type(event)] + [event]

    # States --------------------------------------------------------------------------------------------------

    def _settle(self, now: int) -> None:
        if self.held.settled:
            self._happened(Input.SETTLED, now)

    def _happened(self, what: Input, now: int) -> None:
        """Go over to the next state, and do what is to be done on entering it."""
        state = TRANSITIONS[self.state].get(what)
        if state is None or state is self.state:
            return
        log.info("%s: %s → %s (%s)", self, self.state.value, state.value, what.value)
        before, self.state = self.state, state
        match state:
            case State.JOINING:
                self._joins_since = now
                self._said = None
                self.offsets.forget_reported()
                self._endpoint_epoch = -1
            case State.FENCED | State.LEFT | State.FAILED:
                self.epoch = _JOIN
                if before is not State.FENCED:  # then they are lost already
                    self.held.lose()
                self._untold = [event for event in self._untold if isinstance(event, ShutdownRequested)]
            case State.LEAVING:
                self.held.target = {}
            case State.DEPARTING:
                self.held.forget()
                self._leave_by = now + self._leave_within_ms
        if state in (State.FENCED, State.LEAVING):
            self._settle(now)

    def __str__(self) -> str:
        return f"member {self.settings.member_id} of streams group {self.settings.group_id}, epoch {self.epoch}"
