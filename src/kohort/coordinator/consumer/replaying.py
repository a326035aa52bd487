"""Replays records into a consumer group."""

from __future__ import annotations

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.records import metadata_of, read_current_assignment, resolved_of, target_of
from kohort.protocol.message import Data
from kohort.protocol.stored.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kohort.protocol.stored.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from kohort.protocol.stored.consumer_group_metadata import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from kohort.protocol.stored.consumer_group_partition_metadata import ConsumerGroupPartitionMetadataKey
from kohort.protocol.stored.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from kohort.protocol.stored.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from kohort.protocol.stored.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
"""The keys of all records of consumer groups."""


def replay(group: ConsumerGroup, key: Data, value: Data | None) -> bool:
    """Applies a record; returns whether it removes the group."""
    match key, value:
        case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
            group.put_current(key.member_id, read_current_assignment(value))
        case ConsumerGroupCurrentMemberAssignmentKey(), None:
            group.drop_current(key.member_id)
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, target_of(value))
        case ConsumerGroupTargetAssignmentMemberKey(), None:
            group.drop_target(key.member_id)
        case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
            group.put_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            group.put_metadata(key.member_id, metadata_of(value))
        case ConsumerGroupMemberMetadataKey(), None:
            group.drop_member(key.member_id)
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.metadata_hash = value.metadata_hash
            group.put_epoch(value.epoch)
        case ConsumerGroupMetadataKey(), None:
            return True
        case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
            group.put_regex(key.regular_expression, resolved_of(value))
        case ConsumerGroupRegularExpressionKey(), None:
            group.put_regex(key.regular_expression, None)
        case ConsumerGroupPartitionMetadataKey(), _:
            group.has_topics_record = value is not None
    return False
