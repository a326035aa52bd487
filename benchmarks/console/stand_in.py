"""A broker that only says how large its cluster is: groups and topics whose offsets grow.

    python -m benchmarks.console.stand_in GROUPS TOPICS PARTITIONS

It speaks the protocol, so that the console is what is measured; a server with as many partitions would take minutes to
fill. Group n has committed in every partition of topic n modulo the topics, up to ten. Of each hundred groups, the last
50 are called "still", and but for each tenth of these have read all of the topic of that name, which doesn't grow.
"""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial
from uuid import UUID

from kohort.protocol.message import Request
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kohort.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.client.support.scripted_broker import Asked, Reply, ScriptedBroker

BEGAN = time.monotonic()
COMMITTED_IN = 10
STILL = "still"
"""A topic that doesn't grow."""

STILL_END = 1_000_000
EARLIEST = -2


class Cluster:
    """What is made up."""

    def __init__(self, broker: ScriptedBroker, groups: int, topics: int, partitions: int) -> None:
        self.broker = broker
        self.partitions = partitions
        self.names = [f"topic-{number:05}" for number in range(topics)]
        listing = partial(
            ListGroupsResponse.Group, protocol_type="consumer", group_state="Stable", group_type="classic"
        )
        self.groups = [listing(group_id=_group_id(number)) for number in range(groups)]
        one = MetadataResponse.Topic.Partition
        parts = [one(partition_index=at, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)) for at in range(partitions)]
        for number, name in enumerate(self.names, 1):
            broker.topics[name] = MetadataResponse.Topic(name=name, topic_id=UUID(int=number), partitions=parts)
        still = [one(partition_index=at, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)) for at in range(COMMITTED_IN)]
        broker.topics[STILL] = MetadataResponse.Topic(name=STILL, topic_id=UUID(int=topics + 1), partitions=still)
        size = DescribeLogDirsResponse.Result.Topic.Partition
        sizes = [size(partition_index=at, partition_size=1_000_000, offset_lag=0) for at in range(partitions)]
        kept = [DescribeLogDirsResponse.Result.Topic(name=name, partitions=sizes) for name in self.names]
        self.sizes = DescribeLogDirsResponse(results=[DescribeLogDirsResponse.Result(log_dir="/data", topics=kept)])

    def script(self) -> dict[type[Request], Reply]:
        """What it says to each request."""
        return {
            ListGroupsRequest: self._list_groups,
            FindCoordinatorRequest: self._find,
            DescribeGroupsRequest: self._describe,
            OffsetFetchRequest: self._fetch,
            ListOffsetsRequest: self._offsets,
            DescribeConfigsRequest: self._configs,
            DescribeLogDirsRequest: lambda asked: self.sizes,
        }

    def end(self) -> int:
        """Of every partition: it grows by ten records a second."""
        return 1_000_000 + int(10 * (time.monotonic() - BEGAN))

    def committed(self, group_id: str) -> tuple[str, int]:
        """Where a group has committed: a topic, and how many of its partitions."""
        number = int(group_id.removeprefix("group-").removesuffix(f"-{STILL}") or 0)
        if group_id.endswith(STILL) and number % 10:
            return STILL, COMMITTED_IN
        return self.names[number % len(self.names)], min(self.partitions, COMMITTED_IN)

    def _list_groups(self, asked: Asked) -> ListGroupsResponse:
        return ListGroupsResponse(groups=self.groups)

    def _find(self, asked: Asked) -> FindCoordinatorResponse:
        assert isinstance(asked.request, FindCoordinatorRequest)
        at = FindCoordinatorResponse.Coordinator
        host, port = self.broker.host, self.broker.port
        keys = asked.request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[at(key=key, node_id=1, host=host, port=port) for key in keys])

    def _describe(self, asked: Asked) -> DescribeGroupsResponse:
        assert isinstance(asked.request, DescribeGroupsRequest)
        one = DescribeGroupsResponse.Group
        member = one.Member(member_id="member-1", client_id="client", client_host="/10.0.0.1")
        found = [
            one(group_id=each, group_state="Stable", protocol_type="consumer", protocol_data="range", members=[member])
            for each in asked.request.groups
        ]
        return DescribeGroupsResponse(groups=found)

    def _fetch(self, asked: Asked) -> OffsetFetchResponse:
        assert isinstance(asked.request, OffsetFetchRequest)
        group = OffsetFetchResponse.Group
        found = []
        for each in asked.request.groups:
            name, count = self.committed(each.group_id)
            offset = STILL_END if name == STILL else self.end() - hash(each.group_id) % 1_000
            parts = [group.Topic.Partition(partition_index=at, committed_offset=offset) for at in range(count)]
            found.append(group(group_id=each.group_id, topics=[group.Topic(name=name, partitions=parts)]))
        return OffsetFetchResponse(groups=found)

    def _offsets(self, asked: Asked) -> ListOffsetsResponse:
        assert isinstance(asked.request, ListOffsetsRequest)
        topic, now = ListOffsetsResponse.Topic, self.end()
        one = topic.Partition
        return ListOffsetsResponse(
            topics=[
                topic(
                    name=each.name,
                    partitions=[
                        one(partition_index=at.partition_index, offset=0 if at.timestamp == EARLIEST else end)
                        for end in (STILL_END if each.name == STILL else now,)
                        for at in each.partitions
                    ],
                )
                for each in asked.request.topics
            ]
        )

    def _configs(self, asked: Asked) -> DescribeConfigsResponse:
        assert isinstance(asked.request, DescribeConfigsRequest)
        one = DescribeConfigsResponse.Result
        return DescribeConfigsResponse(
            results=[
                one(resource_type=each.resource_type, resource_name=each.resource_name, configs=[])
                for each in asked.request.resources
            ]
        )


def _group_id(number: int) -> str:
    return f"group-{number:05}" + (f"-{STILL}" if number % 100 >= 50 else "")


async def serve(groups: int, topics: int, partitions: int) -> None:
    broker = ScriptedBroker(versions={OffsetFetchRequest: (8, 9)})
    cluster = Cluster(broker, groups, topics, partitions)
    broker.script = cluster.script()
    async with broker:
        print(broker.address, flush=True)
        while True:
            await asyncio.sleep(1)
            broker.asked.clear()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:4])))
