"""Results of heartbeats."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.protocol.errors import KafkaError
from kohort.protocol.heartbeat_wishes import NO_TIMEOUT
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.topology import InternalTopic


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class HeartbeatResult:
    """The result of a heartbeat. It is cached, so a member gets the same object while nothing changes.

    Attributes:
        response: for the member.
        missing_topics: internal topics to create.
        disconnect_timeout_ms: how long the member's connection may be broken; below 0 until its session ends.
    """

    response: StreamsGroupHeartbeatResponse
    missing_topics: tuple[InternalTopic, ...] = ()
    disconnect_timeout_ms: int = NO_TIMEOUT

    @classmethod
    def refused(cls, error: KafkaError) -> HeartbeatResult:
        return cls(StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.detail))
