"""The start offsets of share groups, which have APIs of their own (KIP-932, KIP-1226)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kohort.client.administration.request_router import Node, Outcomes, outcomes_of
from kohort.client.errors import raise_for
from kohort.client.types import TopicPartition, by_topic
from kohort.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kohort.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from kohort.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kohort.protocol.share_in_flight import IN_FLIGHT_TAG, InFlight, decode_in_flight


class ShareOffset(NamedTuple):
    """What a share group has of a partition.

    Attributes:
        start: its start offset, of the first record that isn't done.
        leader_epoch: of the partition.
        lag: records that aren't acknowledged; -1: unknown.
        in_flight: what became of the records that were handed out, where the broker tells: Kohort's do.
    """

    start: int
    leader_epoch: int
    lag: int
    in_flight: tuple[InFlight, ...] = ()


async def fetch_share(node: Node, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Returns the start offsets of all partitions for which the group has state."""
    kind = DescribeShareGroupOffsetsRequest.Group
    group_request = kind(group_id=group_id, topics=None, unknown_tags={IN_FLIGHT_TAG: b""})
    answer = await node.ask(DescribeShareGroupOffsetsRequest(groups=[group_request]), DescribeShareGroupOffsetsResponse)
    return share_offsets(answer.groups[0])


def share_offsets(group: DescribeShareGroupOffsetsResponse.Group) -> dict[TopicPartition, ShareOffset]:
    """Returns the start offsets that a response has of a group.

    Raises:
        KafkaError: the group, or one of its partitions, has an error.
    """
    raise_for(group.error_code, group.error_message)
    found: dict[TopicPartition, ShareOffset] = {}
    for topic in group.topics:
        for each in topic.partitions:
            raise_for(each.error_code, f"{topic.topic_name}-{each.partition_index}: {each.error_message or ''}")
            if each.start_offset >= 0:
                at = TopicPartition(topic.topic_name, each.partition_index)
                found[at] = ShareOffset(each.start_offset, each.leader_epoch, each.lag, _in_flight(each.unknown_tags))
    return dict(sorted(found.items()))


def _in_flight(tags: Mapping[int, bytes] | None) -> tuple[InFlight, ...]:
    """Returns what a broker tells in a field of Kohort's own; nothing if it isn't Kohort's."""
    try:
        return tuple(decode_in_flight(tags[IN_FLIGHT_TAG])) if tags and IN_FLIGHT_TAG in tags else ()
    except ValueError:
        return ()


async def alter_share(
    node: Node, group_id: str, *, starts: Mapping[TopicPartition, int]
) -> Outcomes[TopicPartition, None]:
    """Alters start offsets of a group without members."""
    kind = AlterShareGroupOffsetsRequest.Topic
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            kind(
                topic_name=topic,
                partitions=[
                    kind.Partition(partition_index=number, start_offset=starts[TopicPartition(topic, number)])
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(starts).items()
        ],
    )
    answer = await node.ask(request, AlterShareGroupOffsetsResponse)
    raise_for(answer.error_code, answer.error_message)
    return outcomes_of(
        (TopicPartition(topic.topic_name, each.partition_index), each.error_code, each.error_message)
        for topic in answer.responses
        for each in topic.partitions
    )


async def delete_share(
    node: Node, group_id: str, *, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, None]:
    """Deletes the offsets of the partitions' topics, of a group without members."""
    numbers = by_topic(partitions)
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=[DeleteShareGroupOffsetsRequest.Topic(topic_name=topic) for topic in numbers]
    )
    answer = await node.ask(request, DeleteShareGroupOffsetsResponse)
    raise_for(answer.error_code, answer.error_message)
    return outcomes_of(
        (TopicPartition(topic.topic_name, number), topic.error_code, topic.error_message)
        for topic in answer.responses
        for number in numbers.get(topic.topic_name, ())
    )
