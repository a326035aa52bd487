"""ElectLeaders: one node leads every partition, so no election is needed."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest
from tests.broker.handlers.conftest import Ask, Deny

Election = ElectLeadersRequest.TopicPartition


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
