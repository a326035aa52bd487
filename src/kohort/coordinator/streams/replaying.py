"""Replays records into a streams group."""

from __future__ import annotations

from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.records import metadata_of, read_current_assignment, target_of
from kohort.protocol.message import Data
from kohort.protocol.stored.streams_group_current_member_assignment import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
)
from kohort.protocol.stored.streams_group_member_metadata import (
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
)
from kohort.protocol.stored.streams_group_metadata import StreamsGroupMetadataKey, StreamsGroupMetadataValue
from kohort.protocol.stored.streams_group_target_assignment_member import (
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
)
from kohort.protocol.stored.streams_group_target_assignment_metadata import (
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
)
from kohort.protocol.stored.streams_group_topology import StreamsGroupTopologyKey, StreamsGroupTopologyValue
from kohort.streams.topology_messages import topology_of

KEYS = (
    StreamsGroupMetadataKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTopologyKey,
)
"""The keys of all records of streams groups."""


def replay(group: StreamsGroup, key: Data, value: Data | None) -> bool:
    """Applies a record; returns whether it removes the group."""
    match key, value:
        case StreamsGroupCurrentMemberAssignmentKey(), StreamsGroupCurrentMemberAssignmentValue():
            group.put_current(key.member_id, read_current_assignment(value))
        case StreamsGroupCurrentMemberAssignmentKey(), None:
            group.drop_current(key.member_id)
        case StreamsGroupTargetAssignmentMemberKey(), StreamsGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, target_of(value))
        case StreamsGroupTargetAssignmentMemberKey(), None:
            group.drop_target(key.member_id)
        case StreamsGroupTargetAssignmentMetadataKey(), StreamsGroupTargetAssignmentMetadataValue():
            group.put_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
            group.put_metadata(key.member_id, metadata_of(value))
        case StreamsGroupMemberMetadataKey(), None:
            group.drop_member(key.member_id)
        case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
            group.metadata_hash = value.metadata_hash
            group.validated_topology_epoch = value.validated_topology_epoch
            group.configs = {config.key: config.value for config in value.last_assignment_configs or ()}
            group.put_epoch(value.epoch)
        case StreamsGroupMetadataKey(), None:
            return True
        case StreamsGroupTopologyKey(), StreamsGroupTopologyValue():
            group.topology = topology_of(value)
        case StreamsGroupTopologyKey(), None:
            group.topology = None
    return False
