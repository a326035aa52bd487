"""The result of a coordinator's operation: records to append, then answers (Kafka's CoordinatorResult).

A coordinator only decides. The runtime appends the records of a step to the coordinator's log as one batch, replays
each into the coordinator's state, applies what else changes, and then gives the answers. If the append fails nothing
changes, and it goes on with the step that `failed` returns. So the state never differs from what a restart would make
of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Data

__all__ = ["Answer", "Client", "Record", "Reply", "Step", "append_error", "first_batch"]

_BATCH_BYTES: Final = 256 * 1024  # well below what a log takes as one batch

_APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

Reply = Callable[[Any], None]
"""Takes the response to a request; called exactly once."""


class Client(NamedTuple):
    """The sender of a request.

    Attributes:
        client_id: the name that the client gives itself.
        version: the request's version of its API.
        principal: who it is, such as "User:alice"; "" if that makes no difference.
    """

    client_id: str = ""
    host: str = ""
    version: int = 0
    principal: str = ""


class Record(NamedTuple):
    """A record of a coordinator's topic; without a value it is a tombstone."""

    key: Data
    value: Data | None


class Answer(NamedTuple):
    reply: Reply
    response: Any


@dataclass(slots=True)
class Step:
    """The result of an operation.

    Attributes:
        records: appended atomically, then replayed, in this order.
        answers: given when the records are in the log.
        failed: gives the step to take instead if the append failed, from an error that clients understand
            (`append_error`); None where no answer depends on it. Also called if the sync failed after `apply`.
        producer: producer id and epoch, if the records belong to a transaction: they are appended as its batch.
        apply: changes soft state, which no records tell; called once the records are replayed.
    """

    records: list[Record] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    failed: Callable[[ErrorCode], Step] | None = None
    producer: tuple[int, int] | None = None
    apply: Callable[[], None] | None = None


def first_batch(records: Iterable[Record]) -> list[Record]:
    """As many of these as a log takes in one batch, and at least one if there are any.

    For operations that run periodically, such as expiration: the next run does the rest.
    """
    batch: list[Record] = []
    size = 0
    for record in records:
        size += sum(len(data.encode(data.__message__.versions[-1])) for data in record if data is not None)
        if batch and size > _BATCH_BYTES:
            break
        batch.append(record)
    return batch


def append_error(code: ErrorCode) -> ErrorCode:
    """The error for clients when a coordinator's record could not be appended; the same as Kafka's."""
    return _APPEND_ERRORS.get(code, code)
