"""ShareGroupDescribe: state, members and assignments of share groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kohort.broker.context import Context
from kohort.broker.group_descriptions import describe_groups
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

SERVED: Final = Served(ShareGroupDescribeRequest, versions=(1, 1))

_Group = ShareGroupDescribeResponse.Group


def handle(request: ShareGroupDescribeRequest, context: Context) -> Slices[ShareGroupDescribeResponse]:
    groups = yield from describe_groups(
        "share",
        request,
        context,
        made=_Group,
        described=lambda shard, group_id: shard.share.describe(group_id),
        topics=_topics,
    )
    return ShareGroupDescribeResponse(groups=groups)


def _topics(group: _Group) -> Iterator[str]:
    for member in group.members:
        yield from (topic.topic_name for topic in member.assignment.topic_partitions)
