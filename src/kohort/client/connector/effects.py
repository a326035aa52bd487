"""What the state machine wants done. The shell does it in this order, and tells the machine how it went."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.client.connector.membership import Call, Partitions
from kohort.client.connector.table import Input

__all__ = ["Ask", "Effect", "Give", "Learn", "Resume", "Seek", "Suspend", "Take", "Tell"]


@dataclass(frozen=True, slots=True)
class Seek:
    """Find the coordinator and open a channel, for as long as it takes; then `Machine.found`.

    `search` goes back to the machine; a Seek ends the one before. If `lost`, the channel that there is isn't good any
    more, nor what's known of the coordinator.
    """

    search: int
    lost: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request over the channel; then `Machine.answered` or `Machine.unanswered`.

    With a pause before, if `again`; over another channel, if `aside`: this one's answers wait for other members.
    """

    turn: int
    call: Call
    again: bool = False
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Learn:
    """Look these topics up in the cluster's metadata; then `Machine.learned`."""

    turn: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suspend:
    """Close all fetchers and clear their queues, at once."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Start them again."""


@dataclass(frozen=True, slots=True)
class Give:
    """Have the consumer give partitions up, after what it was asked before; then `Machine.done` with `done`."""

    partitions: Partitions
    lost: bool
    done: Input


@dataclass(frozen=True, slots=True)
class Take:
    """Have the consumer take partitions, after what it was asked before; then `Machine.done` with ASSIGNED."""

    added: Partitions
    assigned: Partitions


@dataclass(frozen=True, slots=True)
class Tell:
    """Raise this in the user's loop."""

    error: Exception


Effect = Seek | Ask | Learn | Suspend | Resume | Give | Take | Tell
