"""What a member does about each error of a heartbeat: retries, is fenced and joins again, or fails."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from kohort.client.errors import FencedError, UnsupportedError, kafka_error
from kohort.protocol.errors import ErrorCode


class Reaction(enum.Enum):
    """What a member does about a response."""

    ACCEPT = "applies it"
    RETRY = "sends everything again, after a pause"
    FIND_COORDINATOR = "finds the coordinator again, then sends everything again, after a pause"
    RETRY_FOR_A_MINUTE = "sends everything again for a minute; then all tasks are lost, and the error is raised"
    REJOIN = "is fenced: all tasks are lost; when they are closed, it joins again"
    FAIL = "all tasks are lost; the error is raised"


E = ErrorCode
HEARTBEAT_ERRORS: Final[Mapping[ErrorCode, tuple[Reaction, str]]] = {
    E.NONE: (Reaction.ACCEPT, ""),
    E.COORDINATOR_LOAD_IN_PROGRESS: (Reaction.RETRY, ""),
    E.COORDINATOR_NOT_AVAILABLE: (Reaction.FIND_COORDINATOR, ""),
    E.NOT_COORDINATOR: (Reaction.FIND_COORDINATOR, ""),
    E.FENCED_MEMBER_EPOCH: (Reaction.REJOIN, ""),
    E.UNKNOWN_MEMBER_ID: (Reaction.REJOIN, ""),
    E.STREAMS_INVALID_TOPOLOGY: (Reaction.FAIL, "mend the topology"),
    E.STREAMS_INVALID_TOPOLOGY_EPOCH: (Reaction.FAIL, "mend the topology's epoch"),
    E.STREAMS_TOPOLOGY_FENCED: (Reaction.FAIL, "start the application again with the topology that the group has"),
    E.GROUP_MAX_SIZE_REACHED: (Reaction.FAIL, "stop another member, or raise group.streams.max.size on the brokers"),
    E.UNRELEASED_INSTANCE_ID: (
        Reaction.RETRY_FOR_A_MINUTE,
        "nothing if the member with this instance_id died: its session ends soon; if it lives, stop it",
    ),
    E.FENCED_INSTANCE_ID: (Reaction.FAIL, "two members run with one instance_id; give each its own"),
    E.UNSUPPORTED_VERSION: (
        Reaction.FAIL,
        "the brokers have no streams groups: they take Apache Kafka 4.2 or kohort serve, and streams.version 1",
    ),
    E.INVALID_REQUEST: (
        Reaction.FAIL,
        "all members need the same topology, and the brokers must support what it and the member ask for",
    ),
    E.GROUP_ID_NOT_FOUND: (Reaction.FAIL, "the group has members of another protocol; choose another group_id"),
    E.INCONSISTENT_GROUP_PROTOCOL: (
        Reaction.FAIL,
        "the group has members of another protocol; stop them or choose another group_id",
    ),
    E.GROUP_AUTHORIZATION_FAILED: (Reaction.FAIL, "the user needs READ on the group"),
    E.TOPIC_AUTHORIZATION_FAILED: (
        Reaction.FAIL,
        "the user needs DESCRIBE on all topics of the topology, and CREATE for internal ones",
    ),
}
"""The reaction, and what people can do. Other errors are retried if they are retriable, and fail the member if not."""


def reaction_to(code: int, *, joining: bool = True) -> Reaction:
    """Returns what to do about a response with this code; `joining` is whether the member sent epoch 0."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return Reaction.FAIL
    if known is ErrorCode.GROUP_ID_NOT_FOUND and not joining:
        return Reaction.REJOIN  # the group was deleted, or its brokers lost it: joining creates it again
    if known in HEARTBEAT_ERRORS:
        return HEARTBEAT_ERRORS[known][0]
    return Reaction.RETRY if known.retriable else Reaction.FAIL


def fatal_error(code: int, message: str | None) -> Exception:
    """Returns the exception for an error that isn't retried; its text says what to do."""
    error = kafka_error(code, message)
    _, advice = HEARTBEAT_ERRORS.get(error.code, (Reaction.FAIL, ""))
    text = "; ".join(part for part in ((message or "").rstrip(".;"), advice) if part)
    if error.code is ErrorCode.FENCED_INSTANCE_ID:
        return FencedError(f"{error.code.name}: {text}")
    if error.code is ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedError(f"{error.code.name}: {text}")
    return kafka_error(code, text or None)
