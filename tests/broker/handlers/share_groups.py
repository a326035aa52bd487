"""Share groups through handlers: members that join, and requests for their offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kohort.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kohort.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.broker.handlers.conftest import Ask

GROUP = "g"


def heartbeat(
    member_id: str = "m", epoch: int = 0, *topics: str, group_id: str = GROUP, rack_id: str | None = None
) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rack_id=rack_id,
        subscribed_topic_names=topics or None,
    )


def join(ask: Ask, member_id: str = "m", *topics: str, group_id: str = GROUP) -> int:
    """A member joins, and has its partitions initialized and assigned; returns its epoch."""
    epoch = -1
    response: Any = ask(heartbeat(member_id, 0, *topics, group_id=group_id))
    while response.member_epoch != epoch:
        assert response.error_code == ErrorCode.NONE, response
        epoch = response.member_epoch
        response = ask(heartbeat(member_id, epoch, group_id=group_id))
    return epoch


def leave(ask: Ask, member_id: str = "m", group_id: str = GROUP) -> None:
    assert ask(heartbeat(member_id, -1, group_id=group_id)).error_code == ErrorCode.NONE


def alter(offsets: Mapping[str, Mapping[int, int]], group_id: str = GROUP) -> AlterShareGroupOffsetsRequest:
    topic = AlterShareGroupOffsetsRequest.Topic
    return AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            topic(
                topic_name=name,
                partitions=[
                    topic.Partition(partition_index=index, start_offset=offset) for index, offset in wanted.items()
                ],
            )
            for name, wanted in offsets.items()
        ],
    )


def delete_offsets(*names: str, group_id: str = GROUP) -> DeleteShareGroupOffsetsRequest:
    topics = [DeleteShareGroupOffsetsRequest.Topic(topic_name=name) for name in names]
    return DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics)


def describe_offsets(
    topics: Mapping[str, tuple[int, ...]] | None = None, *group_ids: str
) -> DescribeShareGroupOffsetsRequest:
    group = DescribeShareGroupOffsetsRequest.Group
    wanted = (
        None
        if topics is None
        else [group.Topic(topic_name=name, partitions=partitions) for name, partitions in topics.items()]
    )
    return DescribeShareGroupOffsetsRequest(
        groups=[group(group_id=group_id, topics=wanted) for group_id in group_ids or (GROUP,)]
    )


def offsets_of(group: Any) -> dict[str, dict[int, tuple[int, int, int]]]:
    """Start offset, lag and error of each partition in a response, by topic."""
    return {
        topic.topic_name: {
            part.partition_index: (part.start_offset, part.lag, part.error_code) for part in topic.partitions
        }
        for topic in group.topics
    }
