"""What a member of a classic streams group does about each error of a response."""

from __future__ import annotations

from typing import Final

from kohort.client.heartbeat_errors import HeartbeatErrors, Reaction
from kohort.protocol.errors import ErrorCode

E = ErrorCode
CLASSIC_ERRORS: Final = HeartbeatErrors(
    {
        E.ILLEGAL_GENERATION: (Reaction.REJOIN, ""),
        E.REBALANCE_IN_PROGRESS: (Reaction.RETRY, ""),
        E.FENCED_INSTANCE_ID: (Reaction.FAIL, "two members run with one instance_id; give each its own"),
        E.GROUP_MAX_SIZE_REACHED: (Reaction.FAIL, "stop another member, or raise group.max.size on the brokers"),
        E.INVALID_SESSION_TIMEOUT: (
            Reaction.FAIL,
            "session_timeout_ms has to be between group.min.session.timeout.ms and group.max.session.timeout.ms of the "
            "brokers",
        ),
        E.UNSUPPORTED_VERSION: (Reaction.FAIL, "the brokers are too old for what the member asks for"),
    }
)
"""REBALANCE_IN_PROGRESS is an error of JoinGroup alone: in other responses it is an answer."""
