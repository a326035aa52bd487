"""Descriptions of groups, for ShareGroupDescribe."""

from __future__ import annotations

from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.group import Member
from kohort.coordinator.share.group import ShareGroup
from kohort.coordinator.share.member import Role, ShareMetadata
from kohort.coordinator.share.records import by_topic
from kohort.protocol.messages.share_group_describe import Assignment, ShareGroupDescribeResponse, TopicPartitions
from kohort.protocol.topic_partition import TopicIdPartition

_Group = ShareGroupDescribeResponse.Group


def describe(group: ShareGroup, assignor: str, cluster: Cluster) -> _Group:
    return _Group(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[_member(member, cluster) for member in group.members.values()],
    )


def _member(member: Member[ShareMetadata, TopicIdPartition, Role], cluster: Cluster) -> _Group.Member:
    """A member; partitions of topics that are gone are left out, as no name can be given."""
    metadata = member.metadata
    return _Group.Member(
        member_id=member.member_id,
        rack_id=metadata.rack_id,
        member_epoch=member.current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=metadata.topics,
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
                for topic_id, numbers in by_topic(member.current.assigned)
                if (name := cluster.name_of(topic_id)) is not None
            ]
        ),
    )
