"""DescribeShareGroupOffsets: start offsets and lags of share groups.

- v1: lags

Whoever asks for it is told what is in flight, too (`kohort.protocol.share_in_flight`).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, map_reply, when_replied
from kohort.broker.share_requests import in_flight_tags
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kohort.protocol.schema import NO_UUID
from kohort.protocol.share_in_flight import IN_FLIGHT_TAG

SERVED: Final = Served(DescribeShareGroupOffsetsRequest, versions=(0, 1), max_items=ONE_STEP)

Response = DescribeShareGroupOffsetsResponse
_Group = Response.Group


def handle(request: DescribeShareGroupOffsetsRequest, context: Context) -> Slices[Response | Reply[Response]]:
    """Describes each group once; topics that the client may not describe are left out, or refused if they are named."""
    wanted = {group.group_id: group for group in request.groups}
    described: dict[str, _Group] = {}
    reply: Reply[Response] = Reply()

    def receive(group: _Group) -> None:
        described[group.group_id] = group
        if len(described) == len(wanted):
            reply(Response(groups=[described[group_id] for group_id in wanted]))

    for group in wanted.values():
        described_now = _describe(group, context)
        if IN_FLIGHT_TAG in (group.unknown_tags or ()):
            described_now = map_reply(described_now, partial(_with_in_flight, context))
        when_replied(described_now, receive)
        yield
    if not wanted:
        return Response(groups=[])
    return reply


def _describe(wanted: DescribeShareGroupOffsetsRequest.Group, context: Context) -> _Group | Reply[_Group]:
    group_id = wanted.group_id
    if not context.broker.groups.offered("share"):
        return _Group(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return _Group(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    states = context.broker.share_group_states
    if wanted.topics is None:
        return map_reply(states.describe_offsets(group_id, None), lambda found: _allowed(found, context))
    topics: dict[str, list[int]] = {}
    refused = []
    for topic in wanted.topics:
        if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name):
            topics.setdefault(topic.topic_name, []).extend(topic.partitions)
        else:
            refused.append(_refused(topic))
    if not topics:
        return _Group(group_id=group_id, topics=refused)

    def complete(found: _Group) -> _Group:
        if not found.error_code:
            found.topics = [*(found.topics or ()), *refused]
        return found

    return map_reply(states.describe_offsets(group_id, topics), complete)


def _with_in_flight(context: Context, group: _Group) -> _Group:
    """Adds what is in flight, which is a tagged field of this broker's own."""
    for topic in group.topics or ():
        for partition in topic.partitions:
            if not partition.error_code:
                key = topic.topic_id, partition.partition_index
                partition.unknown_tags = in_flight_tags(context, group.group_id, key)
    return group


def _allowed(group: _Group, context: Context) -> _Group:
    group.topics = [
        topic
        for topic in group.topics or ()
        if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name)
    ]
    return group


def _refused(topic: DescribeShareGroupOffsetsRequest.Group.Topic) -> _Group.Topic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return _Group.Topic(
        topic_name=topic.topic_name,
        topic_id=NO_UUID,
        partitions=[
            _Group.Topic.Partition(
                partition_index=each, start_offset=-1, lag=-1, error_code=code, error_message=code.name
            )
            for each in topic.partitions
        ],
    )
