"""A member's state machine, without I/O: looks events up in the table of `member_states`, and returns effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kohort.client.errors import ConnectionLostError, RequestTimeoutError
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
from kohort.client.membership.group_protocol import Call, Event, GroupProtocol, Partitions
from kohort.client.membership.member_states import HEARTBEATING, TRANSITIONS, Action, EventType, State
from kohort.client.membership.settings import MembershipSettings, Subscription
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response

_NOTHING: Final[Partitions] = frozenset()


class MemberStateMachine:
    """A member's state, from events to effects. Times are ms of the caller's clock, which never goes back.

    The caller carries out the effects that a method returns, in order, before it calls the next.

    Attributes:
        owned: what the consumer may fetch: from when it's told to take it, until it has revoked it.
        revoking: the part of it that is being revoked.
    """

    def __init__(self, settings: MembershipSettings, protocol: GroupProtocol) -> None:
        self.state = State.UNSUBSCRIBED
        self.owned: Partitions = _NOTHING
        self.revoking: Partitions = _NOTHING
        self.error: Exception | None = None
        self._settings, self._protocol = settings, protocol
        self._effects: list[Effect] = []
        # The newest assignment; whether the consumer had to revoke something for it; events to handle later.
        self._target: Partitions = _NOTHING
        self._revoked = False
        self._deferred: list[Event] = []
        # Responses to requests of an earlier attempt are ignored.
        self._attempt = 0
        self._search = 0
        self._connected = False
        self._in_flight: Call | None = None
        self._join_in_flight = False
        self._metadata_waits = False
        self._suspended = False
        self._leave_silently = False
        self._last_response_at = self._heartbeat_at = 0
        self._left_at = 0
        self._unreleased_at: int | None = None
        self._actions: dict[Action, Callable[[Event, int], None]] = {
            Action.FIND_COORDINATOR: self._find_coordinator,
            Action.JOIN: self._join,
            Action.SYNC: self._sync,
            Action.FETCH_METADATA: self._fetch_metadata,
            Action.RETRY: self._retry,
            Action.HEARTBEAT: self._heartbeat,
            Action.DELAY_HEARTBEAT: self._delay_heartbeat,
            Action.SUSPEND: self._suspend,
            Action.RESUME: self._resume,
            Action.REVOKE: self._revoke,
            Action.ASSIGN: self._assign,
            Action.REVOKE_TO_REJOIN: self._revoke_to_rejoin,
            Action.LOSE: self._lose,
            Action.REVOKE_TO_LEAVE: self._revoke_to_leave,
            Action.ACKNOWLEDGE: self._acknowledge,
            Action.DEFER: self._defer,
            Action.LEAVE: self._leave,
            Action.REPORT_ERROR: self._report_error,
            Action.FAIL: self._fail,
        }

    @property
    def attempt(self) -> int:
        """The current attempt; effects of earlier ones need not be carried out any more."""
        return self._attempt

    @property
    def join_in_flight(self) -> bool:
        """Whether a join or sync is in flight: its response, and all after it, waits for other members."""
        return self._join_in_flight

    # Events ------------------------------------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription, now: int) -> list[Effect]:
        """The user subscribes, changes the subscription, or (empty) ends it."""
        if not subscription:
            return self.leave(now)
        self._protocol.subscription = subscription
        if self.state is State.FATAL and self.revoking:
            self._deferred = [Event(EventType.SUBSCRIBED)]  # once all is revoked
            return []
        if self.state in (State.UNSUBSCRIBED, State.FATAL, State.PREPARE_LEAVING, State.LEAVING):
            return self._handle(Event(EventType.SUBSCRIBED), now)
        keep = self._protocol.still_subscribed(self.owned)
        if keep is not None and keep != self.owned and self.state is State.STABLE:
            return self._handle(Event(EventType.REVOKE, keep), now)
        return self._handle(Event(self._protocol.subscription_changed()), now)

    def leave(self, now: int, *, silently: bool = False) -> list[Effect]:
        """The user unsubscribes, or closes; `silently` without telling the coordinator."""
        self._leave_silently = silently
        self._protocol.subscription = Subscription()
        self._deferred.clear()
        return self._handle(Event(EventType.LEAVE), now)

    def coordinator_found(self, search: int, now: int) -> list[Effect]:
        if search != self._search:
            return []
        self._connected, self._heartbeat_at = True, now
        return self._handle(Event(EventType.COORDINATOR_FOUND), now)

    def fatal_error(self, error: Exception, now: int) -> list[Effect]:
        """The coordinator can't be found or asked, and trying again won't help."""
        return self._handle(Event(EventType.FATAL_ERROR, error=error), now)

    def metadata_ready(self, attempt: int, now: int) -> list[Effect]:
        """The topics of a `FetchMetadata` are known."""
        return self._handle(Event(EventType.METADATA_READY), now) if attempt == self._attempt else []

    def response_received(self, attempt: int, request: Request, response: Response, now: int) -> list[Effect]:
        if attempt != self._attempt:
            return []
        event = self._limit_unreleased(self._protocol.on_response(request, response), now)
        # The coordinator keeps members alive while it makes them wait for others.
        if self._join_in_flight or event.type not in (EventType.CONNECTION_LOST, EventType.FENCED):
            self._last_response_at = now
        # A heartbeat that became due meanwhile stays due.
        due = now + self._protocol.heartbeat_interval_ms
        self._heartbeat_at = due if self._join_in_flight else min(due, self._heartbeat_at)
        self._in_flight, self._join_in_flight = None, False
        if event.type is EventType.CONNECTION_LOST:
            self._connected = False
        effects = self._handle(event, now)
        return effects + self.metadata_changed(now) if self._metadata_waits else effects

    def request_failed(self, attempt: int, error: Exception, now: int) -> list[Effect]:
        """No response will come. A broken channel is a lost connection; other errors are fatal."""
        if attempt != self._attempt:
            return []
        if self._join_in_flight:
            self._last_response_at = now
        self._in_flight, self._join_in_flight = None, False
        if isinstance(error, (ConnectionLostError, RequestTimeoutError)):
            self._connected = False
            return self._handle(Event(EventType.CONNECTION_LOST, error=error), now)
        if self.state in (State.LEAVING, State.PREPARE_LEAVING, State.STALE):
            return self._handle(Event(EventType.LEFT), now)
        return self.fatal_error(error, now)

    def done(self, what: EventType, partitions: Partitions, now: int) -> list[Effect]:
        """The consumer has carried out a `Revoke` or `Assign`."""
        if what is not EventType.ASSIGNED:
            self.owned -= partitions
            self.revoking -= partitions
        effects = self._handle(Event(what), now)
        self._handle_deferred(now)
        return effects + self._take_effects()

    def metadata_changed(self, now: int) -> list[Effect]:
        event = self._protocol.metadata_changed()
        # While the channel is lost, only a response of the coordinator ends the suspension.
        if event is None or (self.state is State.SUSPENDED and event.assignment is not None):
            return []
        # A heartbeat under way says that the member doesn't have what it would take up now. If it arrives late, the
        # coordinator may take that for given back. So the response comes first.
        self._metadata_waits = event.assignment is not None and self._in_flight is not None
        return [] if self._metadata_waits else self._handle(event, now)

    def tick(self, now: int, last_poll: int) -> list[Effect]:
        """Checks the session timeout, the poll interval and the heartbeat interval.

        Args:
            last_poll: when the user last asked for records.
        """
        effects: list[Effect] = []
        session_expired = now - self._last_response_at > self._settings.session_timeout_ms
        if session_expired and (self.state is not State.FINDING_COORDINATOR or self.owned):
            before = self.state
            effects += self._handle(Event(EventType.SESSION_EXPIRED), now)
            if self.state is not before:
                self._protocol.reset_generation()
        if now - last_poll > self._settings.max_poll_interval_ms:
            effects += self._handle(Event(EventType.POLL_INTERVAL_EXCEEDED), now)
        elif last_poll > self._left_at and not self.revoking:
            effects += self._handle(Event(EventType.POLLED), now)
        if self._may_heartbeat() and now >= self._heartbeat_at:
            effects += self._send_heartbeat(now)
        return effects

    def next_tick(self, last_poll: int) -> int | None:
        """Returns when `tick` is due, in ms; None: not before another event. The user may poll in the meantime."""
        due = []
        if self._may_heartbeat():
            due.append(self._heartbeat_at)
        if (self.state, EventType.SESSION_EXPIRED) in TRANSITIONS and (
            self.state is not State.FINDING_COORDINATOR or self.owned
        ):
            due.append(self._last_response_at + self._settings.session_timeout_ms + 1)
        if (self.state, EventType.POLL_INTERVAL_EXCEEDED) in TRANSITIONS:
            due.append(last_poll + self._settings.max_poll_interval_ms + 1)
        return min(due, default=None)

    # Transitions -------------------------------------------------------------------------------------------------

    def _handle(self, event: Event, now: int) -> list[Effect]:
        self._transition(event, now)
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _transition(self, event: Event, now: int) -> None:
        event = self._classified(event)
        row = TRANSITIONS.get((self.state, event.type))
        if row is None:
            return
        actions, self.state = row
        for action in actions:
            self._actions[action](event, now)
        self._handle_deferred(now)

    def _handle_deferred(self, now: int) -> None:
        idle = self.state in (State.STABLE, State.UNSUBSCRIBED) or (self.state is State.FATAL and not self.revoking)
        if idle and self._deferred:
            later, self._deferred = self._deferred, []
            for event in later:
                self._transition(event, now)

    def _classified(self, event: Event) -> Event:
        """An assignment that takes something away is a REVOKE; one that changes nothing is UNCHANGED."""
        if event.assignment is None:
            return event
        if self.owned - self.revoking - event.assignment:
            return Event(EventType.REVOKE, event.assignment)
        if event.assignment == self.owned and self.state in (State.STABLE, State.SUSPENDED):
            return Event(EventType.UNCHANGED)
        return Event(EventType.ASSIGN, event.assignment)

    def _limit_unreleased(self, event: Event, now: int) -> Event:
        """Retries UNRELEASED_INSTANCE_ID for the session timeout: a static member that died holds its name so long."""
        if getattr(event.error, "code", None) != ErrorCode.UNRELEASED_INSTANCE_ID:
            self._unreleased_at = None
            return event
        if self._unreleased_at is None:
            self._unreleased_at = now
        retry = now - self._unreleased_at <= self._settings.session_timeout_ms
        return event if retry else Event(EventType.FATAL_ERROR, error=event.error)

    # Actions -----------------------------------------------------------------------------------------------------

    def _find_coordinator(self, event: Event, now: int) -> None:
        self._new_attempt()
        if event.type is EventType.CONNECTION_LOST:
            self._protocol.resend_all()
        self._search += 1
        self._effects.append(FindCoordinator(self._search, lost=event.type is EventType.CONNECTION_LOST))

    def _new_attempt(self) -> None:
        self._attempt += 1
        self._in_flight, self._join_in_flight = None, False

    def _send(self, call: Call, *, after_pause: bool = False, join: bool = False, aside: bool = False) -> None:
        self._in_flight, self._join_in_flight = call, join
        self._effects.append(SendRequest(self._attempt, call, after_pause, aside))

    def _join(self, event: Event, now: int) -> None:
        self._new_attempt()
        self._deferred.clear()
        self._send(self._protocol.join(self.owned), join=True)

    def _fetch_metadata(self, event: Event, now: int) -> None:
        self._effects.append(FetchMetadata(self._attempt, self._protocol.group_topics()))

    def _sync(self, event: Event, now: int) -> None:
        self._new_attempt()
        self._send(self._protocol.sync(), join=True)

    def _retry(self, event: Event, now: int) -> None:
        call = self._protocol.join(self.owned) if self.state is State.JOINING else self._protocol.sync()
        self._new_attempt()
        self._send(call, after_pause=True, join=True)

    def _may_heartbeat(self) -> bool:
        idle = self._connected and self._in_flight is None
        return self.state in HEARTBEATING and idle and self._protocol.generation >= 0

    def _send_heartbeat(self, now: int) -> list[Effect]:
        self._heartbeat_at = now + self._protocol.heartbeat_interval_ms
        # A deferred assignment counts as owned, too: the coordinator must not believe that the member has given back
        # what it may begin to fetch before the response comes.
        assigned = (later.assignment for later in self._deferred if later.assignment is not None)
        self._send(self._protocol.heartbeat(self.owned.union(*assigned)))
        return self._take_effects()

    def _heartbeat(self, event: Event, now: int) -> None:
        self._heartbeat_at = now

    def _delay_heartbeat(self, event: Event, now: int) -> None:
        self._heartbeat_at = now + self._settings.retry_backoff_max_ms

    def _suspend(self, event: Event, now: int) -> None:
        if not self._suspended:
            self._suspended = True
            self._effects.append(Suspend())

    def _resume(self, event: Event, now: int) -> None:
        if self._suspended:
            self._suspended = False
            self._effects.append(Resume())

    def _revoke(self, event: Event, now: int) -> None:
        assert event.assignment is not None
        self._target = event.assignment
        self._revoked = True
        self._give_up(self.owned - self.revoking - event.assignment, EventType.REVOKED)

    def _assign(self, event: Event, now: int) -> None:
        if event.assignment is not None:
            self._target = event.assignment
        target = self._target
        added = target - self.owned
        self.owned |= added
        self._protocol.assigned(target)
        self._effects.append(Assign(added, target))

    def _revoke_to_rejoin(self, event: Event, now: int) -> None:
        self._give_up(self.owned - self.revoking, EventType.REVOKED_TO_REJOIN)

    def _revoke_to_leave(self, event: Event, now: int) -> None:
        self._give_up(self.owned - self.revoking, EventType.REVOKED_TO_LEAVE)

    def _lose(self, event: Event, now: int) -> None:
        self._deferred.clear()
        self._revoked = False
        self._give_up(self.owned - self.revoking, EventType.PARTITIONS_LOST, lost=True)

    def _give_up(self, partitions: Partitions, done: EventType, *, lost: bool = False) -> None:
        self.revoking |= partitions
        self._effects.append(Revoke(partitions, lost, done))

    def _acknowledge(self, event: Event, now: int) -> None:
        acknowledgement = self._protocol.acknowledgement(revoked=self._revoked)
        if acknowledgement is EventType.HEARTBEAT_NOW:
            self._heartbeat_at = now
        elif acknowledgement is not None and event.type is EventType.REVOKED:
            self._deferred.append(Event(acknowledgement))
        self._revoked = False

    def _defer(self, event: Event, now: int) -> None:
        self._deferred = [later for later in self._deferred if later.type is not event.type]
        if event.assignment is not None:
            self._deferred = [later for later in self._deferred if later.assignment is None]
        self._deferred.append(event)

    def _leave(self, event: Event, now: int) -> None:
        self._left_at = now
        join_in_flight = self._join_in_flight
        self._new_attempt()
        call = self._protocol.leave(busy=event.type is EventType.POLL_INTERVAL_EXCEEDED)
        if call is None or self._leave_silently:
            self._transition(Event(EventType.LEFT), now)
        else:
            self._send(call, aside=join_in_flight)

    def _report_error(self, event: Event, now: int) -> None:
        assert event.error is not None
        self._effects.append(RaiseError(event.error))

    def _fail(self, event: Event, now: int) -> None:
        assert event.error is not None
        self.error = event.error
        self._new_attempt()
        self._protocol.reset_generation()
        self._effects.append(RaiseError(event.error))
