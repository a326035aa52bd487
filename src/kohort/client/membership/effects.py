"""What the state machine wants done. The shell does it in this order, and reports the result to the machine."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.client.membership.group_protocol import Call, Partitions
from kohort.client.membership.member_states import EventType


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Find the coordinator and open a channel, for as long as it takes; then `MemberStateMachine.coordinator_found`.

    `search` goes back to the machine; a new search ends the one before. If `lost`, the open channel and the known
    coordinator are no longer good.
    """

    search: int
    lost: bool


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request over the channel; then `MemberStateMachine.response_received` or `request_failed`.

    After a backoff, if `after_pause`; over another channel, if `aside`: responses on this one wait for other members.
    """

    attempt: int
    call: Call
    after_pause: bool = False
    aside: bool = False


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """Look these topics up in the cluster's metadata; then `MemberStateMachine.metadata_ready`."""

    attempt: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suspend:
    """Close all fetchers and clear their queues, at once."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Start the fetchers again."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Let the consumer revoke partitions after its earlier work; then `MemberStateMachine.done` with `done`."""

    partitions: Partitions
    lost: bool
    done: EventType


@dataclass(frozen=True, slots=True)
class Assign:
    """Let the consumer take partitions after its earlier work; then `MemberStateMachine.done` with ASSIGNED."""

    added: Partitions
    assigned: Partitions


@dataclass(frozen=True, slots=True)
class RaiseError:
    """Raise this in the user's loop."""

    error: Exception


Effect = FindCoordinator | SendRequest | FetchMetadata | Suspend | Resume | Revoke | Assign | RaiseError
