"""What each error code of a produce response means for the batch, as one table."""

from __future__ import annotations

import enum
from typing import Final

from kohort.protocol.errors import ErrorCode


class Verdict(enum.Enum):
    """What a response means for its batch."""

    WRITTEN = "it is in the log"
    RETRY = "send it again"
    LEADER_MOVED = "refresh metadata, then send it again"
    SPLIT = "send it again in two halves"
    OUT_OF_ORDER = "the broker misses a batch before it"
    UNKNOWN_PRODUCER = "the broker doesn't know the producer any more"
    REFUSED = "it is not in the log and never will be"
    STALE_EPOCH = "refused, and the producer's epoch is an old one"
    FATAL = "refused, and the producer can't go on"


VERDICTS: Final[dict[ErrorCode, Verdict]] = {
    ErrorCode.NONE: Verdict.WRITTEN,
    # An earlier attempt was written; the broker has forgotten its offset.
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Verdict.WRITTEN,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.LEADER_MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.LEADER_MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.LEADER_MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Verdict.LEADER_MOVED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.LEADER_MOVED,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.LEADER_MOVED,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.LEADER_MOVED,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.LEADER_MOVED,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.LEADER_MOVED,
    ErrorCode.LISTENER_NOT_FOUND: Verdict.LEADER_MOVED,
    ErrorCode.NETWORK_EXCEPTION: Verdict.LEADER_MOVED,
    ErrorCode.MESSAGE_TOO_LARGE: Verdict.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Verdict.SPLIT,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.OUT_OF_ORDER,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.UNKNOWN_PRODUCER,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.STALE_EPOCH,
    ErrorCode.PRODUCER_FENCED: Verdict.FATAL,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Verdict.FATAL,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Verdict.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Verdict.FATAL,
}
"""Codes that aren't here are sent again if Kafka calls them retriable, and refused otherwise."""

DOUBTFUL: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Codes after which the batch may or may not be in the log."""


def verdict_of(code: ErrorCode) -> Verdict:
    """Returns what an error code of a produce response means."""
    verdict = VERDICTS.get(code)
    if verdict is None:
        verdict = Verdict.RETRY if code.retriable else Verdict.REFUSED
    return verdict
