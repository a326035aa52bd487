"""ConsumerGroupDescribe: consumer groups with their members and partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kohort.broker.context import Context
from kohort.broker.group_descriptions import describe_groups
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

SERVED: Final = Served(ConsumerGroupDescribeRequest, versions=(0, 1))

_Group = ConsumerGroupDescribeResponse.Group


def handle(request: ConsumerGroupDescribeRequest, context: Context) -> Slices[ConsumerGroupDescribeResponse]:
    groups = yield from describe_groups(
        "consumer",
        request,
        context,
        made=_Group,
        described=lambda shard, group_id: shard.consumer.describe(group_id),
        topics=_topics,
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def _topics(group: _Group) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (topic.topic_name for topic in assignment.topic_partitions)
