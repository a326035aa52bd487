"""What a producer does about each error of its coordinators, as one table."""

from __future__ import annotations

import enum
from typing import Final

from kohort.protocol.errors import ErrorCode

__all__ = ["EXCEPTIONS", "REACTIONS", "Asked", "Reaction", "reaction_to"]


class Asked(enum.Enum):
    """What a coordinator was asked."""

    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    COMMIT = "EndTxn (commit)"
    ABORT = "EndTxn (abort)"


class Reaction(enum.Enum):
    """What to do."""

    RETRY = "ask again"
    FIND = "find the coordinator, then ask again"
    ABORTABLE = "the transaction must be aborted"
    MOVED_ON = "the transaction must be aborted: the group has moved on"
    FENCED = "the producer is fenced"
    FATAL = "the producer can't go on"


REACTIONS: Final[dict[ErrorCode, Reaction]] = {
    ErrorCode.NOT_COORDINATOR: Reaction.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.FIND,
    ErrorCode.PRODUCER_FENCED: Reaction.FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.ABORTABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.ABORTABLE,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: Reaction.ABORTABLE,
    ErrorCode.INVALID_GROUP_ID: Reaction.ABORTABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: Reaction.MOVED_ON,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.MOVED_ON,
    ErrorCode.ILLEGAL_GENERATION: Reaction.MOVED_ON,
    ErrorCode.STALE_MEMBER_EPOCH: Reaction.MOVED_ON,
    ErrorCode.FENCED_MEMBER_EPOCH: Reaction.MOVED_ON,
    ErrorCode.FENCED_INSTANCE_ID: Reaction.MOVED_ON,
    ErrorCode.REBALANCE_IN_PROGRESS: Reaction.MOVED_ON,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.INVALID_TXN_STATE: Reaction.FATAL,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.FATAL,
}
"""Codes that aren't here are asked again if Kafka calls them retriable. Otherwise they are fatal, but for those of a
partition that can't be added."""

EXCEPTIONS: Final[dict[tuple[Asked, ErrorCode], Reaction]] = {
    (Asked.COMMIT_OFFSETS, ErrorCode.REQUEST_TIMED_OUT): Reaction.FIND,
    # An abort that must be aborted: there is no way out.
    (Asked.ABORT, ErrorCode.TRANSACTION_ABORTABLE): Reaction.FATAL,
    (Asked.ABORT, ErrorCode.UNKNOWN_PRODUCER_ID): Reaction.FATAL,
}


def reaction_to(asked: Asked, code: ErrorCode) -> Reaction:
    """What to do about an error in the answer to what was asked."""
    exception = EXCEPTIONS.get((asked, code)) or REACTIONS.get(code)
    if exception is not None:
        return exception
    if code.retriable:
        return Reaction.RETRY
    return Reaction.ABORTABLE if asked is Asked.ADD_PARTITIONS else Reaction.FATAL
