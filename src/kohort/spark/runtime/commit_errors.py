"""What a lane does about an error: pure."""

from __future__ import annotations

import enum

from kohort.client.errors import (
    AuthenticationError,
    ClientError,
    ClosedError,
    CommitFailedError,
    ConnectionLostError,
    FencedError,
    NotDeliveredError,
    RequestTimeoutError,
    TransactionAbortableError,
    UnsupportedError,
)
from kohort.protocol.errors import KafkaError


class Reaction(enum.Enum):
    """What to do."""

    AGAIN = "abort the transaction, and send the same again with the member's epoch as it is then"
    """Nothing of it counts; what was computed still holds."""
    ANEW = "close the producer, and go on from what is committed"
    """Whether the transaction counts isn't known, or the producer can't go on."""
    ASK = "ask again: the answer is missing"
    """Only the coordinator knows whether the transaction counts."""
    STOP = "stop the application"
    """Trying again won't help."""


def while_sending(error: Exception) -> Reaction:
    """About an error before the commit was asked for: nothing of the transaction can count."""
    match error:
        case CommitFailedError() | TransactionAbortableError() | NotDeliveredError():
            return _by_cause(error)
        case FencedError() | ClosedError():
            return Reaction.ANEW
        case AuthenticationError() | UnsupportedError():
            return Reaction.STOP
        case ConnectionLostError() | RequestTimeoutError():
            return Reaction.AGAIN
        case KafkaError():
            return _by_code(error)
        case ClientError():
            return Reaction.ANEW
        case ValueError() | TypeError():
            return Reaction.STOP  # a row that no broker would take
        case _:
            return Reaction.ANEW


def while_committing(error: Exception) -> Reaction:
    """About an error of the commit itself."""
    match error:
        case RequestTimeoutError() | ConnectionLostError():
            return Reaction.ASK
        case TransactionAbortableError() | NotDeliveredError() | CommitFailedError():
            return _by_cause(error)
        case AuthenticationError() | UnsupportedError():
            return Reaction.STOP
        case _:
            # Above all FencedError: the commit may have happened before the producer was fenced.
            return Reaction.ANEW


def _by_cause(error: BaseException) -> Reaction:
    """What can be aborted, unless a broker says why it won't ever do."""
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, KafkaError) and cause.code.name in _HOPELESS:
            return Reaction.STOP
        cause = cause.__cause__
    return Reaction.AGAIN


def _by_code(error: KafkaError) -> Reaction:
    if error.code.name in _HOPELESS:
        return Reaction.STOP
    return Reaction.AGAIN if error.code.retriable else Reaction.ANEW


_HOPELESS = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "INVALID_TOPIC_EXCEPTION",
        "MESSAGE_TOO_LARGE",
        "OFFSET_METADATA_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION",
    }
)
"""What a person must mend."""
