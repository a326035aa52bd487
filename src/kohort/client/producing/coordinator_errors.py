"""What a producer does about each error of its coordinators, as one table."""

from __future__ import annotations

import enum
from typing import Final

from kohort.protocol.errors import ErrorCode


class Operation(enum.Enum):
    """A request to a coordinator."""

    INIT = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    COMMIT = "EndTxn (commit)"
    ABORT = "EndTxn (abort)"


class Reaction(enum.Enum):
    """What the producer does."""

    RETRY = "retry"
    FIND_COORDINATOR = "find the coordinator, then retry"
    ABORTABLE = "the transaction must be aborted"
    REBALANCED = "the transaction must be aborted: the group has rebalanced, or the member was fenced"
    FENCED = "the producer is fenced"
    FATAL = "the producer can't go on"


REACTIONS: Final[dict[ErrorCode, Reaction]] = {
    ErrorCode.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    ErrorCode.PRODUCER_FENCED: Reaction.FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.ABORTABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORTABLE,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.ABORTABLE,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: Reaction.ABORTABLE,
    ErrorCode.INVALID_GROUP_ID: Reaction.ABORTABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: Reaction.REBALANCED,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.REBALANCED,
    ErrorCode.ILLEGAL_GENERATION: Reaction.REBALANCED,
    ErrorCode.STALE_MEMBER_EPOCH: Reaction.REBALANCED,
    ErrorCode.FENCED_MEMBER_EPOCH: Reaction.REBALANCED,
    ErrorCode.FENCED_INSTANCE_ID: Reaction.REBALANCED,
    ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REBALANCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.INVALID_TXN_STATE: Reaction.FATAL,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.FATAL,
}
"""Codes that aren't here are retried if Kafka calls them retriable. Otherwise they are fatal, except for those of a
partition that can't be added."""

EXCEPTIONS: Final[dict[tuple[Operation, ErrorCode], Reaction]] = {
    (Operation.COMMIT_OFFSETS, ErrorCode.REQUEST_TIMED_OUT): Reaction.FIND_COORDINATOR,
    # An abort that would have to be aborted.
    (Operation.ABORT, ErrorCode.TRANSACTION_ABORTABLE): Reaction.FATAL,
    (Operation.ABORT, ErrorCode.UNKNOWN_PRODUCER_ID): Reaction.FATAL,
}


def reaction_to(operation: Operation, code: ErrorCode) -> Reaction:
    """Returns what to do about an error in a coordinator's response."""
    exception = EXCEPTIONS.get((operation, code)) or REACTIONS.get(code)
    if exception is not None:
        return exception
    if code.retriable:
        return Reaction.RETRY
    return Reaction.ABORTABLE if operation is Operation.ADD_PARTITIONS else Reaction.FATAL
