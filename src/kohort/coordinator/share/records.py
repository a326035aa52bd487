"""The records of share groups in `__consumer_offsets`: types 10 to 15."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar
from uuid import UUID

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.share.member import Role, ShareMetadata
from kohort.coordinator.share.state_partitions import StatePartitions, Topics, TopicState
from kohort.coordinator.step import Record
from kohort.protocol.schema import Struct
from kohort.protocol.stored import share_group_current_member_assignment as current
from kohort.protocol.stored import share_group_member_metadata as member
from kohort.protocol.stored import share_group_state_partition_metadata as states
from kohort.protocol.stored import share_group_target_assignment_member as target
from kohort.protocol.stored import share_group_target_assignment_metadata as target_epoch
from kohort.protocol.stored.share_group_metadata import ShareGroupMetadataKey, ShareGroupMetadataValue
from kohort.protocol.topic_partition import TopicIdPartition

T = TypeVar("T", bound=Struct)

_STABLE = 0


def member_record(group_id: str, member_id: str, given: ShareMetadata) -> Record:
    """Type 10: a member's metadata."""
    return Record(
        member.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
        member.ShareGroupMemberMetadataValue(
            rack_id=given.rack_id,
            client_id=given.client_id,
            client_host=given.client_host,
            subscribed_topic_names=given.topics,
        ),
    )


def metadata_of(value: member.ShareGroupMemberMetadataValue) -> ShareMetadata:
    """Returns the metadata of a record of type 10."""
    return ShareMetadata(value.rack_id, value.client_id, value.client_host, tuple(value.subscribed_topic_names))


def group_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Type 11: the group's epoch, and the topics that it was bumped for."""
    return Record(
        ShareGroupMetadataKey(group_id=group_id), ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    )


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int = 0) -> Record:
    """Type 12: the epoch of the target, and when it was made, in ms since 1970."""
    return Record(
        target_epoch.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        target_epoch.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_at),
    )


def target_record(group_id: str, member_id: str, partitions: Mapping[TopicIdPartition, Role]) -> Record:
    """Type 13: a member's target."""
    topic = target.ShareGroupTargetAssignmentMemberValue.TopicPartition
    return Record(
        target.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        target.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[topic(topic_id=each, partitions=numbers) for each, numbers in by_topic(partitions)]
        ),
    )


def target_of(value: target.ShareGroupTargetAssignmentMemberValue) -> dict[TopicIdPartition, Role]:
    """Returns the target of a record of type 13."""
    return _partitions((each.topic_id, each.partitions) for each in value.topic_partitions)


def current_assignment_record(
    group_id: str, member_id: str, assignment: CurrentAssignment[TopicIdPartition, Role]
) -> Record:
    """Type 14: a member's current assignment."""
    return Record(
        current.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        current.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=assignment.epoch,
            previous_member_epoch=assignment.previous_epoch,
            state=_STABLE,
            assigned_partitions=[
                current.TopicPartitions(topic_id=each, partitions=numbers)
                for each, numbers in by_topic(assignment.assigned)
            ],
        ),
    )


def read_current_assignment(
    value: current.ShareGroupCurrentMemberAssignmentValue,
) -> CurrentAssignment[TopicIdPartition, Role]:
    """Returns the current assignment of a record of type 14; members are always stable."""
    assigned = _partitions((each.topic_id, each.partitions) for each in value.assigned_partitions)
    return CurrentAssignment(value.member_epoch, value.previous_member_epoch, assigned=assigned)


def states_record(group_id: str, partitions: StatePartitions) -> Record:
    """Type 15: which partitions have a state at the share coordinator."""
    return Record(
        states.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        states.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_topics(partitions.initializing),
            initialized_topics=_topics(partitions.initialized),
            deleting_topics=[
                states.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in partitions.deleting.items()
            ],
        ),
    )


def states_of(value: states.ShareGroupStatePartitionMetadataValue) -> StatePartitions:
    """Returns what a record of type 15 says."""

    def topics(listed: list[states.TopicPartitionsInfo]) -> Topics:
        return {each.topic_id: TopicState(each.topic_name, frozenset(each.partitions)) for each in listed}

    return StatePartitions(
        topics(value.initializing_topics),
        topics(value.initialized_topics),
        {each.topic_id: each.topic_name for each in value.deleting_topics},
    )


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    return [
        Record(current.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(target.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(member.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[Record]:
    """Returns the tombstones of a group without members."""
    return [
        Record(target_epoch.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        Record(states.ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        Record(ShareGroupMetadataKey(group_id=group_id), None),
    ]


def by_topic(partitions: Iterable[TopicIdPartition]) -> list[tuple[UUID, tuple[int, ...]]]:
    """The partitions of each topic, both in order."""
    found: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        found.setdefault(topic_id, []).append(partition)
    return [(topic_id, tuple(numbers)) for topic_id, numbers in found.items()]


def _partitions(listed: Iterable[tuple[UUID, Iterable[int]]]) -> dict[TopicIdPartition, Role]:
    return {TopicIdPartition(topic_id, each): Role.SHARED for topic_id, numbers in listed for each in numbers}


def _topics(topics: Topics) -> list[states.TopicPartitionsInfo]:
    return [
        states.TopicPartitionsInfo(topic_id=topic_id, topic_name=each.name, partitions=tuple(sorted(each.partitions)))
        for topic_id, each in topics.items()
    ]
