"""Kafka's Java clients: records of every shape, positions, transactions, groups, administration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.marks import long
from tests.tools import MAVEN

from .java.jvm import Scenarios
from .servers import QUICK_CONSUMER_GROUPS, Server
from .topics import create_topic

NewTopic = Callable[..., str]

ASSIGNORS = "org.apache.kafka.clients.consumer."


@pytest.fixture(scope="module")
def scenarios() -> Iterator[Scenarios]:
    MAVEN.require()
    running = Scenarios()
    yield running
    running.close()


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(
    scenarios: Scenarios, server: Server, new_topic: NewTopic, compression: str, idempotent: bool
) -> None:
    topic = new_topic(3)
    sent = scenarios.run(
        "produce", server.bootstrap, topic=topic, records=100, compression__type=compression,
        enable__idempotence=idempotent, acks="all" if idempotent else "1",
    )  # fmt: skip
    read = scenarios.run("consume", server.bootstrap, topic=topic, records=100)
    assert sorted(read, key=place) == sorted(sent, key=place)
    assert {place(record) for record in sent} == {
        (p, o) for p, number in partitions(sent).items() for o in range(number)
    }


def place(record: dict[str, Any]) -> tuple[int, int]:
    return record["partition"], record["offset"]


def partitions(records: list[dict[str, Any]]) -> Counter[int]:
    return Counter(record["partition"] for record in records)


def test_positions(scenarios: Scenarios, server: Server, new_topic: NewTopic) -> None:
    assert scenarios.run("positions", server.bootstrap, topic=new_topic()) == {
        "beginning": 0,
        "end": 10,
        "first": "value-0",
        "after seek": "value-7",
        "at end": 10,
        "nothing there": 0,
        "at beginning": 0,
        "reset from beyond the end": "value-0",
        "times": {
            "after -50": [0, 0],
            "after 0": [0, 0],
            "after 250": [3, 300],
            "after 900": [9, 900],
            "after 901": None,
        },
        "committed": 4,
        "lag": 5,
        "no reset": "NoOffsetForPartitionException",
        "out of range": "OffsetOutOfRangeException",
        "latest": 10,
    }


def test_transactions(scenarios: Scenarios, server: Server, new_topic: NewTopic) -> None:
    committed = ["committed-0", "committed-1", "committed-2", "committed-3"]
    assert scenarios.run("transactions", server.bootstrap, topic=new_topic(2)) == {
        "uncommitted end offsets": 14,  # with a commit and an abort marker in each partition
        "committed end offsets": 12,  # up to the open transaction
        "read uncommitted": [*(f"aborted-{n}" for n in range(4)), *committed, "open-0", "open-1"],
        "read committed": committed,
        "then": 0,
        "fenced": "ProducerFencedException",
        "offset aborted": None,
        "offset committed": [3, "noted"],
        "read committed at last": ["third-0", "third-1"],
    }


def test_transactions_seen_by_an_administrator(scenarios: Scenarios, server: Server, new_topic: NewTopic) -> None:
    assert scenarios.run("transactions-admin", server.bootstrap, topic=new_topic()) == {
        "while open": ["Ongoing", True],
        "listed": ["Ongoing"],
        "producer": [0, 0],
        "once committed": ["CompleteCommit", False],
        "aborted in the partition": True,
        "fenced": "InvalidProducerEpochException",
        "describe unknown": "TransactionalIdNotFoundException",
    }


def test_groups_seen_by_an_administrator(scenarios: Scenarios, server: Server, new_topic: NewTopic) -> None:
    stable, empty = ["Stable", "Classic", "consumer"], ["Empty", "Classic", "consumer"]
    assert scenarios.run("groups-admin", server.bootstrap, topic=new_topic()) == {
        "listed": [stable],
        "listed as classic": [stable],
        "listed as share": [],
        "listed as empty": [],
        "described": ["Stable", "range", "Classic", "me", "instance", 1],
        "described as classic": "consumer",
        "described unknown": "GroupIdNotFoundException",
        "delete while in use": "GroupNotEmptyException",
        "delete offset in use": "GroupSubscribedToTopicException",
        "alter offset in use": "UnknownMemberIdException",
        "then": [empty],
        "committed": [1, ""],
        "altered": [7, "by hand"],
        "offset deleted": None,
        "deleted": [],
        "delete again": "GroupIdNotFoundException",
    }


def test_topics_in_an_administrators_hands(scenarios: Scenarios, server: Server, new_name: Callable[[], str]) -> None:
    assert scenarios.run("topics", server.bootstrap, topic=new_name()) == {
        "nodes": 1,
        "controller": True,
        "cluster id": True,
        "created partitions": 2,
        "created replication": 1,
        "created config": "1048576",
        "create again": "TopicExistsException",
        "create with two replicas": "InvalidReplicationFactorException",
        "create with bad name": "InvalidTopicException",
        "create without partitions": "InvalidPartitionsException",
        "create with bad config": "InvalidConfigurationException",
        "described partitions": 2,
        "same id": True,
        "by id": True,
        "describe unknown": "UnknownTopicOrPartitionException",
        "listed": True,
        "partitions then": 3,
        "fewer partitions": "InvalidPartitionsException",
        "retention": ["86400000", "DYNAMIC_TOPIC_CONFIG"],
        "cleanup": "delete,compact",
        "segment bytes": ["1073741824", "DEFAULT_CONFIG"],
        "alter to nonsense": "InvalidConfigurationException",
        "configured topics": True,
        "earliest": 0,
        "latest": 5,
        "max timestamp": 2,
        "for timestamp": 2,
        "for the future": -1,
        "earliest local": 0,
        "latest tiered": -1,
        "deleted before": 3,
        "earliest then": 3,
        "delete too many": "OffsetOutOfRangeException",
        "deleted all": 5,
        "log directories": 3,
        "producers": 1,
        "elect leaders": "ElectionNotNeededException",
        "reassign to nobody": "InvalidReplicaAssignmentException",
        "cancel no reassignment": "NoReassignmentInProgressException",
        "reassignments": 0,
        "features": True,
        "delete again": "UnknownTopicOrPartitionException",
        "listed at last": False,
    }


def stages(scenarios: Scenarios, server: Server, topic: str, assignor: str, *, static: bool) -> list[dict[str, Any]]:
    """A group of three that grows, shrinks and grows again; it has read every record once."""
    found = scenarios.run("group", server.bootstrap, topic=topic, assignor=ASSIGNORS + assignor, static=static)
    assert (found["read"], found["distinct"]) == (found["written"], found["written"])
    assert isinstance(found["stages"], list)
    return found["stages"]


@pytest.mark.parametrize("assignor", ["RangeAssignor", "StickyAssignor"])
def test_an_eager_group_grows_and_shrinks(
    scenarios: Scenarios, server: Server, new_topic: NewTopic, assignor: str
) -> None:
    grown = stages(scenarios, server, new_topic(6), assignor, static=False)
    assert [stage["name"] for stage in grown] == ["a joined", "b joined", "c joined", "b left", "b came back"]
    for before, after in pairwise(grown):
        assert after["generation"] > before["generation"]
        stayed = before["owns"].keys() & after["owns"].keys()
        assert all(set(before["owns"][member]) <= set(after["revoked"][member]) for member in stayed), "not all revoked"


def test_a_cooperative_group_gives_up_only_what_moves(
    scenarios: Scenarios, server: Server, new_topic: NewTopic
) -> None:
    grown = stages(scenarios, server, new_topic(6), "CooperativeStickyAssignor", static=False)
    for before, after in pairwise(grown):
        for member in before["owns"].keys() & after["owns"].keys():
            moved = set(before["owns"][member]) - set(after["owns"][member])
            assert set(after["revoked"][member]) == moved, f"{after['name']}: {member}"


@pytest.mark.parametrize("static", [*long(False), True], ids=["dynamic", "static"])
@pytest.mark.parametrize("own_server", [QUICK_CONSUMER_GROUPS], indirect=True, ids=["quick"])
def test_a_group_that_the_broker_assigns_gives_up_only_what_moves(
    scenarios: Scenarios, own_server: Server, new_name: Callable[[], str], static: bool
) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": own_server.bootstrap}), new_name(), 6, {})
    found = scenarios.run("group", own_server.bootstrap, topic=topic, assignor="consumer", static=static)
    assert (found["read"], found["distinct"]) == (found["written"], found["written"])
    for before, after in pairwise(found["stages"]):
        for member in before["owns"].keys() & after["owns"].keys():
            moved = set(before["owns"][member]) - set(after["owns"][member])
            assert set(after["revoked"][member]) == moved, f"{after['name']}: {member}"
    if static:
        *_, before, after = found["stages"]
        assert (after["generation"], after["owns"]) == (before["generation"], before["owns"])


@pytest.mark.parametrize("assignor", ["RangeAssignor", "CooperativeStickyAssignor"])
def test_a_static_member_comes_back_to_what_it_had(
    scenarios: Scenarios, server: Server, new_topic: NewTopic, assignor: str
) -> None:
    *_, before, after = stages(scenarios, server, new_topic(6), assignor, static=True)
    assert (before["name"], after["name"]) == ("c joined", "b came back")
    assert (after["generation"], after["owns"]) == (before["generation"], before["owns"])
    assert not any(after["revoked"].values())
