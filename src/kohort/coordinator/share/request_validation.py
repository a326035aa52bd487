"""Checks of ShareGroupHeartbeat that need no group."""

from __future__ import annotations

from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_MEMBER_EPOCH
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST for a heartbeat that is wrong whatever the group."""
    for name, value in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
        if not request.subscribed_topic_names:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set by a member that joins.")
    elif request.member_epoch < LEAVE_GROUP_MEMBER_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"MemberEpoch is {request.member_epoch}, less than -1.")
