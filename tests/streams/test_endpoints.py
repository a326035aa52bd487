from __future__ import annotations

from kohort.protocol.messages.streams_group_heartbeat import Endpoint, StreamsGroupHeartbeatResponse, TopicPartition
from kohort.streams.configured_topology import ConfiguredSubtopology, ConfiguredTopology
from kohort.streams.endpoints import Instance, partitions_by_endpoint
from kohort.streams.tasks import Role, TaskId

ACTIVE, STANDBY, WARMUP = Role
Entry = StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint

TOPOLOGY = ConfiguredTopology(
    1,
    {
        "0": ConfiguredSubtopology("0", 4, {"orders": 4, "rates": 2}),
        "1": ConfiguredSubtopology("1", 4, {"by-name-repartition": 4}),
    },
)


def entry(host: str, port: int, active: dict[str, tuple[int, ...]], standby: dict[str, tuple[int, ...]]) -> Entry:
    return Entry(
        user_endpoint=Endpoint(host=host, port=port),
        active_partitions=[TopicPartition(topic=topic, partitions=numbers) for topic, numbers in active.items()],
        standby_partitions=[TopicPartition(topic=topic, partitions=numbers) for topic, numbers in standby.items()],
    )


def test_an_instance_has_the_source_partitions_of_its_tasks() -> None:
    tasks = {TaskId("1", 2): ACTIVE, TaskId("0", 1): ACTIVE, TaskId("0", 0): ACTIVE}
    assert partitions_by_endpoint([Instance("a", 80, tasks)], TOPOLOGY) == [
        entry("a", 80, {"by-name-repartition": (2,), "orders": (0, 1), "rates": (0, 1)}, {})
    ]


def test_a_task_beyond_a_topics_partitions_doesnt_read_it() -> None:
    assert partitions_by_endpoint([Instance("a", 80, {TaskId("0", 3): ACTIVE})], TOPOLOGY) == [
        entry("a", 80, {"orders": (3,)}, {})
    ]


def test_warm_ups_count_as_standbys() -> None:
    tasks = {TaskId("1", 0): STANDBY, TaskId("1", 1): WARMUP}
    assert partitions_by_endpoint([Instance("a", 80, tasks)], TOPOLOGY) == [
        entry("a", 80, {}, {"by-name-repartition": (0, 1)})
    ]


def test_members_with_the_same_endpoint_are_one_instance() -> None:
    members = [Instance("a", 80, {TaskId("1", 3): ACTIVE}), Instance("a", 80, {TaskId("1", 0): ACTIVE})]
    assert partitions_by_endpoint(members, TOPOLOGY) == [entry("a", 80, {"by-name-repartition": (0, 3)}, {})]


def test_instances_come_in_the_order_of_their_endpoints() -> None:
    members = [Instance("b", 1, {}), Instance("a", 90, {}), Instance("a", 80, {})]
    assert partitions_by_endpoint(members, TOPOLOGY) == [
        entry("a", 80, {}, {}),
        entry("a", 90, {}, {}),
        entry("b", 1, {}, {}),
    ]


def test_tasks_of_subtopologies_that_are_gone_read_nothing() -> None:
    assert partitions_by_endpoint([Instance("a", 80, {TaskId("2", 0): ACTIVE})], TOPOLOGY) == [entry("a", 80, {}, {})]
