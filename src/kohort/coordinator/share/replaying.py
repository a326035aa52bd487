"""Replays records into a share group."""

from __future__ import annotations

from kohort.coordinator.share.group import ShareGroup
from kohort.coordinator.share.records import metadata_of, read_current_assignment, states_of, target_of
from kohort.coordinator.share.state_partitions import StatePartitions
from kohort.protocol.message import Data
from kohort.protocol.stored.share_group_current_member_assignment import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
)
from kohort.protocol.stored.share_group_member_metadata import (
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
)
from kohort.protocol.stored.share_group_metadata import ShareGroupMetadataKey, ShareGroupMetadataValue
from kohort.protocol.stored.share_group_state_partition_metadata import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)
from kohort.protocol.stored.share_group_target_assignment_member import (
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
)
from kohort.protocol.stored.share_group_target_assignment_metadata import (
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

KEYS = (
    ShareGroupMetadataKey,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)
"""The keys of all records of share groups."""


def replay(group: ShareGroup, key: Data, value: Data | None) -> bool:
    """Applies a record; returns whether it removes the group."""
    match key, value:
        case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
            group.put_current(key.member_id, read_current_assignment(value))
        case ShareGroupCurrentMemberAssignmentKey(), None:
            group.drop_current(key.member_id)
        case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, target_of(value))
        case ShareGroupTargetAssignmentMemberKey(), None:
            group.drop_target(key.member_id)
        case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
            group.put_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
            group.put_metadata(key.member_id, metadata_of(value))
        case ShareGroupMemberMetadataKey(), None:
            group.drop_member(key.member_id)
        case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
            group.states = states_of(value)
        case ShareGroupStatePartitionMetadataKey(), None:
            group.states = StatePartitions()
        case ShareGroupMetadataKey(), ShareGroupMetadataValue():
            group.metadata_hash = value.metadata_hash
            group.put_epoch(value.epoch)
        case ShareGroupMetadataKey(), None:
            return True
    return False
