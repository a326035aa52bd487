"""Members of classic streams groups, as what they and their leader wrote tells of them."""

from __future__ import annotations

from kohort.client.administration.group_types import StreamsMemberState
from kohort.client.streams.classic.assignment import decode_assignment
from kohort.client.streams.classic.subscription import ReadSubscription, TooNewError, decode_subscription
from kohort.client.streams.classic.versions import WITH_OFFSETS
from kohort.protocol.messages.describe_groups import DescribeGroupsResponse


def read_subscription(member: DescribeGroupsResponse.Group.Member) -> ReadSubscription | None:
    """Returns what a member told its leader; None if it says nothing of its process.

    Apache Kafka's brokers keep it to themselves while the group rebalances; `kohort serve` tells that of members which
    have joined again. Before version 3 it has task ids alone.
    """
    try:
        read = decode_subscription(member.member_metadata)
    except (TooNewError, ValueError):
        return None
    return read if read.version >= WITH_OFFSETS else None


def streams_state(member: DescribeGroupsResponse.Group.Member) -> StreamsMemberState | None:
    """Returns what only members of streams applications have; None if it can't be known.

    While the group rebalances nothing is assigned: not even an assignment without tasks, which leaders give, too.
    """
    read = read_subscription(member) if member.member_assignment else None
    if read is None:
        return None
    subscription, topology = read.subscription, read.subscription.topology
    try:
        target = decode_assignment(member.member_assignment).tasks
    except ValueError:
        target = {}
    endpoint = subscription.user_endpoint
    return StreamsMemberState(
        process_id=subscription.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=subscription.client_tags,
        topology_epoch=-1 if topology is None else topology.epoch,
        tasks=target,
        target_tasks=target,
        task_offsets=subscription.offsets,
        task_end_offsets=subscription.ends,
    )
