"""What an error of a transaction means for its epoch: an event of `epoch_states`. Pure."""

from __future__ import annotations

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
from kohort.spark.runtime.epoch_states import EpochEvent


def while_sending(error: Exception) -> EpochEvent:
    """Of an error before the commit was asked for: nothing of the transaction can count."""
    match error:
        case CommitFailedError() | TransactionAbortableError() | NotDeliveredError():
            return _by_cause(error)
        case FencedError() | ClosedError():
            return EpochEvent.RESTART
        case AuthenticationError() | UnsupportedError():
            return EpochEvent.STOP
        case ConnectionLostError() | RequestTimeoutError():
            return EpochEvent.SEND_AGAIN
        case KafkaError():
            return _by_code(error)
        case ClientError():
            return EpochEvent.RESTART
        case ValueError() | TypeError():
            return EpochEvent.STOP  # a row that no broker would take
        case _:
            return EpochEvent.RESTART


def while_committing(error: Exception) -> EpochEvent:
    """Of an error of the commit itself."""
    match error:
        case RequestTimeoutError() | ConnectionLostError():
            return EpochEvent.UNANSWERED
        case TransactionAbortableError() | NotDeliveredError() | CommitFailedError():
            return _by_cause(error)
        case AuthenticationError() | UnsupportedError():
            return EpochEvent.STOP
        case _:
            # FencedError above all: the commit may have happened before the producer was fenced.
            return EpochEvent.RESTART


def _by_cause(error: BaseException) -> EpochEvent:
    """It can be aborted, unless a broker gives a reason that no retry mends."""
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, KafkaError) and cause.code.name in _FATAL:
            return EpochEvent.STOP
        cause = cause.__cause__
    return EpochEvent.SEND_AGAIN


def _by_code(error: KafkaError) -> EpochEvent:
    if error.code.name in _FATAL:
        return EpochEvent.STOP
    return EpochEvent.SEND_AGAIN if error.code.retriable else EpochEvent.RESTART


_FATAL = frozenset(
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
"""Errors that a person must mend."""
