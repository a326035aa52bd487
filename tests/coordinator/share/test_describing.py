"""ShareGroupDescribe and ListGroups of share groups; the example of the wire format's page, to the byte."""

from __future__ import annotations

from uuid import UUID

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.share.describing import describe
from kohort.coordinator.share.group import ShareGroup
from kohort.coordinator.share.member import Role, ShareMetadata
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeResponse
from kohort.protocol.topic_partition import TopicIdPartition
from tests.coordinator.share.driver import GROUP, Driver, Topics

ORDERS = UUID("550e8400-e29b-41d4-a716-446655440000")

EXAMPLE = bytes.fromhex(
    "00000000"  # throttle time
    "02"  # one group
    "0000" "00"  # no error, no message
    "11" + b"order-processors".hex() +
    "07" + b"Stable".hex() +
    "0000000c" "0000000c"  # epochs
    "08" + b"uniform".hex() +
    "02"  # one member
    "12" + b"consumer-1-abc123".hex() +
    "00"  # no rack
    "0000000c"
    "10" + b"my-app-producer".hex() +
    "0e" + b"192.168.1.100".hex() +
    "03" "08" + b"value-1".hex() + "08" + b"value-2".hex() +
    "02"  # one topic
    + ORDERS.hex +
    "07" + b"orders".hex() +
    "04" "00000001" "00000002" "00000003"
    "00" "00" "00"  # tags of topic, assignment, member
    "00000002"  # authorized operations
    "00" "00"
)  # fmt: skip


def test_the_example_of_the_wire_format() -> None:
    group = ShareGroup("order-processors")
    group.put_epoch(12)
    group.put_assignment_epoch(12)
    group.put_metadata(
        "consumer-1-abc123", ShareMetadata(None, "my-app-producer", "192.168.1.100", ("value-1", "value-2"))
    )
    places = {TopicIdPartition(ORDERS, partition): Role.SHARED for partition in (1, 2, 3)}
    group.put_current("consumer-1-abc123", CurrentAssignment(12, 11, assigned=places))
    cluster = Topics({"orders": 4})
    cluster.ids["orders"] = ORDERS

    described = describe(group, "uniform", cluster)
    described.authorized_operations = 2

    assert ShareGroupDescribeResponse(groups=[described]).encode(1) == EXAMPLE


def test_a_group_with_members_and_one_without() -> None:
    driver = Driver({"a": 1})
    epoch = driver.settle("m", "a")

    described = driver.groups.describe(GROUP)

    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", epoch, epoch)
    assert described.assignor_name == "simple"
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.client_host) == ("m", epoch, "10.0.0.1")
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, tuple(topic.partitions)) == ("a", (0,))
    driver.beat("m", -1)
    described = driver.groups.describe(GROUP)
    assert (described.group_state, described.members) == ("Empty", [])


def test_partitions_of_a_topic_that_is_gone_are_left_out() -> None:
    driver = Driver({"a": 1})
    driver.settle("m", "a")

    driver.delete_topic("a")

    assert driver.groups.describe(GROUP).members[0].assignment.topic_partitions == []


def test_an_unknown_group() -> None:
    described = Driver().groups.describe("unknown")

    assert (described.error_code, described.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "There is no share group unknown.",
    )


def test_listing() -> None:
    driver = Driver()
    driver.settle("m", "a")

    (listed,) = driver.groups.listed(["STABLE"])

    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        GROUP, "share", "Stable", "share",
    )  # fmt: skip
    assert driver.groups.listed(["Empty"]) == []
