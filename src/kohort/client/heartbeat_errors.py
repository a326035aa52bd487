"""What a member of a streams or share group does about an error of a heartbeat: retries, joins again, or fails."""

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
    RETRY_FOR_A_MINUTE = "sends everything again for a minute; then all it has is lost, and the error is raised"
    REJOIN = "is fenced: all it has is lost; when that is closed, it joins again"
    FAIL = "all it has is lost; the error is raised"


E = ErrorCode
_OF_ALL_MEMBERS: Final = {
    E.NONE: (Reaction.ACCEPT, ""),
    E.COORDINATOR_LOAD_IN_PROGRESS: (Reaction.RETRY, ""),
    E.COORDINATOR_NOT_AVAILABLE: (Reaction.FIND_COORDINATOR, ""),
    E.NOT_COORDINATOR: (Reaction.FIND_COORDINATOR, ""),
    E.FENCED_MEMBER_EPOCH: (Reaction.REJOIN, ""),
    E.UNKNOWN_MEMBER_ID: (Reaction.REJOIN, ""),
    E.GROUP_ID_NOT_FOUND: (Reaction.FAIL, "the group has members of another protocol; choose another group_id"),
    E.INCONSISTENT_GROUP_PROTOCOL: (
        Reaction.FAIL,
        "the group has members of another protocol; stop them or choose another group_id",
    ),
    E.GROUP_AUTHORIZATION_FAILED: (Reaction.FAIL, "the user needs READ on the group"),
}


class HeartbeatErrors:
    """The reactions of one kind of member.

    Args:
        others: reactions to errors that only this kind gets, or has advice for.

    Attributes:
        reactions: by error, with what people can do. Other errors are retried if they are retriable, and fail the
            member if not.
    """

    def __init__(self, others: Mapping[ErrorCode, tuple[Reaction, str]]) -> None:
        self.reactions = {**_OF_ALL_MEMBERS, **others}

    def reaction_to(self, code: int, *, joining: bool = True) -> Reaction:
        """Returns what to do about a response with this code; `joining` is whether the member sent epoch 0."""
        try:
            known = ErrorCode(code)
        except ValueError:
            return Reaction.FAIL
        if known is ErrorCode.GROUP_ID_NOT_FOUND and not joining:
            return Reaction.REJOIN  # the group was deleted, or its brokers lost it: joining creates it again
        if known in self.reactions:
            return self.reactions[known][0]
        return Reaction.RETRY if known.retriable else Reaction.FAIL

    def fatal_error(self, code: int, message: str | None) -> Exception:
        """Returns the exception for an error that isn't retried; its text says what to do."""
        error = kafka_error(code, message)
        _, advice = self.reactions.get(error.code, (Reaction.FAIL, ""))
        text = "; ".join(part for part in ((message or "").rstrip(".;"), advice) if part)
        if error.code is ErrorCode.FENCED_INSTANCE_ID:
            return FencedError(f"{error.code.name}: {text}")
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return UnsupportedError(f"{error.code.name}: {text}")
        return kafka_error(code, text or None)
