"""Responses to heartbeats."""

from __future__ import annotations

from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.heartbeat_interval import heartbeat_interval_ms
from kohort.coordinator.modern.partitions import Role, by_topic
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse, TopicPartitions
from kohort.protocol.topic_partition import TopicIdPartition


def heartbeat_response(
    draft: Draft,
    member_id: str,
    current: CurrentAssignment[TopicIdPartition, Role],
    *,
    tells_assignment: bool,
) -> ConsumerGroupHeartbeatResponse:
    """Returns the response to a member.

    Args:
        tells_assignment: whether the member gets its assignment; otherwise it is as before.
    """
    assignment = None
    if tells_assignment:
        assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic(current.assigned).items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=current.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(
            draft.settings,
            moving=draft.is_moving() or draft.has_unresolved(),
            since_assigned_ms=draft.now - draft.assigned_at,
        ),
        assignment=assignment,
    )
