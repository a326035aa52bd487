from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kohort.coordinator.streams.request_validation import check_heartbeat, check_topology
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
    TopicInfo,
)

Topology = StreamsGroupHeartbeatRequest.Topology
Part = Topology.Subtopology
Copartitioned = Part.CopartitionGroup


def joining(**changes: Any) -> StreamsGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 1000,
        "topology": Topology(subtopologies=[Part(subtopology_id="0", source_topics=("a",))]),
        "process_id": "p",
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    return StreamsGroupHeartbeatRequest(**{**fields, **changes})


def staying(**changes: Any) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(**{"group_id": "g", "member_id": "m", "member_epoch": 3, **changes})


def tasks(*partitions: int, subtopology: str = "0") -> list[TaskIds]:
    return [TaskIds(subtopology_id=subtopology, partitions=partitions)]


def holding(**changes: Any) -> StreamsGroupHeartbeatRequest:
    return staying(**{"active_tasks": [], "standby_tasks": [], "warmup_tasks": [], **changes})


def offset(partition: int, records: int = 5) -> TaskOffset:
    return TaskOffset(subtopology_id="0", partition=partition, offset=records)


@pytest.mark.parametrize(
    "request_",
    [
        joining(),
        joining(instance_id="i", rack_id="r", user_endpoint=Endpoint(host="h", port=80)),
        joining(client_tags=[KeyValue(key="zone", value=""), KeyValue(key="rack", value="x")]),
        joining(task_offsets=[], task_end_offsets=[]),
        joining(task_offsets=[offset(0), offset(1)], task_end_offsets=[offset(0)]),
        staying(),
        staying(member_epoch=-1),
        staying(member_epoch=-2, instance_id="i"),
        staying(task_offsets=[offset(0, -2), offset(1, -4)]),
        staying(shutdown_application=True),
        holding(),
        holding(active_tasks=tasks(0, 1), standby_tasks=tasks(2), warmup_tasks=tasks(0, subtopology="1")),
    ],
)
def test_heartbeats_that_are_right(request_: StreamsGroupHeartbeatRequest) -> None:
    check_heartbeat(request_)


@pytest.mark.parametrize(
    "request_",
    [
        holding(active_tasks=tasks(*range(100_001))),
        holding(active_tasks=tasks(*range(60_000)), standby_tasks=tasks(*range(60_000, 110_000))),
        holding(warmup_tasks=[TaskIds(subtopology_id=f"{part}", partitions=(0,)) for part in range(100_001)]),
        staying(task_offsets=[offset(number) for number in range(100_001)]),
        staying(task_end_offsets=[offset(number) for number in range(100_001)]),
    ],
    ids=["active tasks", "tasks in all", "tasks of many subtopologies", "offsets", "end offsets"],
)
def test_more_tasks_than_any_broker_has(request_: StreamsGroupHeartbeatRequest) -> None:
    with pytest.raises(KafkaError, match="more than 100000 tasks"):
        check_heartbeat(request_)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (joining(group_id=""), "GroupId"),
        (joining(group_id="  "), "GroupId"),
        (joining(member_id=""), "MemberId"),
        (joining(instance_id=""), "InstanceId"),
        (joining(rack_id=" "), "RackId"),
        (joining(process_id=""), "ProcessId"),
        (joining(rebalance_timeout_ms=-1), "RebalanceTimeoutMs"),
        (joining(rebalance_timeout_ms=0), "RebalanceTimeoutMs"),
        (joining(rebalance_timeout_ms=-5), "RebalanceTimeoutMs"),
        (joining(topology=None), "Topology"),
        (joining(active_tasks=None), "ActiveTasks"),
        (joining(active_tasks=tasks(0)), "ActiveTasks"),
        (joining(standby_tasks=None), "StandbyTasks"),
        (joining(standby_tasks=tasks(0)), "StandbyTasks"),
        (joining(warmup_tasks=None), "WarmupTasks"),
        (joining(warmup_tasks=tasks(0)), "WarmupTasks"),
        (joining(user_endpoint=Endpoint(host="", port=80)), "UserEndpoint.Host"),
        (joining(user_endpoint=Endpoint(host="h", port=0)), "UserEndpoint.Port"),
        (joining(client_tags=[KeyValue(key="", value="x")]), "ClientTags"),
        (joining(client_tags=[KeyValue(key="a", value="x"), KeyValue(key="a", value="x")]), "ClientTags"),
        (staying(member_epoch=-3), "MemberEpoch"),
        (staying(member_epoch=-2), "InstanceId"),
        (staying(rebalance_timeout_ms=0), "RebalanceTimeoutMs"),
        (staying(topology=Topology()), "Topology"),
        (staying(member_epoch=-1, topology=Topology()), "Topology"),
        (staying(active_tasks=[]), "StandbyTasks"),
        (staying(warmup_tasks=[]), "ActiveTasks"),
        (holding(warmup_tasks=None), "WarmupTasks"),
        (holding(active_tasks=tasks(-1)), "ActiveTasks"),
        (holding(standby_tasks=tasks(0, 0)), "StandbyTasks"),
        (holding(active_tasks=tasks(0), warmup_tasks=tasks(0)), "WarmupTasks"),
        (staying(task_offsets=[offset(-1)]), "TaskOffsets"),
        (staying(task_offsets=[offset(1), offset(1)]), "TaskOffsets"),
        (staying(task_end_offsets=[offset(1), offset(1)]), "TaskEndOffsets"),
    ],
)
def test_what_is_wrong_with_a_heartbeat_is_named(request_: StreamsGroupHeartbeatRequest, field: str) -> None:
    with pytest.raises(KafkaError) as caught:
        check_heartbeat(request_)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.detail is not None
    assert caught.value.detail.startswith(field)


def part(subtopology_id: str = "0", sources: Sequence[str] = ("a",), **fields: Any) -> Part:
    return Part(subtopology_id=subtopology_id, source_topics=tuple(sources), **fields)


def internal(*names: str, **fields: Any) -> list[TopicInfo]:
    return [TopicInfo(name=name, **fields) for name in names]


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part(state_changelog_topics=internal("s", replication_factor=-1))],
        [part(repartition_sink_topics=("r",)), part("1", (), repartition_source_topics=internal("r"))],
        [part(repartition_source_topics=internal("r", partitions=4))],
        [part(state_changelog_topics=internal("a"))],
        [part(sources=(), source_topic_regex=("in-.*",))],
        [part(repartition_sink_topics=("r",)), part("1", ("b",), repartition_sink_topics=("r",)),
         part("2", (), repartition_source_topics=internal("r"))],
        [part(sources=("a", "b"), source_topic_regex=("c.*",), repartition_source_topics=internal("r", partitions=1),
              copartition_groups=[Copartitioned(source_topics=(1, 0), source_topic_regex=(0,),
                                                repartition_source_topics=(0,))])],
    ],
)  # fmt: skip
def test_topologies_that_are_right(parts: list[Part]) -> None:
    check_topology(Topology(subtopologies=parts))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part("")], "has no id"),
        ([part(), part(sources=("b",))], "listed twice"),
        ([part(sources=())], "reads no topic"),
        ([part(sources=("a/b",))], "no topic name"),
        ([part(sources=("",))], "no topic name"),
        ([part(sources=("..",))], "no topic name"),
        ([part(sources=("a" * 250,))], "no topic name"),
        ([part(sources=("a\n",))], "no topic name"),
        ([part(repartition_sink_topics=("ä",))], "no topic name"),
        ([part(state_changelog_topics=internal("x y"))], "no topic name"),
        ([part(repartition_source_topics=internal(""))], "no topic name"),
        ([part(sources=("__consumer_offsets",))], "Kafka's own"),
        ([part(state_changelog_topics=internal("__transaction_state"))], "Kafka's own"),
        ([part(sources=("a", "a"))], "a source already"),
        ([part(), part("1")], "a source already"),
        ([part(repartition_source_topics=internal("a", partitions=1))], "a source already"),
        ([part(state_changelog_topics=internal("s", partitions=3))], "changelog s has Partitions 3"),
        ([part(state_changelog_topics=internal("s", "s"))], "changelog s is listed twice"),
        ([part(state_changelog_topics=internal("s")), part("1", ("b",), state_changelog_topics=internal("s"))],
         "changelog s is listed twice"),
        ([part(repartition_source_topics=internal("r", partitions=-1))], "Partitions -1"),
        ([part(state_changelog_topics=internal("s", replication_factor=-2))], "ReplicationFactor -2"),
        ([part(state_changelog_topics=internal("s", topic_configs=[KeyValue(key="k")] * 2))], "setting twice"),
        ([part(repartition_source_topics=internal("r"))], "no subtopology writes to it"),
        ([part(repartition_sink_topics=("r",))], "source of no subtopology"),
        ([part(repartition_source_topics=internal("r", partitions=1), state_changelog_topics=internal("r"))],
         "changelog as well"),
        ([part(source_topic_regex=("(",))], "can't be used"),
        ([part(source_topic_regex=("[a&&b]",))], "can't be used"),
        ([part(source_topic_regex=("x",) * 101)], "more than 100 source patterns"),
        ([part(copartition_groups=[Copartitioned(source_topics=(1,))])], "SourceTopics has position 1"),
        ([part(copartition_groups=[Copartitioned(source_topics=(-1,))])], "SourceTopics has position -1"),
        ([part(copartition_groups=[Copartitioned(source_topic_regex=(0,))])], "SourceTopicRegex has position 0"),
        ([part(copartition_groups=[Copartitioned(repartition_source_topics=(0,))])],
         "RepartitionSourceTopics has position 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_topology_is_said(parts: list[Part], said: str) -> None:
    with pytest.raises(KafkaError, match=said) as caught:
        check_topology(Topology(subtopologies=parts))
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_topology_epoch_is_not_negative() -> None:
    with pytest.raises(KafkaError) as caught:
        check_topology(Topology(epoch=-1))
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH


def test_a_member_may_join_without_a_process_id() -> None:
    check_heartbeat(joining(process_id=None))
