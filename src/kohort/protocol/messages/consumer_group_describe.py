"""ConsumerGroupDescribe: API 69."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string, struct, uuid_


class TopicPartitions(Struct):
    """Assigned partitions of one topic."""

    topic_id: UUID = uuid_("The topic's id.")
    topic_name: str = string("Name of the topic with that id.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions.")


class Assignment(Struct):
    """A set of partitions given to one member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "The member's partitions, by topic.")


class ConsumerGroupDescribeRequest(Request, key=69, versions="0-1", flexible=0):
    """Asks a coordinator for the state of groups that use the new consumer protocol.

    - v1: same fields; the response tells each member's type
    """

    group_ids: tuple[str, ...] = array(string, "Groups to describe; the receiver should coordinate them.")
    include_authorized_operations: bool = boolean("True to also hear what the caller may do to each group.")


class ConsumerGroupDescribeResponse(Response, key=69, versions="0-1", flexible=0):
    """State, epochs, members and assignments of consumer groups.

    - v1: members have MemberType
    """

    class Group(Struct):
        """State and members of one group, or why it can't be described."""

        class Member(Struct):
            member_id: str = string("Id the member joined with.")
            instance_id: str | None = string("Id of a static member; null for a dynamic one.", nullable=True)
            rack_id: str | None = string("Rack the member runs in; null if it named none.", nullable=True)
            member_epoch: int = int32("Member epoch the member has reached.")
            client_id: str = string("Name the member's client gives in request headers.")
            client_host: str = string("Address from which the member's client connects.")
            subscribed_topic_names: tuple[str, ...] = array(string, "Names of the topics the member subscribes to.")
            subscribed_topic_regex: str | None = string(
                "Regex of the topics it subscribes to; null if it uses none.", nullable=True
            )
            assignment: Assignment = struct(Assignment, "Partitions the member has at the moment.")
            target_assignment: Assignment = struct(
                Assignment, "Partitions the member will have once the group has reconciled."
            )
            member_type: int = int8(
                "Protocol the member speaks: -1 = unknown, 0 = classic, 1 = consumer.",
                since=1,
                default=-1,
                ignorable=True,
            )

        error_code: int = int16("0, or why this group can't be described.")
        error_message: str | None = string("Why this group failed, for people; null without an error.", nullable=True)
        group_id: str = string("Id of the group described.")
        group_state: str = string("State by name: Empty, Assigning, Reconciling, Stable, Dead; empty if it failed.")
        group_epoch: int = int32("The group epoch; grows when members or subscriptions change.")
        assignment_epoch: int = int32("The group epoch for which the target assignment was computed.")
        assignor_name: str = string("Assignor that computed the target assignment.")
        members: list[Member] = array(Member, "Members the group has now.")
        authorized_operations: int = int32(
            "One bit per operation the caller may do to the group; -2147483648 = not asked.", default=-2147483648
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    groups: list[Group] = array(Group, "One result for each group that was asked about.")
