"""Results of heartbeats."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.topology import InternalTopic


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class HeartbeatResult:
    """The result of a heartbeat. It is cached, so a member gets the same object while nothing changes.

    Attributes:
        response: for the member.
        missing_topics: internal topics to create.
    """

    response: StreamsGroupHeartbeatResponse
    missing_topics: tuple[InternalTopic, ...] = ()

    @classmethod
    def refused(cls, error: KafkaError) -> HeartbeatResult:
        return cls(StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.detail))
