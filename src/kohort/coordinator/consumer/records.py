"""Consumer groups in the log: records of types 3 to 8 and 16 of `__consumer_offsets`, as Kafka 4.3 writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.subscriptions import ResolvedRegex
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.partitions import Partitions, Role, by_topic, partitions_of
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.step import Record
from kohort.protocol.stored import consumer_group_current_member_assignment as current
from kohort.protocol.stored import consumer_group_member_metadata as member
from kohort.protocol.stored import consumer_group_metadata as metadata
from kohort.protocol.stored import consumer_group_regular_expression as regular_expression
from kohort.protocol.stored import consumer_group_target_assignment_member as target
from kohort.protocol.stored import consumer_group_target_assignment_metadata as target_epoch
from kohort.protocol.stored.consumer_group_partition_metadata import ConsumerGroupPartitionMetadataKey
from kohort.protocol.topic_partition import TopicIdPartition

_STATES: Final = {MemberState.STABLE: 0, MemberState.UNREVOKED: 1, MemberState.UNRELEASED: 2}
_STATE_OF: Final = {number: state for state, number in _STATES.items()}


def group_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Type 3: the group's epoch, and the topics that it was bumped for."""
    return Record(
        metadata.ConsumerGroupMetadataKey(group_id=group_id),
        metadata.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def topics_tombstone(group_id: str) -> Record:
    """Type 4, in whose stead there is the metadata hash since Kafka 4.1."""
    return Record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member_id: str, given: ConsumerMetadata) -> Record:
    """Type 5: a member's metadata."""
    return Record(
        member.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
        member.ConsumerGroupMemberMetadataValue(
            instance_id=given.instance_id,
            rack_id=given.rack_id,
            client_id=given.client_id,
            client_host=given.client_host,
            subscribed_topic_names=given.topics,
            subscribed_topic_regex=given.regex,
            rebalance_timeout_ms=given.rebalance_timeout_ms,
            server_assignor=given.assignor,
            classic_member_metadata=given.classic,
        ),
    )


def metadata_of(value: member.ConsumerGroupMemberMetadataValue) -> ConsumerMetadata:
    """Returns the metadata of a record of type 5."""
    return ConsumerMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int = 0) -> Record:
    """Type 6: the epoch of the target, and when it was made, in ms since 1970."""
    return Record(
        target_epoch.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        target_epoch.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=assigned_at
        ),
    )


def target_record(group_id: str, member_id: str, partitions: Partitions) -> Record:
    """Type 7: a member's target."""
    return Record(
        target.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        target.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                target.ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic(partitions).items()
            ]
        ),
    )


def target_of(value: target.ConsumerGroupTargetAssignmentMemberValue) -> dict[TopicIdPartition, Role]:
    """Returns the target of a record of type 7."""
    return partitions_of(value.topic_partitions)


def current_assignment_record(
    group_id: str, member_id: str, assignment: CurrentAssignment[TopicIdPartition, Role]
) -> Record:
    """Type 8: a member's current assignment."""
    epochs = assignment.assignment_epochs
    return Record(
        current.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        current.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=assignment.epoch,
            previous_member_epoch=assignment.previous_epoch,
            state=_STATES[assignment.state],
            assigned_partitions=_with_epochs(assignment.assigned, epochs),
            partitions_pending_revocation=_with_epochs(assignment.revoking, epochs),
        ),
    )


def read_current_assignment(
    value: current.ConsumerGroupCurrentMemberAssignmentValue,
) -> CurrentAssignment[TopicIdPartition, Role]:
    """Returns the current assignment of a record of type 8.

    A state that isn't known, a newer server's, counts as waiting for others: the member's next heartbeat finds out.
    Partitions of records without assignment epochs, an older server's, count as assigned in the member's epoch.
    """
    assignment_epochs = {}
    for topic in (*value.assigned_partitions, *value.partitions_pending_revocation):
        epochs = topic.assignment_epochs or (value.member_epoch,) * len(topic.partitions)
        for partition, epoch in zip(topic.partitions, epochs, strict=False):
            assignment_epochs[TopicIdPartition(topic.topic_id, partition)] = epoch
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        _STATE_OF.get(value.state, MemberState.UNRELEASED),
        partitions_of(value.assigned_partitions),
        partitions_of(value.partitions_pending_revocation),
        assignment_epochs,
    )


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> Record:
    """Type 16: the topics that a regular expression matches."""
    return Record(
        regular_expression.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        regular_expression.ConsumerGroupRegularExpressionValue(
            topics=resolved.topics, version=resolved.version, timestamp=resolved.timestamp
        ),
    )


def resolved_of(value: regular_expression.ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    """Returns the topics of a record of type 16."""
    return ResolvedRegex(tuple(value.topics), value.version, value.timestamp)


def regex_tombstone(group_id: str, regex: str) -> Record:
    return Record(
        regular_expression.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    )


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    return [
        Record(current.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(target.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(member.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, regexes: Mapping[str, ResolvedRegex]) -> list[Record]:
    """Returns the tombstones of a group without members."""
    return [
        Record(target_epoch.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        topics_tombstone(group_id),
        Record(metadata.ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _with_epochs(partitions: Partitions, epochs: Mapping[TopicIdPartition, int]) -> list[current.TopicPartitions]:
    return [
        current.TopicPartitions(
            topic_id=topic_id,
            partitions=numbers,
            assignment_epochs=tuple(epochs[TopicIdPartition(topic_id, number)] for number in numbers),
        )
        for topic_id, numbers in by_topic(partitions).items()
    ]
