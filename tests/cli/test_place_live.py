"""`kohort place --from-group`: groups as an admin client describes them, and calls that can't be answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kohort.client.administration.configs import ConfigEntry, ConfigResource, ConfigSource
from kohort.client.administration.group_descriptions import streams_group
from kohort.client.administration.group_types import GroupType
from kohort.client.errors import ClientError
from kohort.client.placed_group import read_placed_group
from kohort.client.types import Broker, PartitionInfo, TopicInfo
from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_describe import (
    Assignment,
    KeyValue,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
)
from kohort.protocol.messages.streams_group_describe import (
    TopicInfo as InternalTopicInfo,
)

from .support import invoke

Described = StreamsGroupDescribeResponse.Group
TOPICS = {"lines": 2, "letters": 3, "words": 4}
CONFIGS = {
    "streams.num.standby.replicas": "1",
    "streams.rack.aware.assignment.tags": "zone, rack",
    "streams.acceptable.recovery.lag": "20",
}


def tasks(**partitions: tuple[int, ...]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in partitions.items()]


def offsets(**by_partition: dict[int, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=name, partition=partition, offset=offset)
        for name, numbers in by_partition.items()
        for partition, offset in numbers.items()
    ]


def described(**changes: Any) -> Described:
    """Two instances that count words; the second one is warming up a task."""
    part = Described.Topology.Subtopology
    parts = [
        part(subtopology_id="split", source_topics=("lines", "letters"), repartition_sink_topics=("words",)),
        part(
            subtopology_id="count",
            repartition_source_topics=[InternalTopicInfo(name="words", partitions=4)],
            state_changelog_topics=[InternalTopicInfo(name="counts-changelog"), InternalTopicInfo(name="tops")],
        ),
    ]
    members = [
        Described.Member(
            member_id="m1",
            process_id="p1",
            client_tags=[KeyValue(key="zone", value="a")],
            assignment=Assignment(
                active_tasks=tasks(split=(0, 1), count=(0, 1, 2)), standby_tasks=tasks(count=(3,), gone=(0,))
            ),
            task_offsets=offsets(count={0: -2, 3: 60}, gone={0: 1}),
            task_end_offsets=offsets(count={0: 500, 3: 90}, gone={0: 2}),
        ),
        Described.Member(
            member_id="m2",
            process_id="p2",
            assignment=Assignment(
                active_tasks=tasks(split=(2,), count=(3,)),
                standby_tasks=tasks(count=(0,)),
                warmup_tasks=tasks(count=(1,)),
            ),
            task_offsets=offsets(count={0: 480, 1: 7}),
            task_end_offsets=offsets(count={3: 100}),
        ),
    ]
    whole = {
        "group_id": "words",
        "group_state": "Stable",
        "topology": Described.Topology(epoch=0, subtopologies=parts),
        "members": members,
    }
    return Described(**(whole | changes))


class Asked:
    """An admin client that knows one group."""

    def __init__(self, kind: GroupType = GroupType.STREAMS, **changes: Any) -> None:
        self._group = replace(streams_group(described(**changes), Broker(1, "h", 9092)), type=kind)
        self.refused: KafkaError | None = None
        self.groups = SimpleNamespace(describe=self._groups)
        self.topics = SimpleNamespace(describe=self._topics)
        self.configs = SimpleNamespace(describe=self._configs)

    async def _groups(self, name: str) -> Any:
        return {name: self._group}

    async def _topics(self, *names: str) -> Any:
        return {
            name: TopicInfo(name, UUID(int=0), False, {n: PartitionInfo(n, 1, 0, (), ()) for n in range(TOPICS[name])})
            for name in names
        }

    async def _configs(self, resource: ConfigResource) -> Any:
        if self.refused is not None:
            raise self.refused
        entries = {
            key: ConfigEntry(name=key, value=value, source=ConfigSource.GROUP, read_only=False, sensitive=False)
            for key, value in CONFIGS.items()
        }
        return {resource: entries}


def read(admin: Any) -> tuple[Group, list[str]]:
    return asyncio.run(read_placed_group(admin, "words"))


def test_a_live_group() -> None:
    count = [TaskId("count", partition) for partition in range(4)]
    split = [TaskId("split", partition) for partition in range(3)]
    assert read(Asked()) == (
        Group(
            subtopologies=(SubtopologyTasks("count", 4, 2), SubtopologyTasks("split", 3)),
            members=(
                Member("m1", "p1", {"zone": "a"}, frozenset({*split[:2], *count[:3]}), frozenset({count[3]})),
                Member("m2", "p2", {}, frozenset({split[2], count[3]}), frozenset({count[0], count[1]})),
            ),
            standbys=1,
            rack_tags=("zone", "rack"),
            lags={("p1", count[0]): 0, ("p1", count[3]): 30, ("p2", count[0]): 20},
            ends={count[0]: 500, count[3]: 100},
            acceptable_lag=20,
        ),
        [],
    )


def test_a_configuration_that_may_not_be_read() -> None:
    admin = Asked()
    admin.refused = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")
    group, notes = read(admin)
    assert notes == [
        "the group's configuration can't be read (GROUP_AUTHORIZATION_FAILED (30): no): taken for Kafka's defaults"
    ]
    assert (group.standbys, group.rack_tags, group.acceptable_lag) == (0, (), 10_000)


def test_a_group_that_everybody_left() -> None:
    group, notes = read(Asked(members=[], group_state="Empty"))
    assert (group.members, notes) == ((), ["the group is Empty: nobody is in it"])


@pytest.mark.parametrize(
    ("admin", "why"),
    [
        (Asked(GroupType.CONSUMER), "words is a consumer group; only streams groups have tasks to place"),
        (
            Asked(topology=Described.Topology(epoch=0, subtopologies=None), group_state="NotReady"),
            r"words has no topology that can run \(NotReady\): are its source topics there\?",
        ),
        (Asked(topology=None), "no topology that can run"),
        (Asked(members=[Described.Member(member_id="m1", process_id="p1")] * 2), "as it can't be: members: 'm1' is"),
    ],
)
def test_groups_that_cannot_be_placed(admin: Asked, why: str) -> None:
    with pytest.raises(ClientError, match=why):
        read(admin)


def test_nobody_listens() -> None:
    done = invoke("place", "--from-group", "words", "-b", "localhost:1", "--timeout", "0.5")
    assert done.exit_code == 3
    assert "localhost:1" in done.stderr
    assert "Traceback" not in done.stderr
