"""What each error of a produce answer means for the batch, as one table."""

from __future__ import annotations

import enum
from typing import Final

from kohort.protocol.errors import ErrorCode

__all__ = ["DOUBTFUL", "VERDICTS", "Verdict", "verdict_of"]


class Verdict(enum.Enum):
    """What to do about an answered batch."""

    WRITTEN = "it is in the log"
    RETRY = "send it again"
    MOVED = "ask for the leader, then send it again"
    SPLIT = "send it again in two halves"
    GAP = "the broker misses something before it"
    FORGOTTEN = "the broker doesn't know the producer any more"
    REFUSED = "it is not in the log and never will be"
    STALE = "refused, and the producer's epoch is an old one"
    FATAL = "refused, and the producer can't go on"


VERDICTS: Final[dict[ErrorCode, Verdict]] = {
    ErrorCode.NONE: Verdict.WRITTEN,
    # An earlier attempt got there. Its offset is forgotten; the records aren't.
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Verdict.WRITTEN,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Verdict.MOVED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.MOVED,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.MOVED,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.MOVED,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.MOVED,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.MOVED,
    ErrorCode.LISTENER_NOT_FOUND: Verdict.MOVED,
    ErrorCode.NETWORK_EXCEPTION: Verdict.MOVED,
    ErrorCode.MESSAGE_TOO_LARGE: Verdict.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Verdict.SPLIT,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.GAP,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.FORGOTTEN,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.STALE,
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
"""Codes that leave open whether the batch is in the log."""


def verdict_of(code: ErrorCode) -> Verdict:
    """What an error code of a partition's produce answer means."""
    verdict = VERDICTS.get(code)
    if verdict is None:
        verdict = Verdict.RETRY if code.retriable else Verdict.REFUSED
    return verdict
