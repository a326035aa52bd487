"""Which member epochs a heartbeat may carry."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final, TypeVar

from kohort.coordinator.modern.standing import Standing
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = ["FIRST_EPOCH", "JOINS", "LEAVES", "LEFT_FOR_A_WHILE", "check_epoch"]

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")

JOINS: Final = 0
"""The epoch that a member joins with, or joins anew."""

LEAVES: Final = -1
"""The epoch that a member leaves with."""

LEFT_FOR_A_WHILE: Final = -2
"""The epoch that a static member leaves with if it will be back, and the epoch it has until then."""

FIRST_EPOCH: Final = 1
"""The epoch of a group that nobody has joined yet, and of the empty target that it begins with."""


def check_epoch(standing: Standing[I, R], received: int, owned: Mapping[I, R] | None, exclusive: Container[R]) -> None:
    """Whether a member may go on from the epoch that it is on.

    It may from its own, and from the one before if the answer that told of the new one got lost: then it has nothing
    but what it was given. (What it still has to give up counts as given.)

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH; it has to give up all it has and join anew.
    """
    if received in (standing.epoch, JOINS):
        return
    if received > standing.epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member is on epoch {received}, but the coordinator knows it only up to {standing.epoch}."
            " It has to give up all it has and join anew.",
        )
    if received != standing.previous_epoch or owned is None or not _was_given(standing, owned, exclusive):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member is on epoch {received}, but the coordinator knows it on {standing.epoch} already."
            " It has to give up all it has and join anew.",
        )


def _was_given(standing: Standing[I, R], owned: Mapping[I, R], exclusive: Container[R]) -> bool:
    """Whether a member was given all of this. Of copies the role may be an old one: converting them needs no word."""
    for item, role in owned.items():
        given = (standing.assigned.get(item), standing.revoking.get(item))
        if role not in given and (role in exclusive or given == (None, None)):
            return False
    return True
