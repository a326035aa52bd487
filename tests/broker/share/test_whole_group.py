"""A share group with members: what it has in flight is described, its offsets are altered, it is deleted."""

from __future__ import annotations

import pytest

from kohort.broker.broker import Broker
from kohort.broker.topics import ConfigResource, Topic
from kohort.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kohort.protocol.share_in_flight import IN_FLIGHT_TAG, InFlight, decode_in_flight
from tests.broker.handlers.conftest import Ask, append_records
from tests.broker.handlers.share_groups import GROUP, heartbeat, leave
from tests.broker.share.groups import Member, acquired, errors

_Described = DescribeShareGroupOffsetsResponse.Group.Topic.Partition


@pytest.fixture
def topic(broker: Broker, ask: Ask) -> Topic:
    """A topic with ten records, that a group with a member "m" shares from its beginning."""
    broker.topics.set_configs(ConfigResource.GROUP, GROUP, {"share.auto.offset.reset": "earliest"})
    made = broker.topics.create("there", 1)
    append_records(broker, "there", 0, 10)
    joined = ask(heartbeat("m", 0, "there"))
    then = ask(heartbeat("m", joined.member_epoch))
    assert [topic.topic_id for topic in then.assignment.topic_partitions] == [made.id]
    return made


def describe(ask: Ask, *, tagged: bool = True) -> _Described:
    group = DescribeShareGroupOffsetsRequest.Group(group_id=GROUP, topics=None)
    if tagged:
        group.unknown_tags = {IN_FLIGHT_TAG: b""}
    ((described,),) = [
        topic.partitions for topic in ask(DescribeShareGroupOffsetsRequest(groups=[group])).groups[0].topics
    ]
    assert isinstance(described, _Described)
    assert described.error_code == 0
    return described


def test_what_is_in_flight_is_described_to_who_asks(ask: Ask, topic: Topic, broker: Broker) -> None:
    member = Member(ask, topic, "m", GROUP)
    before = broker.shares._clock()
    assert acquired(member.fetch(max_records=6)) == [(0, 5, 1)]
    assert errors(member.acknowledge((0, 1, 1), (2, 2, 2), (4, 4, 1))) == [(0, 0)]
    described = describe(ask)
    assert (described.start_offset, described.lag) == (0, 7)  # 0, 1 and 4 are done; the next write tells of the start
    assert described.unknown_tags is not None
    released, held, accepted, also_held = decode_in_flight(described.unknown_tags[IN_FLIGHT_TAG])
    assert released == InFlight(2, 2, "available", 1)
    assert held[:5] == (3, 3, "acquired", 1, "m")
    assert held.locked_until_ms is not None
    assert before + 30_000 <= held.locked_until_ms <= broker.shares._clock() + 30_000
    assert accepted == InFlight(4, 4, "acknowledged", 1)
    assert also_held[:2] == (5, 5)
    assert not describe(ask, tagged=False).unknown_tags


def test_nothing_in_flight_is_not_described(ask: Ask, topic: Topic) -> None:
    assert not describe(ask).unknown_tags
    member = Member(ask, topic, "m", GROUP)
    member.fetch()
    member.acknowledge((0, 9, 1))
    described = describe(ask)
    assert (described.start_offset, described.lag) == (0, 0)
    assert not described.unknown_tags


def test_altered_offsets_count_from_the_next_fetch_on(ask: Ask, topic: Topic) -> None:
    member = Member(ask, topic, "m", GROUP)
    assert acquired(member.fetch()) == [(0, 9, 1)]
    leave(ask)
    wanted = AlterShareGroupOffsetsRequest.Topic
    part = wanted.Partition(partition_index=0, start_offset=8)
    altered = ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[wanted(topic_name="there", partitions=[part])]))
    assert altered.responses[0].partitions[0].error_code == 0
    assert acquired(Member(ask, topic, "other", GROUP).fetch()) == [(8, 9, 1)]


def test_a_deleted_group_begins_anew(ask: Ask, topic: Topic, broker: Broker) -> None:
    member = Member(ask, topic, "m", GROUP)
    member.fetch()
    member.acknowledge((0, 4, 1))
    leave(ask)
    assert errors(member.acknowledge((5, 5, 1))) == [(0, 0)]  # its session goes on
    (result,) = ask(DeleteGroupsRequest(groups_names=(GROUP,))).results
    assert result.error_code == 0
    assert list(broker.shares) == []
    joined = ask(heartbeat("m", 0, "there"))
    ask(heartbeat("m", joined.member_epoch))
    assert acquired(Member(ask, topic, "m", GROUP).fetch()) == [(0, 9, 1)]
