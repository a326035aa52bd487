"""The answers of the share coordinator, for one share partition each."""

from __future__ import annotations

from typing import NamedTuple

from kohort.coordinator.share_state.batches import StateBatch
from kohort.protocol.errors import ErrorCode


class Outcome(NamedTuple):
    """How initializing, writing or deleting a state went; `message` is None without an error."""

    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ReadOutcome(NamedTuple):
    """A share partition's state, for its leader; the numbers mean nothing with an error."""

    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    batches: tuple[StateBatch, ...] = ()
    delivery_complete_count: int = -1


class Summary(NamedTuple):
    """A share partition's offsets and epochs without its batches; the numbers mean nothing with an error."""

    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
