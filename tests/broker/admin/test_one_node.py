"""What makes little sense on one node is answered as Kafka answers it: elections, reassignments, directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kohort.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kohort.protocol.messages.describe_cluster import DescribeClusterRequest
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest
from kohort.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.admin.conftest import Ask, Deny, produce

Election = ElectLeadersRequest.TopicPartition
Move = AlterPartitionReassignmentsRequest.Topic.Partition
Directory = AlterReplicaLogDirsRequest.Dir


def codes_of(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, result.partition_id): result.error_code
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


@pytest.mark.parametrize("election_type", [0, 1], ids=["preferred", "unclean"])
def test_no_election_is_needed(election_type: int, ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=[
            Election(topic="there", partitions=(0, 1, -1)),
            Election(topic="absent", partitions=(0,)),
        ],
    )
    assert codes_of(ask(request)) == {
        ("there", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("there", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("there", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_electing_all_lists_no_partition_that_has_its_leader(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    response = ask(ElectLeadersRequest(topic_partitions=None))
    assert [topic.topic for topic in response.replica_election_results] == ["there"]
    assert codes_of(response) == {}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_refused_election_says_so_in_each_version(version: int, ask: Ask, broker: Broker, deny: Deny) -> None:
    deny(Operation.ALTER)
    response = ask(ElectLeadersRequest(topic_partitions=[Election(topic="there", partitions=(0,))]), version)
    assert codes_of(response) == {("there", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert response.error_code == (0 if version == 0 else ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def test_an_election_of_a_kind_that_there_is_not(ask: Ask, broker: Broker) -> None:
    request = ElectLeadersRequest(election_type=5, topic_partitions=[Election(topic="there", partitions=(0,))])
    response = ask(request)
    assert (response.error_code, codes_of(response)) == (
        ErrorCode.INVALID_REQUEST,
        {("there", 0): ErrorCode.INVALID_REQUEST},
    )


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("there", 0, (1,), ErrorCode.NONE),
        ("there", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("there", 0, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 0, (2,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 0, (1, 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 0, (1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("there", 9, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("there", -1, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("absent", 0, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_moves(
    topic: str, index: int, replicas: tuple[int, ...] | None, code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    moves = [Move(partition_index=index, replicas=replicas)]
    request = AlterPartitionReassignmentsRequest(
        topics=[AlterPartitionReassignmentsRequest.Topic(name=topic, partitions=moves)]
    )
    (outcome,) = ask(request).responses[0].partitions
    assert (outcome.partition_index, outcome.error_code) == (index, code)


def test_moves_need_to_be_allowed(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    response = ask(AlterPartitionReassignmentsRequest())
    assert (response.error_code, response.responses) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


def test_no_move_is_under_way(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    response = ask(ListPartitionReassignmentsRequest(topics=None))
    deny(Operation.DESCRIBE)
    refused = ask(ListPartitionReassignmentsRequest(topics=None))
    assert (response.error_code, response.topics) == (ErrorCode.NONE, [])
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def directories(ask: Ask, path: Path, topic: str, *indexes: int) -> dict[int, int]:
    request = AlterReplicaLogDirsRequest(
        dirs=[Directory(path=str(path), topics=[Directory.Topic(name=topic, partitions=indexes)])]
    )
    (result,) = ask(request).results
    return {partition.partition_index: partition.error_code for partition in result.partitions}


def test_moving_to_the_one_directory_is_done_already(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert directories(ask, broker.log_manager.directory, "there", 0, 1) == {
        0: ErrorCode.NONE,
        1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_there_is_no_other_directory(ask: Ask, broker: Broker) -> None:
    assert directories(ask, Path("/elsewhere"), "absent", 0) == {0: ErrorCode.LOG_DIR_NOT_FOUND}


def test_moving_to_a_directory_needs_to_be_allowed(ask: Ask, broker: Broker, deny: Deny) -> None:
    deny(Operation.ALTER)
    assert directories(ask, broker.log_manager.directory, "there", 0) == {0: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_the_directory_with_its_logs(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 2)
    broker.topics.create("other", 1)
    produce(broker, "there", 1, 3)
    (result,) = ask(DescribeLogDirsRequest(topics=None)).results
    sizes = {
        (each.name, partition.partition_index): partition.partition_size
        for each in result.topics
        for partition in each.partitions
    }
    assert result.log_dir == str(broker.log_manager.directory)
    assert sizes == {("other", 0): 0, ("there", 0): 0, ("there", 1): topic.partitions[1].log.size}
    assert 0 < result.usable_bytes <= result.total_bytes


def test_only_the_logs_that_are_asked_for(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    wanted = DescribeLogDirsRequest.Topic
    asked = [wanted(topic="there", partitions=(1, 1, 9)), wanted(topic="absent", partitions=(0,))]
    (result,) = ask(DescribeLogDirsRequest(topics=asked)).results
    assert [(topic.name, [each.partition_index for each in topic.partitions]) for topic in result.topics] == [
        ("there", [1])
    ]


def test_offline_logs_are_left_out(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1).partitions[0].log.offline = "the disk is gone"
    (result,) = ask(DescribeLogDirsRequest(topics=None)).results
    assert result.topics == []


def test_a_directory_that_is_gone(ask: Ask, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker.log_manager, "directory", broker.log_manager.directory / "gone")
    (result,) = ask(DescribeLogDirsRequest(topics=None)).results
    assert (result.error_code, result.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, str(broker.log_manager.directory))


def test_the_directory_is_not_told_to_everybody(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE)
    response = ask(DescribeLogDirsRequest(topics=None))
    assert (response.error_code, response.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


def test_the_cluster_is_one_node(ask: Ask, broker: Broker) -> None:
    response = ask(DescribeClusterRequest())
    (node,) = response.brokers
    assert (node.broker_id, node.host, node.port) == (response.controller_id, "localhost", 9092)
    assert (response.cluster_id, response.cluster_authorized_operations) == (broker.cluster_id, -(2**31))


@pytest.mark.parametrize(
    ("endpoint_type", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_nodes_of_another_kind(endpoint_type: int, code: ErrorCode, ask: Ask) -> None:
    response = ask(DescribeClusterRequest(endpoint_type=endpoint_type))
    assert (response.error_code, response.brokers) == (code, [])


def test_what_the_client_may_do_to_the_cluster(ask: Ask, deny: Deny) -> None:
    everything = ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    deny(Operation.ALTER)
    without_alter = ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    deny(Operation.DESCRIBE)
    nothing = ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    # 8096 is what Kafka 4.2 answers.
    assert everything.cluster_authorized_operations == 8096
    assert without_alter.cluster_authorized_operations == 8096 - (1 << Operation.ALTER)
    assert nothing.cluster_authorized_operations == 0
