"""Validation of ConsumerGroupHeartbeat requests, as far as the request itself shows what is wrong (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.coordinator.modern.epochs import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
)
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_OWN_MEMBER_ID: Final = 1  # first version in which clients make their member ids


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Checks a heartbeat, in Kafka's order.

    Raises:
        KafkaError: INVALID_REQUEST, naming the field; UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    needs_id = version >= _OWN_MEMBER_ID or epoch > JOIN_GROUP_MEMBER_EPOCH or epoch == LEAVE_GROUP_MEMBER_EPOCH
    if needs_id and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId must be null or not empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId must be null or not empty.")
    if epoch == JOIN_GROUP_MEMBER_EPOCH:
        _check_join(request)
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId must be given with MemberEpoch -2: only a static member can leave for a while.")
    elif epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}; it must be -2 or more.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {shown(request.server_assignor)} is none of {', '.join(assignors)}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be given when the member joins.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be an empty list when the member joins: it can't own partitions yet.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("SubscribedTopicNames or SubscribedTopicRegex must be given when the member joins.")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)
