"""What a client raises, beside `KafkaError` (an error code that a broker answered with)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = [
    "AuthenticationError", "ClientError", "ClosedError", "CommitFailedError", "ConfigError", "ConnectionLostError",
    "FencedError", "NoBrokerError", "NotDeliveredError", "PartialFailureError", "RequestTimeoutError",
    "TransactionAbortableError", "UnsupportedError", "kafka_error", "raise_for",
]  # fmt: skip


class ClientError(Exception):
    """What went wrong on the client's side of the wire."""


class ConfigError(ClientError, ValueError):
    """Settings that can't be: names the setting and what it may be."""


class ConnectionLostError(ClientError, ConnectionError):
    """A connection that couldn't be made or broke: names the broker and why. The request's fate isn't known."""


class NoBrokerError(ConnectionLostError):
    """None of the brokers that are known could be reached in the time allowed."""


class RequestTimeoutError(ClientError, TimeoutError):
    """No answer came in the time allowed."""


class AuthenticationError(ClientError):
    """The broker won't have these credentials, or the other way round. Trying again won't help."""


class UnsupportedError(ClientError):
    """The broker speaks no version of an API that Kohort speaks, or none with what was asked for."""


class ClosedError(ClientError):
    """The client is closed, or is being closed."""


class FencedError(ClientError):
    """Another client has taken this one's place: its group instance id, or its transactional id. It must stop."""


class CommitFailedError(ClientError):
    """Offsets that can't be committed, since the member no longer has the partitions: the group has moved on."""


class RecordError(ClientError):
    """A record, or a whole batch, that can't be read: corrupt, or a deserializer refuses it.

    The consumer stays in front of it, and raises this again, until it is told to go on elsewhere, as with
    `consumer.seek(error.partition, error.next_offset)`.

    Attributes:
        partition, offset: where it is.
        next_offset: the offset after it.
    """

    def __init__(self, partition: TopicPartition, offset: int, next_offset: int, reason: str) -> None:
        super().__init__(f"{partition}, offset {offset}: {reason}; go past it with seek(…, {next_offset})")
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset


class NoOffsetError(ClientError):
    """Partitions that can't be read on, since nothing says where: with auto_offset_reset "none".

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
    """A request for several things, some of which failed.

    Attributes:
        done: what came of those that went well, by what was asked for.
        errors: why the others didn't.
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
    """Records that a producer took and couldn't deliver.

    Attributes:
        records: how many, by topic.
    """

    def __init__(self, records: Mapping[str, int], why: object) -> None:
        super().__init__(records, why)
        self.records = dict(records)
        self._why = why

    def __str__(self) -> str:
        topics = ", ".join(f"{count} of {topic}" for topic, count in sorted(self.records.items()))
        return f"{sum(self.records.values())} records weren't delivered ({topics}): {self._why}"


class TransactionAbortableError(ClientError):
    """The transaction can't be committed: abort it, then begin anew with the same producer."""


def kafka_error(code: int, detail: str | None = None) -> KafkaError:
    """The error of a code in an answer, be it one that Kohort doesn't know."""
    try:
        return KafkaError(ErrorCode(code), detail)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"code {code}" + (f": {detail}" if detail else ""))


def raise_for(code: int, detail: str | None = None) -> None:
    """Raise the `KafkaError` of a code that isn't 0."""
    if code:
        raise kafka_error(code, detail)
