"""Groups of every type come out in one shape."""

from __future__ import annotations

import uuid

from kohort.client.administration.group_descriptions import classic_group, consumer_group, share_group, streams_group
from kohort.client.administration.group_types import GroupType
from kohort.client.streams.classic.assignment import Assignment, encode_assignment
from kohort.client.streams.classic.subscription import Subscription, encode_subscription
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.messages import consumer_group_describe as consumer
from kohort.protocol.messages import share_group_describe as share
from kohort.protocol.messages import streams_group_describe as streams
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kohort.protocol.messages.describe_groups import DescribeGroupsResponse
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Subtopology, Topology

AT = Broker(1, "here", 9092)
ID = uuid.UUID(int=7)


def classic_member(subscription: bytes, assignment: bytes) -> DescribeGroupsResponse.Group.Member:
    return DescribeGroupsResponse.Group.Member(
        member_id="m",
        group_instance_id="static",
        client_id="c",
        client_host="/h",
        member_metadata=subscription,
        member_assignment=assignment,
    )


def group_of(
    member: DescribeGroupsResponse.Group.Member, protocol_type: str = "consumer"
) -> DescribeGroupsResponse.Group:
    return DescribeGroupsResponse.Group(
        group_id="g", group_state="Stable", protocol_type=protocol_type, protocol_data="range", members=[member]
    )


SUBSCRIPTION = ConsumerProtocolSubscription(topics=("t", "u"), rack_id="north")
ASSIGNMENT = ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolAssignment.AssignedPartition(topic="t", partitions=(3, 1))]
)


def versioned(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int, said: int) -> bytes:
    return said.to_bytes(2, "big") + message.encode(version)


def test_a_classic_group_of_consumers() -> None:
    group = classic_group(group_of(classic_member(versioned(SUBSCRIPTION, 3, 3), versioned(ASSIGNMENT, 3, 3))), AT)
    (member,) = group.members
    assert (group.type, group.state, group.assignor, group.epoch) == (GroupType.CLASSIC, "Stable", "range", None)
    assert (member.topics, member.rack, member.instance_id, member.epoch) == (("t", "u"), "north", "static", None)
    assert member.partitions == (TopicPartition("t", 1), TopicPartition("t", 3))
    assert group.owners() == {partition: [member] for partition in member.partitions}


def test_a_member_of_a_classic_streams_group_that_waits_for_its_tasks_is_not_one_without_tasks() -> None:
    subscription = encode_subscription(
        Subscription(process_id=str(ID), topology=Topology({"0": Subtopology(source_topics=["t"])}))
    )
    (waiting,) = classic_group(group_of(classic_member(subscription, b""), "stream"), AT).members
    assert waiting.streams is None
    (idle,) = classic_group(
        group_of(classic_member(subscription, encode_assignment(Assignment())), "stream"), AT
    ).members
    assert idle.streams is not None
    assert idle.streams.tasks == {}


def test_newer_versions_of_what_consumers_say_are_read_as_far_as_they_are_known() -> None:
    newer = versioned(ASSIGNMENT, 3, 9) + b"more"
    (member,) = classic_group(group_of(classic_member(b"", newer)), AT).members
    assert len(member.partitions) == 2


def test_what_other_clients_say_to_each_other_is_their_own_affair() -> None:
    for bytes_ in (b"", b"\x00", b"\x00\x01\xff\xff\xff\xff", b"{json}"):
        (member,) = classic_group(group_of(classic_member(bytes_, bytes_)), AT).members
        assert (member.topics, member.partitions, member.has_metadata) == ((), (), bool(bytes_))
    (member,) = classic_group(group_of(classic_member(b"", versioned(ASSIGNMENT, 3, 3)), "connect"), AT).members
    assert member.partitions == ()


def test_a_consumer_group() -> None:
    kind = consumer.ConsumerGroupDescribeResponse.Group

    def having(*partitions: int) -> consumer.Assignment:
        return consumer.Assignment(
            topic_partitions=[consumer.TopicPartitions(topic_id=ID, topic_name="t", partitions=partitions)]
        )

    members = [
        kind.Member(
            member_id=name,
            client_id="c",
            client_host="/h",
            member_epoch=4,
            subscribed_topic_names=("t",),
            subscribed_topic_regex="",
            assignment=having(*now),
            target_assignment=having(*then),
            member_type=type_,
        )
        for name, now, then, type_ in (("b", (0, 1), (0,), 1), ("a", (), (1,), 0))
    ]
    group = consumer_group(
        kind(
            group_id="g",
            group_state="Reconciling",
            group_epoch=5,
            assignment_epoch=5,
            assignor_name="uniform",
            members=members,
        ),
        AT,
    )
    first, second = group.members
    assert (group.type, group.epoch, group.assignment_epoch, group.assignor) == (GroupType.CONSUMER, 5, 5, "uniform")
    assert (first.member_id, first.classic, first.partitions, first.target) == (
        "a", True, (), (TopicPartition("t", 1),),
    )  # fmt: skip
    assert (second.classic, second.epoch, second.pattern) == (False, 4, None)
    assert second.target == (TopicPartition("t", 0),)


def test_in_a_share_group_several_members_have_a_partition() -> None:
    kind = share.ShareGroupDescribeResponse.Group
    has = share.Assignment(topic_partitions=[share.TopicPartitions(topic_id=ID, topic_name="t", partitions=(0,))])
    members = [
        kind.Member(member_id=name, client_id="c", client_host="/h", member_epoch=2, assignment=has) for name in "ab"
    ]
    group = share_group(kind(group_id="s", group_state="Stable", group_epoch=2, members=members), AT)
    assert [member.member_id for member in group.owners()[TopicPartition("t", 0)]] == ["a", "b"]
    assert group.type is GroupType.SHARE
    assert group.members[0].target is None


def test_a_streams_group_has_tasks_by_role_and_partitions_by_its_topology() -> None:
    kind = streams.StreamsGroupDescribeResponse.Group
    member = kind.Member(
        member_id="m",
        client_id="c",
        client_host="/h",
        member_epoch=3,
        topology_epoch=1,
        process_id="p",
        user_endpoint=streams.Endpoint(host="e", port=80),
        client_tags=[streams.KeyValue(key="zone", value="a")],
        task_offsets=[streams.TaskOffset(subtopology_id="1", partition=0, offset=5)],
        task_end_offsets=[streams.TaskOffset(subtopology_id="1", partition=0, offset=9)],
        assignment=streams.Assignment(
            active_tasks=[streams.TaskIds(subtopology_id="0", partitions=(1, 0))],
            standby_tasks=[streams.TaskIds(subtopology_id="1", partitions=(2,))],
            warmup_tasks=[streams.TaskIds(subtopology_id="1", partitions=(0,))],
        ),
        target_assignment=streams.Assignment(active_tasks=[streams.TaskIds(subtopology_id="1", partitions=(0,))]),
    )
    topology = kind.Topology(
        epoch=1,
        subtopologies=[
            kind.Topology.Subtopology(subtopology_id="0", source_topics=("in",), repartition_sink_topics=("re",)),
            kind.Topology.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[streams.TopicInfo(name="re", partitions=4)],
                state_changelog_topics=[streams.TopicInfo(name="log")],
            ),
        ],
    )
    group = streams_group(
        kind(
            group_id="app", group_state="Stable", group_epoch=3, assignment_epoch=3, topology=topology, members=[member]
        ),
        AT,
    )
    (found,) = group.members
    assert found.streams is not None
    assert found.streams.tasks == {
        TaskId("0", 0): Role.ACTIVE,
        TaskId("0", 1): Role.ACTIVE,
        TaskId("1", 2): Role.STANDBY,
        TaskId("1", 0): Role.WARMUP,
    }
    assert found.streams.target_tasks == {TaskId("1", 0): Role.ACTIVE}
    assert found.partitions == (TopicPartition("in", 0), TopicPartition("in", 1))
    assert found.target == (TopicPartition("re", 0),)
    assert (found.streams.endpoint, found.streams.tags) == (("e", 80), {"zone": "a"})
    assert (found.streams.task_offsets, found.streams.task_end_offsets) == ({TaskId("1", 0): 5}, {TaskId("1", 0): 9})
    assert group.topology_epoch == 1
    assert group.topology is not None
    assert [topic.name for topic in group.topology.subtopologies["1"].changelogs] == ["log"]


def test_a_streams_group_whose_topics_are_missing_has_no_topology() -> None:
    kind = streams.StreamsGroupDescribeResponse.Group
    group = streams_group(
        kind(group_id="app", group_state="NotReady", topology=kind.Topology(epoch=2, subtopologies=None)), AT
    )
    assert (group.topology_epoch, group.topology) == (2, None)


def test_types_are_as_brokers_name_them() -> None:
    assert [GroupType.of(name) for name in ("Classic", "consumer", "Share", "streams", "", "new")] == [
        GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS, GroupType.CLASSIC, GroupType.UNKNOWN,
    ]  # fmt: skip
