"""What members of a streams application have in common, whichever protocol their group has."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.client.backoff import Backoff
from kohort.client.errors import ClientError
from kohort.client.heartbeat_errors import HeartbeatErrors, Reaction
from kohort.client.streams.events import (
    EndpointPartitions,
    EndpointsChanged,
    Event,
    ShutdownRequested,
    StatusesChanged,
)
from kohort.client.streams.offset_reports import OffsetReports
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.task_reconciler import TaskReconciler
from kohort.client.streams.transitions import HEARTBEATING, TRANSITIONS, Input, State
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.message import Request, Response
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId, shown

log = logging.getLogger(__name__)

JOIN: Final = 0
"""The epoch of a member that isn't in its group."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the coordinator, before its version is known.

    Attributes:
        request, response: their classes.
        timeout_ms: how long the response may take; None for as long as any.
        purpose: of the connection (`Cluster.connection`): what may take long has its own.
    """

    request: type[Request]
    response: type[Response]
    timeout_ms: int | None = None
    purpose: str = "coordinator"


class StreamsMembership(ABC):
    """A member's state, tasks and events. No socket, clock or randomness.

    Its driver sends `request` at `due_at`, one at a time, and calls `on_response` or `on_failure` after it. Its
    application takes `next_event` until there is none. All times are ms of one clock, given as `now`.

    Args:
        leave_within_ms: how long it tries to tell the group that it leaves.

    Attributes:
        errors: what it does about each error of a response.
        member_id: its id in the group.
        epoch: its member epoch or generation; 0 while it isn't in the group.
        offsets: how far copies of tasks' state are.
        statuses, endpoints: those that the group sent last.
        error: why it failed.
    """

    errors: HeartbeatErrors

    def __init__(self, settings: MemberSettings, backoff: Backoff, *, leave_within_ms: int) -> None:
        self.settings = settings
        self.member_id = settings.member_id
        self.state = State.UNJOINED
        self.epoch = JOIN
        self.tasks = TaskReconciler()
        self.offsets = OffsetReports()
        self.statuses: tuple[Status, ...] = ()
        self.endpoints: Mapping[Endpoint, EndpointPartitions] = {}
        self.error: Exception | None = None
        self._backoff = backoff
        self._leave_within_ms = leave_within_ms
        self._leave_by = 0
        self._for_good = False
        self._last_epoch = -1  # the last one that the group gave it
        self._shutdown = False  # the application asks for it, and the group doesn't know yet
        self._joins_since = 0
        self._next_at = 0  # when a heartbeat without changes is due
        self._not_before = 0  # nothing is sent before: there is a pause after failures
        self._pending_events: list[Event] = []  # beside tasks; at most one of a kind

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

    @property
    def leave_by(self) -> int:
        """Until when it tries to tell the group that it leaves, after `quit`."""
        return self._leave_by

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
        return GroupMetadata(settings.group_id, self._last_epoch, self.member_id, settings.instance_id)

    def runs(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether it is in its group, and runs the tasks that read these partitions.

        Topics that only a source pattern matches may be read by any member.
        """
        if self.state not in HEARTBEATING or self.epoch == JOIN:
            return False
        readers = self.settings.topology.readers
        return all(
            topic not in readers or self.tasks.current.get(TaskId(readers[topic], partition)) is Role.ACTIVE
            for topic, partition in partitions
        )

    # Requests ------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def due_at(self) -> int | None:
        """When the next request is due; None if none is, or one is in flight."""

    @abstractmethod
    def call(self, now: int) -> Call:
        """Which request is due now, after `due_at` said that one is."""

    @abstractmethod
    def request(self, now: int, version: int) -> Request:
        """Returns the request that is due, in this version of its API. `on_response` or `on_failure` follows."""

    @abstractmethod
    def on_failure(self, now: int) -> None:
        """No response came, or none that could be read; the group may have received the request."""

    @abstractmethod
    def on_response(self, response: Any, now: int) -> Reaction:
        """Applies a response, and returns the reaction to it: whether the driver has to find the coordinator again.

        Raises:
            ValueError: the response makes no sense. It counts as lost.
        """

    def heartbeat_soon(self, now: int) -> None:
        """Makes the next heartbeat due now."""
        self._next_at = min(self._next_at, now)

    def _warmups(self) -> set[TaskId]:
        return set(self.tasks.in_role(Role.WARMUP))

    @abstractmethod
    def fail(self, error: Exception, now: int) -> None:
        """Requests can't go on, for a reason outside the protocol."""

    def _fail(self, error: Exception, now: int) -> None:
        self.error = error
        self._on_input(Input.REFUSED, now)

    def _pause(self, now: int) -> None:
        """Sends nothing for a while; a member that tried to leave for too long is gone."""
        self._not_before = now + round(self._backoff.next())
        if self.state is State.DEPARTING and self._not_before >= self._leave_by:
            log.warning("%s: gave up telling the group that it leaves; its session will end", self)
            self._on_input(Input.GONE, now)

    def _fenced(self, now: int) -> None:
        # A member that is fenced again and again shouldn't come back at once each time.
        self._not_before = now + round(self._backoff.next())
        self._on_input(Input.FENCED, now)

    # What the group says -------------------------------------------------------------------------------------

    def _apply_endpoints(self, endpoints: Mapping[Endpoint, EndpointPartitions]) -> None:
        if endpoints != self.endpoints:
            self.endpoints = endpoints
            self._queue(EndpointsChanged(dict(endpoints)))

    def _apply_statuses(self, statuses: tuple[Status, ...]) -> None:
        if statuses == self.statuses:
            return
        for status in statuses:
            if status not in self.statuses:
                log.warning("%s: status %s: %s", self, getattr(status.code, "name", status.code), status.detail)
                if status.code == StatusCode.SHUTDOWN_APPLICATION:
                    self._queue(ShutdownRequested(status.detail))
        self.statuses = statuses
        self._queue(StatusesChanged(statuses))

    def _apply_tasks(self, tasks: Mapping[TaskId, Role], now: int) -> bool:
        """Takes the tasks that the group assigned; returns whether they can be the member's."""
        if strange := {task.subtopology for task in tasks} - self.settings.topology.subtopologies.keys():
            names = ", ".join(sorted(strange))
            error = ClientError(
                f"the group gave the member tasks of subtopologies that its topology lacks ({names}): does "
                "another member run another topology?"
            )
            self._fail(error, now)
            return False
        if tasks != self.tasks.target:
            log.info("%s: assigned %s", self, shown(tasks))
        self.tasks.target = dict(tasks)
        return True

    def _after_response(self, now: int) -> None:
        """Goes by the tasks and the statuses that hold now."""
        self._on_input(Input.CONFIRMED if self.tasks.reconciled else Input.ASSIGNED, now)
        if any(status.code == StatusCode.SHUTDOWN_APPLICATION for status in self.statuses):
            self._on_input(Input.STOP, now)

    def _queue(self, event: Event) -> None:
        """Queues an event, in place of an older one of the same kind."""
        self._pending_events = [pending for pending in self._pending_events if type(pending) is not type(event)] + [
            event
        ]

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
                self._join_afresh()
            case State.FENCED | State.LEFT | State.FAILED:
                self.epoch = JOIN
                if before is not State.FENCED:  # then they are lost already
                    self.tasks.lose()
                self._pending_events = [event for event in self._pending_events if isinstance(event, ShutdownRequested)]
            case State.LEAVING:
                self.tasks.target = {}
            case State.DEPARTING:
                self.tasks.forget()
                self._leave_by = now + self._leave_within_ms
                self._depart(now)
        if state in (State.FENCED, State.LEAVING):
            self._check_reconciled(now)

    @abstractmethod
    def _join_afresh(self) -> None:
        """The member joins, or joins again after it was fenced: the group knows nothing of it."""

    def _depart(self, now: int) -> None:
        """The member begins to tell the group that it leaves, unless there is no need to."""
        return

    def __str__(self) -> str:
        return f"member {self.member_id} of streams group {self.settings.group_id}, epoch {self.epoch}"
