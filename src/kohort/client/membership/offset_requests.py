"""OffsetCommit and OffsetFetch: requests in any version, by topic names or ids, and their responses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition, by_topic
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.schema import NO_UUID

BY_NAME: Final = 9
"""The last version with names of topics."""
BY_ID: Final = 10
"""The first version with ids of topics."""

_SEVERAL_GROUPS: Final = 8
_STABLE: Final = 7

Ids = Mapping[str, UUID]
"""Ids of topics by name."""


def commit_request(
    offsets: Mapping[TopicPartition, OffsetAndMetadata], metadata: GroupMetadata, ids: Ids
) -> OffsetCommitRequest:
    """Returns the request for any version; in those with ids, `ids` has the ids of all topics."""
    topics: dict[str, list[OffsetCommitRequest.Topic.Partition]] = defaultdict(list)
    for (topic, number), at in sorted(offsets.items()):
        topics[topic].append(
            OffsetCommitRequest.Topic.Partition(
                partition_index=number,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                committed_metadata=at.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=metadata.group_id,
        generation_id_or_member_epoch=metadata.generation,
        member_id=metadata.member_id,
        group_instance_id=metadata.group_instance_id if metadata.generation >= 0 else None,
        topics=[
            OffsetCommitRequest.Topic(name=topic, topic_id=ids.get(topic, NO_UUID), partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )


def commit_codes(
    response: OffsetCommitResponse, partitions: Collection[TopicPartition], ids: Ids
) -> dict[TopicPartition, int]:
    names = {topic_id: name for name, topic_id in ids.items()}
    codes = {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    return {partition: codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in partitions}


def fetch_request(
    partitions: Iterable[TopicPartition], metadata: GroupMetadata, ids: Ids, version: int, *, consumer_group: bool
) -> OffsetFetchRequest:
    """Returns the request in a version. The broker waits for open transactions.

    Args:
        metadata: the member.
        ids: in versions with ids, the ids of all topics.
        consumer_group: whether the group has the consumer protocol, which checks the member.
    """
    topics = by_topic(partitions)
    if version < _SEVERAL_GROUPS:
        return OffsetFetchRequest(
            group_id=metadata.group_id,
            topics=[
                OffsetFetchRequest.Topic(name=topic, partition_indexes=numbers) for topic, numbers in topics.items()
            ],
            require_stable=version >= _STABLE,
        )
    member = consumer_group and metadata.generation > 0
    group = OffsetFetchRequest.Group(
        group_id=metadata.group_id,
        member_id=metadata.member_id if member else None,
        member_epoch=metadata.generation if member else -1,
        topics=[
            OffsetFetchRequest.Group.Topic(name=topic, topic_id=ids.get(topic, NO_UUID), partition_indexes=numbers)
            for topic, numbers in topics.items()
        ],
    )
    return OffsetFetchRequest(groups=[group], require_stable=True)


def fetched_offsets(
    response: OffsetFetchResponse, partitions: Collection[TopicPartition], ids: Ids
) -> tuple[int, dict[TopicPartition, tuple[int, OffsetAndMetadata | None]]]:
    """Returns the group's error code; and each partition's error code and offset, None if there is none."""
    names = {topic_id: name for name, topic_id in ids.items()}
    answers: dict[TopicPartition, tuple[int, OffsetAndMetadata | None]] = {}
    code = response.error_code
    for group in response.groups:
        code = group.error_code
        for topic in group.topics:
            name = topic.name or names.get(topic.topic_id, "")
            for each in topic.partitions:
                at = OffsetAndMetadata(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
                answers[TopicPartition(name, each.partition_index)] = each.error_code, at
    for old in response.topics:
        for one in old.partitions:
            at = OffsetAndMetadata(one.committed_offset, one.committed_leader_epoch, one.metadata or "")
            answers[TopicPartition(old.name, one.partition_index)] = one.error_code, at
    found = {}
    for partition in partitions:
        error, offset = answers.get(partition, (ErrorCode.UNKNOWN_SERVER_ERROR, None))
        found[partition] = error, offset if offset is not None and offset.offset >= 0 else None
    return code, found
