"""DescribeQuorum: one voter, with all of the metadata log."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_quorum import DescribeQuorumRequest
from kohort.protocol.schema import NO_UUID
from tests.broker.handlers.conftest import NOW, Ask, Deny

Topic = DescribeQuorumRequest.Topic


def quorum(name: str = "__cluster_metadata", *indexes: int) -> Topic:
    return Topic(topic_name=name, partitions=[Topic.Partition(partition_index=index) for index in indexes or (0,)])


def test_the_node_leads_and_has_all_there_is(ask: Ask, broker: Broker) -> None:
    before = ask(DescribeQuorumRequest(topics=[quorum()])).topics[0].partitions[0].high_watermark
    broker.topics.create("new", 1)
    response = ask(DescribeQuorumRequest(topics=[quorum()]))
    (partition,) = response.topics[0].partitions
    (voter,) = partition.current_voters
    assert (response.error_code, partition.error_code, partition.observers) == (0, 0, [])
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert partition.high_watermark == voter.log_end_offset == broker.metadata_log.log.log_end_offset > before > 0
    assert (voter.replica_id, voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (1, NOW, NOW)
    assert [node.node_id for node in response.nodes] == [1]


def test_the_voters_directory_is_the_one_of_meta_properties(ask: Ask, broker: Broker) -> None:
    (partition,) = ask(DescribeQuorumRequest(topics=[quorum()])).topics[0].partitions
    assert partition.current_voters[0].replica_directory_id == broker.log_manager.directory_id != NO_UUID


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_have_no_addresses(version: int, ask: Ask) -> None:
    response = ask(DescribeQuorumRequest(topics=[quorum()]), version)
    assert (len(response.topics), response.nodes) == (1, [])


@pytest.mark.parametrize(
    "topics",
    [[quorum("other")], [quorum("__cluster_metadata", 1)], [quorum("__cluster_metadata", 0, 1)], [quorum(), quorum()]],
    ids=["another topic", "another partition", "two partitions", "two topics"],
)
def test_nothing_else_has_a_quorum(topics: list[Topic], ask: Ask) -> None:
    response = ask(DescribeQuorumRequest(topics=topics))
    answered = [partition for topic in response.topics for partition in topic.partitions]
    assert {partition.error_code for partition in answered} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(answered) == sum(len(topic.partitions) for topic in topics)
    assert (response.error_code, response.nodes) == (ErrorCode.NONE, [])


def test_no_topics_are_answered_with_none(ask: Ask) -> None:
    assert ask(DescribeQuorumRequest()).topics == []


def test_who_may_not_describe_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE)
    response = ask(DescribeQuorumRequest(topics=[quorum()]))
    assert (response.error_code, response.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
