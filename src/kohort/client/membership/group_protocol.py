"""What the state machine needs of a group protocol (`group.protocol`): requests to send, and events for responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kohort.client.errors import FencedError, kafka_error
from kohort.client.membership.member_states import EventType
from kohort.client.membership.settings import Subscription
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response

Partitions = frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the coordinator, the class of its response, and how long that may take (ms)."""

    request: Request
    response: type[Response]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event, and what came with it.

    Attributes:
        assignment: all that the member is to have, with REVOKE and ASSIGN.
    """

    type: EventType
    assignment: Partitions | None = None
    error: Exception | None = None


class GroupProtocol(Protocol):
    """A member's requests and responses in one of the protocols. Keeps its id and its generation or epoch."""

    member_id: str
    generation: int
    """Generation or member epoch; -1 outside the group."""
    heartbeat_interval_ms: int
    subscription: Subscription

    @property
    def unresolved(self) -> bool:
        """Whether the assignment has topics that metadata doesn't know yet."""

    def join(self, owned: Partitions) -> Call:
        """Returns the request to join, or to join again with what the member has."""

    def sync(self) -> Call:
        """Returns the request for the assignment (classic)."""

    def group_topics(self) -> frozenset[str]:
        """Returns the topics that must be known to assign (classic, leader)."""

    def heartbeat(self, owned: Partitions) -> Call:
        """Returns a heartbeat, with what changed."""

    def leave(self, *, busy: bool = False) -> Call | None:
        """Ends the membership; returns the request that says so, None if there's no need to.

        Args:
            busy: since the user didn't poll for `max_poll_interval_ms`.
        """

    def on_response(self, request: Request, response: Response) -> Event:
        """Returns what a response means."""

    def subscription_changed(self) -> EventType:
        """Returns how the group learns of a changed subscription."""

    def still_subscribed(self, owned: Partitions) -> Partitions | None:
        """Returns what to keep before the group learns of a narrower subscription; None if the coordinator revokes."""

    def metadata_changed(self) -> Event | None:
        """Returns what a change of the cluster's topics means."""

    def acknowledgement(self, *, revoked: bool) -> EventType | None:
        """Returns how to acknowledge a finished assignment: HEARTBEAT_NOW, REJOIN, or not at all."""

    def assigned(self, partitions: Partitions) -> None:
        """The member took its assignment."""

    def resend_all(self) -> None:
        """The coordinator may not have the last request, so the next one repeats everything."""

    def reset_generation(self) -> None:
        """The member has lost its place."""


_NOT_COORDINATOR = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_RETRIED = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNRELEASED_INSTANCE_ID})
_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH})


def error_event(code: int, detail: str | None, group_id: str, instance_id: str | None) -> Event:
    """Returns what an error code means that any request of a member may be answered with.

    | error | event |
    | --- | --- |
    | NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE | CONNECTION_LOST |
    | UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_MEMBER_EPOCH | FENCED |
    | FENCED_INSTANCE_ID | FATAL_ERROR, a `FencedError` |
    | UNRELEASED_INSTANCE_ID | RETRY; FATAL_ERROR after the session timeout |
    | COORDINATOR_LOAD_IN_PROGRESS and all retriable ones, REBALANCE_IN_PROGRESS | RETRY |
    | TOPIC_AUTHORIZATION_FAILED | NON_FATAL_ERROR |
    | all others, such as GROUP_AUTHORIZATION_FAILED | FATAL_ERROR |
    """
    if code == ErrorCode.UNRELEASED_INSTANCE_ID:
        detail = (
            f"another member of group {group_id!r} has the group_instance_id {instance_id!r}: each needs its own; "
            "if the other died, its session has to end first"
        )
    error = kafka_error(code, detail)
    if code in _NOT_COORDINATOR:
        return Event(EventType.CONNECTION_LOST, error=error)
    if code in _FENCED:
        return Event(EventType.FENCED, error=error)
    if code == ErrorCode.FENCED_INSTANCE_ID:
        fenced = FencedError(f"another member of group {group_id!r} has the group_instance_id {instance_id!r}")
        return Event(EventType.FATAL_ERROR, error=fenced)
    if code in _RETRIED or error.code.retriable:
        return Event(EventType.RETRY, error=error)
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return Event(EventType.NON_FATAL_ERROR, error=error)
    return Event(EventType.FATAL_ERROR, error=error)
