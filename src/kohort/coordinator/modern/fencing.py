"""Fencing of members by the epoch in their heartbeat: FENCED_MEMBER_EPOCH.

A member that is silent for its session timeout, or keeps what it has to revoke for its rebalance timeout, is fenced by
removal: see `timeouts`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH
from kohort.protocol.errors import ErrorCode, KafkaError

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


def check_member_epoch(
    kind: str, current: CurrentAssignment[I, R], received: int, owned: Mapping[I, R] | None, exclusive: Container[R]
) -> None:
    """Checks the epoch that a member sends.

    It may be the member's epoch; or the previous one, as the answer with the new one may be lost, if the member owns
    nothing but what it was assigned. (What it still has to revoke counts as assigned.)

    Args:
        kind: the type of the group, such as "streams".

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH; the member has to give up all it has and join again.
    """
    if received in (current.epoch, JOIN_GROUP_MEMBER_EPOCH):
        return
    if received > current.epoch:
        raise _fenced(kind, "greater", received, current.epoch)
    if received != current.previous_epoch or owned is None or not _was_assigned(current, owned, exclusive):
        raise _fenced(kind, "smaller", received, current.epoch)


def _fenced(kind: str, how: str, received: int, known: int) -> KafkaError:
    """The error, in Kafka's words, which its own tests compare."""
    return KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {how} member epoch ({received}) than the one known by the group coordinator"
        f" ({known}). The member must abandon all its partitions and rejoin.",
    )


def _was_assigned(current: CurrentAssignment[I, R], owned: Mapping[I, R], exclusive: Container[R]) -> bool:
    """Whether a member was assigned all of this. A copy may be owned in an old role: its conversion isn't confirmed."""
    for item, role in owned.items():
        given = (current.assigned.get(item), current.revoking.get(item))
        if role not in given and (role in exclusive or given == (None, None)):
            return False
    return True
