"""What a client raises, beside `KafkaError` (an error code that a broker answered with)."""

from __future__ import annotations

from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = [
    "AuthenticationError", "ClientError", "ClosedError", "CommitFailedError", "ConfigError", "ConnectionLostError",
    "FencedError", "NoBrokerError", "RequestTimeoutError", "UnsupportedError", "kafka_error", "raise_for",
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
