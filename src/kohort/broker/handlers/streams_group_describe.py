"""StreamsGroupDescribe: streams groups with their topologies, members and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kohort.broker.context import Context
from kohort.broker.group_descriptions import describe_groups
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

SERVED: Final = Served(StreamsGroupDescribeRequest, versions=(0, 1))

_Group = StreamsGroupDescribeResponse.Group


def handle(request: StreamsGroupDescribeRequest, context: Context) -> Slices[StreamsGroupDescribeResponse]:
    groups = yield from describe_groups(
        "streams",
        request,
        context,
        made=_Group,
        described=lambda shard, group_id: shard.streams.describe(
            group_id, with_description=request.include_topology_description
        ),
        topics=_topics,
    )
    return StreamsGroupDescribeResponse(groups=groups)


def _topics(group: _Group) -> Iterator[str]:
    """Those of the topology; assignments have no others."""
    for subtopology in (group.topology.subtopologies if group.topology else None) or ():
        yield from (*subtopology.source_topics, *subtopology.repartition_sink_topics)
        made = (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics)
        yield from (topic.name for topic in made)
