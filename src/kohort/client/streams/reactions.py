"""What becomes of each error that a heartbeat can be answered with."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from kohort.client.errors import FencedError, UnsupportedError, kafka_error
from kohort.protocol.errors import ErrorCode

__all__ = ["REACTIONS", "Reaction", "fatal_error", "reaction_to"]


class Reaction(enum.Enum):
    """What a member does about an answer."""

    TAKE = "take it"
    AGAIN = "say everything again, after a while"
    FIND_COORDINATOR = "find the coordinator, then say everything again, after a while"
    WAIT = "say everything again for a minute; then all tasks are lost, and the error is raised"
    REJOIN = "all tasks are lost; when they are closed, join anew"
    FAIL = "all tasks are lost; the error is raised"


E = ErrorCode
REACTIONS: Final[Mapping[ErrorCode, tuple[Reaction, str]]] = {
    E.NONE: (Reaction.TAKE, ""),
    E.COORDINATOR_LOAD_IN_PROGRESS: (Reaction.AGAIN, ""),
    E.COORDINATOR_NOT_AVAILABLE: (Reaction.FIND_COORDINATOR, ""),
    E.NOT_COORDINATOR: (Reaction.FIND_COORDINATOR, ""),
    E.FENCED_MEMBER_EPOCH: (Reaction.REJOIN, ""),
    E.UNKNOWN_MEMBER_ID: (Reaction.REJOIN, ""),
    E.STREAMS_INVALID_TOPOLOGY: (Reaction.FAIL, "mend the topology"),
    E.STREAMS_INVALID_TOPOLOGY_EPOCH: (Reaction.FAIL, "mend the topology's epoch"),
    E.STREAMS_TOPOLOGY_FENCED: (Reaction.FAIL, "start the application again with the topology that the group has"),
    E.GROUP_MAX_SIZE_REACHED: (Reaction.FAIL, "stop another member, or raise group.streams.max.size on the brokers"),
    E.UNRELEASED_INSTANCE_ID: (
        Reaction.WAIT,
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
"""Beside the reaction, what people can do. Of other errors, retriable ones are tried again, and the rest fails."""


def reaction_to(code: int, *, joining: bool = True) -> Reaction:
    """What to do about an answer with this code, to a member that joins or one that was in the group."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return Reaction.FAIL
    if known is ErrorCode.GROUP_ID_NOT_FOUND and not joining:
        return Reaction.REJOIN  # the group was deleted, or its brokers have lost it: it can be made again
    if known in REACTIONS:
        return REACTIONS[known][0]
    return Reaction.AGAIN if known.retriable else Reaction.FAIL


def fatal_error(code: int, message: str | None) -> Exception:
    """The exception of an answer that isn't to be tried again; says what to do."""
    error = kafka_error(code, message)
    _, advice = REACTIONS.get(error.code, (Reaction.FAIL, ""))
    told = "; ".join(part for part in ((message or "").rstrip(".;"), advice) if part)
    if error.code is ErrorCode.FENCED_INSTANCE_ID:
        return FencedError(f"{error.code.name}: {told}")
    if error.code is ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedError(f"{error.code.name}: {told}")
    return kafka_error(code, told or None)
