"""ConsumerGroupHeartbeat: who may join, what is answered; tests/coordinator/consumer has the rules."""

from __future__ import annotations

import asyncio

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_groups import ListGroupsRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.consumer_groups import joining


@pytest.fixture(autouse=True)
def coordinator(broker: Broker) -> None:
    broker.topics.create("there", 2)
    broker.groups.start()


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_stays_and_leaves(ask: Ask, broker: Broker, version: int) -> None:
    joined = ask(joining(), version)
    (topic,) = joined.assignment.topic_partitions
    there = broker.topics.get("there")
    assert there is not None
    assert (joined.error_code, joined.member_id, topic.topic_id, topic.partitions) == (0, "m", there.id, (0, 1))
    stays = joining(
        member_epoch=joined.member_epoch, subscribed_topic_names=None, topic_partitions=None, rebalance_timeout_ms=-1
    )
    assert ask(stays, version).heartbeat_interval_ms == 500
    assert ask(stays, version).assignment is None
    assert ask(joining(member_epoch=-1), version).member_epoch == -1


def test_a_member_without_an_id_gets_one_as_kafka_makes_them(ask: Ask) -> None:
    assert len(ask(joining(member_id=""), 0).member_id) == 22
    assert ask(joining(member_id=""), 1).error_code == ErrorCode.INVALID_REQUEST


def test_a_group_that_may_not_be_read(ask: Ask, deny: Deny) -> None:
    deny(Operation.READ, ResourceType.GROUP, "g")
    assert ask(joining()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert ask(ListGroupsRequest()).groups == []


def test_a_topic_that_may_not_be_described(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    assert ask(joining()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert ask(joining(subscribed_topic_names=("other",))).error_code == ErrorCode.NONE


def test_a_regular_expression_matches_what_the_client_may_describe(broker: Broker, ask: Ask, deny: Deny) -> None:
    broker.topics.create("secret", 1)
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "secret")
    regex = joining(subscribed_topic_names=None, subscribed_topic_regex=".*e.*")

    async def resolve() -> list[tuple[str, ...]]:
        assert ask(regex).error_code == ErrorCode.NONE
        for _ in range(5):
            await asyncio.sleep(0)
        group = broker.groups.entry("g").shard.consumer.get("g")
        assert group is not None
        return [resolved.topics for resolved in group.regexes.values()]

    assert asyncio.run(resolve()) == [("__consumer_offsets", "there")]


def test_one_that_is_not_valid(ask: Ask) -> None:
    refused = ask(joining(subscribed_topic_names=None, subscribed_topic_regex="("))
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("settings", [{"group.coordinator.rebalance.protocols": "classic,streams"}])
def test_where_consumer_groups_are_not_offered_it_is_said_at_once(ask: Ask) -> None:
    assert ask(joining()).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("settings", [{"group.consumer.assignment.interval.ms": 0}])
def test_topics_that_grow_are_assigned(ask: Ask, broker: Broker) -> None:
    async def grow() -> object:
        joined = ask(joining())
        broker.topics.add_partitions("there", 3)
        await asyncio.sleep(0)
        moved = ask(joining(member_epoch=joined.member_epoch))
        return moved.assignment.topic_partitions[0].partitions

    assert asyncio.run(grow()) == (0, 1, 2)


def test_settings_of_a_group_count_from_its_next_heartbeat_on(ask: Ask, broker: Broker) -> None:
    ask(joining())
    broker.topics.set_configs(ConfigResource.GROUP, "g", {"consumer.moving.heartbeat.interval.ms": "300"})
    broker.groups.config_changed(ConfigResource.GROUP, "g")
    stays = joining(member_epoch=2, subscribed_topic_names=None, topic_partitions=None, rebalance_timeout_ms=-1)
    assert ask(stays).heartbeat_interval_ms == 300


def test_offsets_are_committed_on_the_members_epoch(ask: Ask, broker: Broker) -> None:
    epoch = ask(joining()).member_epoch
    there = broker.topics.get("there")
    assert there is not None
    Topic = OffsetCommitRequest.Topic  # noqa: N806

    def commit(member_epoch: int) -> int:
        parts = [Topic.Partition(partition_index=0, committed_offset=3)]
        request = OffsetCommitRequest(
            group_id="g",
            member_id="m",
            generation_id_or_member_epoch=member_epoch,
            topics=[Topic(topic_id=there.id, partitions=parts)],
        )
        code: int = ask(request).topics[0].partitions[0].error_code
        return code

    assert commit(epoch) == ErrorCode.NONE
    assert commit(epoch - 2) == ErrorCode.STALE_MEMBER_EPOCH
