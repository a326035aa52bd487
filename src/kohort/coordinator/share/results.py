"""Results of heartbeats and of administrators' requests, and what the share coordinator is to be asked then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse


@dataclass(frozen=True, slots=True)
class Initialization:
    """States for the share coordinator to initialize.

    Attributes:
        state_epoch: epoch of the states; writes of older ones are fenced from then on.
        start_offsets: where delivery begins, by topic id and partition; -1 where the group's reset policy decides.
    """

    state_epoch: int
    start_offsets: Mapping[UUID, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """The result of a heartbeat.

    Attributes:
        response: for the member.
        initialization: what is to be initialized now; None for nothing.
    """

    response: ShareGroupHeartbeatResponse
    initialization: Initialization | None = None

    @classmethod
    def refused(cls, error: KafkaError) -> HeartbeatResult:
        return cls(ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.detail or None))
