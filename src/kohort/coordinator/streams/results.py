"""What `StreamsGroups.heartbeat` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.topology import InternalTopic

__all__ = ["HeartbeatResult"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class HeartbeatResult:
    """The answer to a heartbeat. A member with nothing new gets the same object each time.

    Attributes:
        response: what the member is told.
        missing_topics: internal topics that are to be created.
    """

    response: StreamsGroupHeartbeatResponse
    missing_topics: tuple[InternalTopic, ...] = ()

    @classmethod
    def refused(cls, error: KafkaError) -> HeartbeatResult:
        """The answer that something was wrong."""
        return cls(StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.detail))
