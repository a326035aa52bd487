"""The committed offsets of many groups with one request to each coordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.client.administration.group_types import GroupType
from kohort.client.administration.request_router import Failure, Node
from kohort.client.administration.share_offsets import ShareOffset, share_offsets
from kohort.client.errors import raise_for
from kohort.client.membership.offset_requests import BY_NAME
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.share_in_flight import IN_FLIGHT_TAG

Committed = Mapping[TopicPartition, OffsetAndMetadata | ShareOffset]

_BY_GROUP: Final = 8
"""The first version of OffsetFetch with groups."""


async def fetch_many(
    node: Node, group_ids: Sequence[str], types: Mapping[str, GroupType]
) -> dict[str, Committed | Failure]:
    """What groups of one coordinator have committed: each group's partitions, or its error."""
    found: dict[str, Committed | Failure] = {}
    share = [each for each in group_ids if types[each] is GroupType.SHARE]
    others = [each for each in group_ids if types[each] is not GroupType.SHARE]
    if share:
        kind = DescribeShareGroupOffsetsRequest.Group
        groups = [kind(group_id=each, topics=None, unknown_tags={IN_FLIGHT_TAG: b""}) for each in share]
        request = DescribeShareGroupOffsetsRequest(groups=groups)
        answer = await node.ask(request, DescribeShareGroupOffsetsResponse)
        for group in answer.groups:
            try:
                found[group.group_id] = share_offsets(group)
            except KafkaError as error:
                found[group.group_id] = error
    if not others:
        return found
    version = node.version(OffsetFetchRequest, BY_NAME)  # users don't know a deleted topic by its id
    if version >= _BY_GROUP:
        wanted = [OffsetFetchRequest.Group(group_id=each, topics=None) for each in others]
        fetched = await node.ask(OffsetFetchRequest(groups=wanted), OffsetFetchResponse, version)
        return found | {each.group_id: _offsets(each) for each in fetched.groups}
    for each in others:
        one = OffsetFetchRequest(group_id=each, topics=None)
        found[each] = _offsets(await node.ask(one, OffsetFetchResponse, version))
    return found


def offsets_of(group: OffsetFetchResponse | OffsetFetchResponse.Group) -> dict[TopicPartition, OffsetAndMetadata]:
    """A group's committed offsets in a response, sorted by partition.

    Raises:
        KafkaError: the group, or one of its partitions, has an error.
    """
    raise_for(group.error_code)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in group.topics:
        for each in topic.partitions:
            raise_for(each.error_code, f"{topic.name}-{each.partition_index}")
            if each.committed_offset >= 0:
                found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
    return dict(sorted(found.items()))


def _offsets(group: OffsetFetchResponse | OffsetFetchResponse.Group) -> Committed | Failure:
    try:
        return offsets_of(group)
    except KafkaError as error:
        return error
