"""What the two group protocols have in common, as the state machine sees them: requests to ask, answers to hear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kohort.client.connector.settings import Subscription
from kohort.client.connector.table import Input
from kohort.client.errors import FencedError, kafka_error
from kohort.client.types import TopicInfo, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response

__all__ = ["Call", "ClusterView", "Heard", "Membership", "Partitions", "heard_error"]

Partitions = frozenset[TopicPartition]


class ClusterView(Protocol):
    """What a member has to know of the cluster; `ServerClusterInfo` is one."""

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """The topics that metadata was asked for, or all."""

    @property
    def names(self) -> Mapping[UUID, str]:
        """Names of topics by id."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the coordinator.

    Attributes:
        request: what to send.
        response: what comes back.
        timeout_ms: how long that may take.
    """

    request: Request
    response: type[Response]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Heard:
    """An input, and what came with it.

    Attributes:
        input: the input.
        assignment: all that the member is to have, with REVOKE and ASSIGN.
        error: what went wrong.
    """

    input: Input
    assignment: Partitions | None = None
    error: Exception | None = None


class Membership(Protocol):
    """A member's requests and answers in one of the protocols. Keeps its id and generation or epoch."""

    member_id: str
    generation: int
    """Generation or member epoch; -1 outside the group."""
    heartbeat_interval_ms: int
    subscription: Subscription

    @property
    def unresolved(self) -> bool:
        """Whether the assignment has topics that metadata doesn't tell of yet."""

    def join(self, owned: Partitions) -> Call:
        """Register, or register anew with what the member has."""

    def sync(self) -> Call:
        """Ask for the assignment (classic)."""

    def wanted(self) -> frozenset[str]:
        """Topics that must be known to assign (classic, leader)."""

    def heartbeat(self, owned: Partitions) -> Call:
        """Say that the member is there, and what changed."""

    def leave(self) -> Call | None:
        """Say that it leaves; None if there's no need to. It's no longer a member then."""

    def hear(self, request: Request, response: Response) -> Heard:
        """What an answer means."""

    def told(self) -> Input:
        """How the group gets to know that the subscription changed."""

    def narrowed(self, owned: Partitions) -> Partitions | None:
        """What to keep before the group gets to know of a narrower subscription; None if the coordinator sees to it."""

    def noticed(self) -> Heard | None:
        """What a change of the cluster's topics means."""

    def acknowledged(self, *, revoked: bool) -> Input | None:
        """How to acknowledge an assignment that was carried out: TELL by heartbeat, REJOIN, or not at all."""

    def assigned(self, partitions: Partitions) -> None:
        """The member took its assignment."""

    def unheard(self) -> None:
        """The last request may not have been heard."""

    def forget(self) -> None:
        """The member has lost its place."""


_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_PATIENCE = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNRELEASED_INSTANCE_ID})
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH})


def heard_error(code: int, detail: str | None, group_id: str, instance_id: str | None) -> Heard:
    """What an error means that every request of a member can be answered with.

    | error | input |
    | --- | --- |
    | NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE | LOST |
    | UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_MEMBER_EPOCH | FENCED |
    | FENCED_INSTANCE_ID | REFUSED, a `FencedError` |
    | UNRELEASED_INSTANCE_ID | AGAIN; REFUSED when it's the answer for longer than the session timeout |
    | COORDINATOR_LOAD_IN_PROGRESS and all retriable ones, REBALANCE_IN_PROGRESS | AGAIN |
    | TOPIC_AUTHORIZATION_FAILED | COMPLAINT |
    | all others, such as GROUP_AUTHORIZATION_FAILED | REFUSED |
    """
    if code == ErrorCode.UNRELEASED_INSTANCE_ID:
        detail = (
            f"another member of group {group_id!r} has the group_instance_id {instance_id!r}: each needs its own; "
            "if the other died, its session has to end first"
        )
    error = kafka_error(code, detail)
    if code in _ELSEWHERE:
        return Heard(Input.LOST, error=error)
    if code in _UNKNOWN:
        return Heard(Input.FENCED, error=error)
    if code == ErrorCode.FENCED_INSTANCE_ID:
        fenced = FencedError(f"another member of group {group_id!r} has the group_instance_id {instance_id!r}")
        return Heard(Input.REFUSED, error=fenced)
    if code in _PATIENCE or error.code.retriable:
        return Heard(Input.AGAIN, error=error)
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return Heard(Input.COMPLAINT, error=error)
    return Heard(Input.REFUSED, error=error)
