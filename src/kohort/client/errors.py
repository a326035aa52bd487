"""The exceptions of clients, beside `KafkaError` (an error code in a response)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.client.types import TopicPartition
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = [
    "AuthenticationError", "ClientError", "ClosedError", "CommitFailedError", "ConfigError", "ConnectionLostError",
    "FencedError", "NoBrokerError", "NotDeliveredError", "PartialFailureError", "RequestTimeoutError",
    "TransactionAbortableError", "UnsupportedError", "is_retriable", "kafka_error", "raise_for",
]  # fmt: skip


class ClientError(Exception):
    """The base class of errors on the client's side."""


class ConfigError(ClientError, ValueError):
    """Invalid settings: names the setting and its valid values."""


class ConnectionLostError(ClientError, ConnectionError):
    """A connection couldn't be made, or broke: names the broker and why. The request may have been handled or not."""


class NoBrokerError(ConnectionLostError):
    """None of the known brokers could be reached in the time allowed."""


class RequestTimeoutError(ClientError, TimeoutError):
    """No response came in the time allowed."""


class AuthenticationError(ClientError):
    """The broker refuses the client's credentials or certificate, or the client the broker's. Not retriable."""


class UnsupportedError(ClientError):
    """The broker has no version of an API that Kohort has, or none with the needed fields."""


class ClosedError(ClientError):
    """The client is closed, or is being closed."""


class FencedError(ClientError):
    """Fenced: another client has this one's group instance id or transactional id. This one must stop."""


class CommitFailedError(ClientError):
    """Offsets can't be committed: the group has rebalanced, and the member no longer has the partitions."""


class RecordError(ClientError):
    """A record or batch can't be read: it's corrupt, or a deserializer fails.

    The consumer stays before it, and raises this again, until it moves, as with
    `consumer.seek(error.partition, error.next_offset)`.

    Attributes:
        partition, offset: where it is.
        next_offset: the offset after it.
        reason: what is wrong with it.
    """

    def __init__(self, partition: TopicPartition, offset: int, next_offset: int, reason: str) -> None:
        super().__init__(f"{partition}, offset {offset}: {reason}; go past it with seek(…, {next_offset})")
        self.reason = reason
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset


class SharedRecordError(ClientError):
    """A record that a share group has handed out can't be read: it's corrupt, or a deserializer fails.

    The loop may go on. What is corrupt was rejected, so that no member gets it again; a record that a deserializer
    fails on is released, or in the explicit mode still to be acknowledged.

    Attributes:
        partition: where it is.
        first_offset, last_offset: one record, or all of a corrupt batch.
    """

    def __init__(self, partition: TopicPartition, first_offset: int, last_offset: int, reason: str) -> None:
        offsets = f"offset {first_offset}" + ("" if last_offset == first_offset else f" to {last_offset}")
        super().__init__(f"{partition}, {offsets}: {reason}")
        self.partition = partition
        self.first_offset = first_offset
        self.last_offset = last_offset


class NoOffsetError(ClientError):
    """Partitions have no offset to go on from, with auto_offset_reset "none".

    Attributes:
        partitions: with the offset that the broker no longer has; None where there was none at all.
    """

    def __init__(self, partitions: Mapping[TopicPartition, int | None], reason: str) -> None:
        places = ", ".join(
            str(partition) + ("" if offset is None else f" (offset {offset})")
            for partition, offset in sorted(partitions.items())
        )
        super().__init__(f'{places}: {reason}, and auto_offset_reset is "none": seek to an offset, or set it')
        self.partitions = dict(partitions)


class PartialFailureError(ClientError):
    """A request for several keys, some of which failed.

    Attributes:
        done: the results of those that succeeded, by key.
        errors: of the others, by key.
    """

    def __init__(self, done: Mapping[Any, Any], errors: Mapping[Any, Exception]) -> None:
        super().__init__(done, errors)
        self.done = dict(done)
        self.errors = dict(errors)

    def __str__(self) -> str:
        shown = "; ".join(f"{subject}: {error}" for subject, error in list(self.errors.items())[:5])
        return f"{len(self.errors)} of {len(self.errors) + len(self.done)} failed: {shown}" + (
            "; …" if len(self.errors) > 5 else ""
        )


class NotDeliveredError(ClientError):
    """Records of a producer weren't delivered.

    Attributes:
        records: how many, by topic.
    """

    def __init__(self, records: Mapping[str, int], why: object) -> None:
        super().__init__(records, why)
        self.records = dict(records)
        self._why = why

    def __str__(self) -> str:
        lost = sum(self.records.values())
        topics = ", ".join(f"{count} of {topic}" for topic, count in sorted(self.records.items()))
        return f"{several(lost, 'record')} {'wasn' if lost == 1 else 'weren'}'t delivered ({topics}): {self._why}"


class TransactionAbortableError(ClientError):
    """The transaction can't be committed: abort it, then begin another with the same producer."""


def kafka_error(code: int, detail: str | None = None) -> KafkaError:
    """Returns the error of a code in a response, also of an unknown code."""
    try:
        return KafkaError(ErrorCode(code), detail)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"code {code}" + (f": {detail}" if detail else ""))


def raise_for(code: int, detail: str | None = None) -> None:
    """Raises the `KafkaError` of a code that isn't 0."""
    if code:
        raise kafka_error(code, detail)


def is_retriable(error: Exception) -> bool:
    """Whether a retry of the request may succeed."""
    if isinstance(error, KafkaError):
        return error.code.retriable
    return isinstance(error, ConnectionLostError | RequestTimeoutError)
