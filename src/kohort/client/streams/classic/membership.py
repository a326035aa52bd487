"""A member of a streams application in a classic group: joins, syncs, heartbeats. No socket, clock or randomness."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from kohort.client.backoff import Backoff
from kohort.client.errors import kafka_error
from kohort.client.heartbeat_errors import Reaction
from kohort.client.streams.classic.assignment import Assignment, decode_assignment
from kohort.client.streams.classic.errors import CLASSIC_ERRORS
from kohort.client.streams.classic.phases import TRANSITIONS, Phase, Step
from kohort.client.streams.classic.protocol import PROTOCOL_TYPE
from kohort.client.streams.classic.requests import (
    heartbeat,
    join_group,
    leave_group,
    subscription_of,
    sync_group,
)
from kohort.client.streams.classic.settings import ClassicSettings
from kohort.client.streams.classic.subscription import TopologyId, encode_subscription
from kohort.client.streams.classic.versions import ErrorCode, version_to_join_with
from kohort.client.streams.classic.wanted_rebalance import WantedRebalance
from kohort.client.streams.membership import Call, StreamsMembership
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import HEARTBEATING, Input, State
from kohort.protocol.errors import ErrorCode as E
from kohort.protocol.message import Request
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.streams.statuses import StatusCode

log = logging.getLogger(__name__)

_JOIN_GRACE_MS: Final = 5_000
"""Beyond the rebalance timeout, until the coordinator must have responded to a join."""

_HEARTBEAT: Final = Call(HeartbeatRequest, HeartbeatResponse)
_LEAVE: Final = Call(LeaveGroupRequest, LeaveGroupResponse)
_REBALANCE: Final = "rebalance"
"""The connection for what waits for other members: commits and heartbeats don't wait behind it."""


class ClassicMembership(StreamsMembership):
    """Joins its group again and again: tasks that stay run on meanwhile (KIP-429).

    When it is to lead, its driver gets the members' subscriptions from `subscriptions`, and calls `placed`.

    Attributes:
        phase: where it is in a rebalance.
        subscriptions: the subscriptions of all members, while it has to place tasks; None at all other times.
        instances: the instance ids of those members that are static.
        leads: whether it led in this generation.
        version: in which it writes its subscription.
    """

    errors = CLASSIC_ERRORS
    no_epoch = -1  # brokers that aren't Apache's may count generations from 0

    def __init__(
        self,
        settings: MemberSettings,
        backoff: Backoff,
        classic: ClassicSettings,
        *,
        leave_within_ms: int,
    ) -> None:
        super().__init__(settings, backoff, leave_within_ms=leave_within_ms)
        self.member_id = ""  # the coordinator gives it one
        self.phase = Phase.PREPARING_REBALANCE
        self.subscriptions: Mapping[str, bytes] | None = None
        self.instances: Mapping[str, str] = {}
        self.leads = False
        self.version = self._latest = classic.latest
        self._classic = classic
        self._written = classic.latest  # the version of the last subscription
        self._leader_version = 0  # the newest that the last leader knew; 0 until an assignment has come
        self._assignments: Mapping[str, bytes] = {}
        self._in_flight: Request | None = None
        self._told_to_shut_down = False  # the last subscription had it
        self._wanted = WantedRebalance()
        self._afresh = True  # no assignment has come since it joined
        self._stops = False  # the user wants it to leave
        self._tell_by = 0  # until when it tries to tell the group before it leaves that all are to stop
        self._leave_from = 0  # others, which are to stop as well, have their assignments by then
        self._topology_id = TopologyId.of(settings.topology)

    # What the user wants --------------------------------------------------------------------------------------

    def stop(self, now: int, *, for_good: bool = False) -> None:
        """Revoke all tasks, then leave; if it asks that all stop, the group hears that before."""
        self._for_good |= for_good
        if not self._stops:
            # The others hear with their next heartbeats that they are to join.
            self._stops, self._tell_by = True, now + self._leave_within_ms + self._classic.heartbeat_interval_ms
        if self.state is not State.JOINING or not self._shutdown:
            super().stop(now, for_good=for_good)

    def quit(self, now: int, *, for_good: bool = False) -> None:
        """Leave at once; if it asks that all stop, the group hears that before, from a member without tasks.

        One that was fenced by its generation only is in the group still.
        """
        self._for_good |= for_good
        if self._shutdown and (self.state is State.FENCED or self.state in HEARTBEATING - {State.DEPARTING}):
            self.tasks.forget()
            if self.state is State.FENCED:
                self._check_reconciled(now)
            self.stop(now)
            return
        if self.state is State.FENCED and self.member_id:
            self._on_input(Input.RESIGN, now)
        super().quit(now, for_good=for_good)

    def abandon(self, now: int) -> None:
        """Leave without telling the group, not even that all are to stop."""
        self._shutdown = False
        super().abandon(now)

    @property
    def leave_by(self) -> int:
        """Until when it tries to tell the group that it leaves, and before that all are to stop, after `quit`."""
        if self._shutdown and self._stops:
            return self._tell_by + self._classic.heartbeat_interval_ms + self._leave_within_ms
        return self._leave_by

    # Requests ------------------------------------------------------------------------------------------------

    @property
    def due_at(self) -> int | None:
        """When the next request is due; None if none is, or one is in flight."""
        if self._in_flight is not None or self.state not in HEARTBEATING:
            return None
        match self._phase_now():
            case _ if self.state is State.DEPARTING:
                return max(self._not_before, self._leave_from)
            case Phase.LEADING:
                return None
            case Phase.SETTLED if not self._wants_rebalance():
                probing = self._wanted.probing_at
                due = self._next_at if probing is None or self._holds_back else min(self._next_at, probing)
                return max(due, self._not_before)
            case _:
                return self._not_before

    @property
    def _leaves(self) -> bool:
        return self.state is State.LEAVING

    @property
    def _holds_back(self) -> bool:
        """It doesn't join again while it closes tasks to leave, unless it asks that all stop.

        The others wait for it, as long as its rebalance timeout lets them.
        """
        return self._leaves and not self._shutdown

    def _phase_now(self) -> Phase:
        if self._holds_back and self.phase is Phase.PREPARING_REBALANCE:
            return Phase.SETTLED
        return self.phase

    def _wants_rebalance(self) -> bool:
        return not self._holds_back and (
            self._wanted.due(reconciled=self.tasks.reconciled)
            or (self._shutdown and not self._told_to_shut_down)
            or self.offsets.caught_up(self._warmups())
        )

    def _probes(self, now: int) -> bool:
        return self._wanted.probes(now) and not self._holds_back

    def call(self, now: int) -> Call:
        """Which request is due now."""
        match self._phase_now():
            case _ if self.state is State.DEPARTING:
                return _LEAVE
            case Phase.COMPLETING_REBALANCE:
                # A leader that doesn't assign has died, and then the coordinator says so within the session timeout.
                return Call(SyncGroupRequest, SyncGroupResponse, self._classic.session_timeout_ms, _REBALANCE)
            case Phase.SETTLED if not (self._probes(now) or self._wants_rebalance()):
                return _HEARTBEAT
            case _:
                timeout_ms = self.settings.rebalance_timeout_ms + _JOIN_GRACE_MS
                return Call(JoinGroupRequest, JoinGroupResponse, timeout_ms, _REBALANCE)

    def request(self, now: int, version: int) -> Request:
        """Returns the request that is due, in this version of its API."""
        kind = self.call(now).request
        self._next_at = now + self._classic.heartbeat_interval_ms
        if kind is JoinGroupRequest:
            self._in_flight = self._join(now)
        elif kind is SyncGroupRequest:
            self._in_flight = sync_group(self.settings, self.member_id, self.epoch, self._assignments)
        elif kind is HeartbeatRequest:
            self._in_flight = heartbeat(self.settings, self.member_id, self.epoch)
        else:
            self._in_flight = leave_group(self.settings, self.member_id, version)
        return self._in_flight

    def _join(self, now: int) -> JoinGroupRequest:
        reason = self._wanted.reason
        if self._probes(now) or self._wants_rebalance():
            self._wanted.count()
        self._step(Step.REJOIN)
        self._wanted.forget()
        self._written, self._told_to_shut_down = self.version, self._shutdown
        offsets, ends = self.offsets.report()
        subscription = subscription_of(self.settings, self.tasks.owned, offsets, ends, shutdown=self._shutdown)
        data = encode_subscription(subscription, self._written, self._latest, self._wanted.number, self._leader_version)
        return join_group(self.settings, self.member_id, data, self._classic.session_timeout_ms, reason)

    def on_failure(self, now: int) -> None:
        """No response came, or none that could be read; the group may have received the request."""
        self._in_flight = None
        self._pause(now)

    def fail(self, error: Exception, now: int) -> None:
        """Requests can't go on, for a reason outside the protocol."""
        self._in_flight = None
        self._fail(error, now)

    # Responses -----------------------------------------------------------------------------------------------

    def on_response(self, response: Any, now: int) -> Reaction:
        """Applies a response; see `StreamsMembership.on_response`."""
        request, self._in_flight = self._in_flight, None
        assert request is not None, "no request is in flight"
        code: int = response.error_code
        leaving = isinstance(request, LeaveGroupRequest)
        if self.state is State.DEPARTING and not leaving:
            return Reaction.ACCEPT  # the response to an earlier request
        match response:
            case JoinGroupResponse(error_code=E.NONE):
                self._joined(response, now)
            case JoinGroupResponse(error_code=E.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
                self._step(Step.MEMBER_ID_REQUIRED)
            case SyncGroupResponse(error_code=E.NONE):
                self._assigned(response.assignment, now)
            case HeartbeatResponse(error_code=E.NONE):
                self._accepted(now)
                if self._told_to_shut_down:  # to a leader that couldn't read it, and won't be told again by itself
                    self._check_told(now)
            case (
                SyncGroupResponse(error_code=E.REBALANCE_IN_PROGRESS)
                | HeartbeatResponse(error_code=E.REBALANCE_IN_PROGRESS)
            ):
                self._accepted(now)
                self._step(Step.REJOIN)
            case SyncGroupResponse(error_code=E.UNKNOWN_SERVER_ERROR):
                # The group's record couldn't be written, and it rebalances.
                log.warning("%s: the broker couldn't store the leader's assignments; trying again", self)
                self._pause(now)
                return Reaction.RETRY
            case _:
                return self._refused(code, leaving, now)
        return Reaction.ACCEPT

    def _refused(self, code: int, leaving: bool, now: int) -> Reaction:
        reaction = self.errors.reaction_to(code)
        if reaction in (Reaction.RETRY, Reaction.FIND_COORDINATOR):
            log.info("%s: error %d; trying again", self, code)
            self._pause(now)
        elif leaving:
            self._on_input(Input.GONE, now)
        elif reaction is Reaction.REJOIN:
            log.warning("%s: fenced: %s", self, kafka_error(code).code.name)
            if code == E.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            self._fenced(now)
        else:
            self._fail(self.errors.fatal_error(code, None), now)
        return reaction

    def _accepted(self, now: int) -> None:
        self._backoff.reset()
        self._not_before = now

    def _joined(self, response: JoinGroupResponse, now: int) -> None:
        # Old brokers don't send the protocol's type. If others share the group id, nothing can work.
        if response.protocol_type not in (None, PROTOCOL_TYPE):
            detail = f"the group has members of type {response.protocol_type!r}"
            self._fail(self.errors.fatal_error(E.INCONSISTENT_GROUP_PROTOCOL, detail), now)
            return
        self.member_id = response.member_id
        self.epoch = self._last_epoch = response.generation_id
        self._assignments = {}
        self.leads = response.leader == response.member_id
        if self.leads and not response.skip_assignment:
            self.subscriptions = {member.member_id: member.metadata for member in response.members}
            self.instances = {
                member.member_id: member.group_instance_id
                for member in response.members
                if member.group_instance_id is not None
            }
            self._step(Step.LEADS)
        else:
            self._step(Step.JOINED)

    def placed(self, assignments: Mapping[str, bytes], now: int) -> None:
        """The leader has placed the tasks: each member's assignment by member id."""
        if self.subscriptions is None:
            return  # it has left meanwhile
        self.subscriptions = None
        self._assignments, self._not_before = assignments, now
        self._step(Step.PLACED)

    def _assigned(self, data: bytes, now: int) -> None:
        first, self._afresh = self._afresh, False
        self._assignments = {}
        self._step(Step.ASSIGNED)
        try:
            assignment = decode_assignment(data, self._latest)
        except ValueError as error:
            log.warning("%s: the leader sent no assignment: %s; joining again", self, error)
            self._join_again("the assignment couldn't be read", now)
            return
        if assignment.topology is not None and assignment.topology != self._topology_id:
            log.info("%s: the assignment is for another topology, of epoch %d", self, assignment.topology.epoch)
            self._join_again("the assignment was for another topology", now)
            return
        changes = self._change_version(assignment)
        unreadable = assignment.error is ErrorCode.SUBSCRIPTION_UNREADABLE
        if not changes and (assignment.error is ErrorCode.SUBSCRIPTION_TOO_NEW or (unreadable and first)):
            # A static member that is back gets what was meant for its former self.
            self._join_again("the leader couldn't read another subscription", now)
            return
        self._accepted(now)
        if assignment.error is ErrorCode.SUBSCRIPTION_TOO_NEW:
            return
        shuts_down = any(status.code == StatusCode.SHUTDOWN_APPLICATION for status in assignment.statuses)
        if shuts_down:
            # Whoever leaves before all have their assignments makes the group rebalance, and the others miss it.
            self._leave_from = now + self._classic.heartbeat_interval_ms
        if shuts_down or (self._told_to_shut_down and (self._leaves or not unreadable)):
            self._shutdown = False
        if self._leaves:
            self._check_reconciled(now)
            return
        if unreadable:
            log.error("%s: the group's leader can't read what this member wrote; it gives it no tasks", self)
        self._apply(assignment, now)
        if self._stops:
            self._on_input(Input.STOP, now)

    def _join_again(self, reason: str, now: int) -> None:
        """Takes nothing from an assignment that isn't for this member, and joins again, after a pause."""
        self._pause(now)
        self.rebalance(reason)

    def _change_version(self, assignment: Assignment) -> bool:
        """Joins again at once where another version is wanted (KIP-268); returns whether it is."""
        version = version_to_join_with(
            self._written, assignment.version, assignment.supported, assignment.common, self._latest
        )
        self._leader_version = assignment.supported
        if version is not None:
            log.info("%s: subscriptions go from version %d to %d", self, self._written, version)
            self.version = version
            self.rebalance(f"version {version} of subscriptions")
        return version is not None

    def _apply(self, assignment: Assignment, now: int) -> None:
        self._wanted.assigned(assignment, now, static=self.settings.instance_id is not None)
        if assignment.acceptable_lag is not None:
            self.offsets.acceptable_lag = assignment.acceptable_lag
        self._apply_endpoints(assignment.endpoints)
        self._apply_statuses(assignment.statuses)
        if self._apply_tasks(assignment.tasks, now):
            self._after_response(now)

    def rebalance(self, reason: str) -> None:
        """Ask for a rebalance as soon as can be: for the leader, when topics have changed."""
        self._wanted.reason = reason

    # Phases and states ---------------------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        phase = TRANSITIONS[self.phase].get(step)
        if phase is not None and phase is not self.phase:
            log.debug("%s: %s → %s (%s)", self, self.phase.name, phase.name, step.value)
            self.phase = phase

    def _check_reconciled(self, now: int) -> None:
        if not (self._leaves and self._shutdown):
            super()._check_reconciled(now)

    def _pause(self, now: int) -> None:
        super()._pause(now)
        self._check_told(now)

    def _check_told(self, now: int) -> None:
        """Gives up telling the group that all are to stop, once it has tried for long enough to leave without that."""
        if self._shutdown and (self._stops or self._leaves) and now >= self._tell_by:
            log.warning("%s: gave up telling the group that all are to stop", self)
            self._shutdown = False
            self._on_input(Input.STOP, now)
            self._check_reconciled(now)

    def _join_afresh(self) -> None:
        self.phase = Phase.PREPARING_REBALANCE
        self.subscriptions, self._assignments, self.leads = None, {}, False
        self._told_to_shut_down, self._afresh = False, True
        self._wanted.forget()
        self.offsets.forget_reported()

    def _depart(self, now: int) -> None:
        self.subscriptions = None
        # Static members keep their place until their session ends. To leave for good, their instance id is enough.
        stays = self.settings.instance_id is not None and not self._for_good
        if stays or not (self.member_id or self.settings.instance_id):
            self._on_input(Input.GONE, now)
        self._leave_by = max(self._leave_by, self._leave_from + self._leave_within_ms)
