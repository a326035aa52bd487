"""A classic group of consumers that has members becomes a consumer group, as a member of the consumer protocol joins.

Its members stay what they are: each has what the latest generation gave it, in the epoch of that generation, and goes
on with JoinGroup and the like (`classic_members`). Kafka's ConsumerGroup.fromClassicGroup.
"""

from __future__ import annotations

from typing import NamedTuple

from kohort.coordinator.classic.group import CONSUMERS, ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.records import group_tombstone
from kohort.coordinator.classic.responses import join_refused, sync_refused
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.consumer import records
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.conversion.classic_metadata import classic_metadata, with_subscription
from kohort.coordinator.conversion.embedded_protocol import decode_assignment, decode_subscription
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.metadata_hash import metadata_hash
from kohort.coordinator.modern.partitions import ASSIGNED, Role
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.step import Answer, Record
from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.topic_partition import TopicIdPartition


class Upgrade(NamedTuple):
    """What becomes of a classic group.

    Attributes:
        group: the consumer group, as its records make it.
        records: remove the classic group, and make the consumer group.
        answers: to members that wait for a rebalance, which is over: REBALANCE_IN_PROGRESS makes them join again.
    """

    group: ConsumerGroup
    records: list[Record]
    answers: list[Answer]


def check_upgrade(classic: ClassicGroup, policy: MigrationPolicy, max_size: int) -> None:
    """Raises GROUP_ID_NOT_FOUND, as Kafka does, if a classic group may not become a consumer group."""
    if not policy.upgrades:
        raise _refused(classic, "group.consumer.migration.policy is without upgrades")
    if classic.protocol_type != CONSUMERS:
        raise _refused(classic, f"its protocol type is {classic.protocol_type!r}, not {CONSUMERS!r}")
    if len(classic.members) > max_size:
        raise _refused(classic, f"it has {len(classic.members)} members, and a consumer group at most {max_size}")


def upgrade(classic: ClassicGroup, cluster: Cluster) -> Upgrade:
    """Makes a consumer group of a classic one.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, if what members said or were assigned can't be read, or has user data that an
            assignor of theirs would miss.
    """
    group_id, epoch = classic.group_id, classic.generation
    group = ConsumerGroup(group_id)
    for member_id, member in classic.members.items():
        try:
            metadata, current = _member(classic, member, cluster)
        except ProtocolError as error:
            raise _refused(classic, f"what member {member_id} said or was assigned can't be read: {error}") from error
        group.put_metadata(member_id, metadata)
        group.put_target(member_id, current.assigned)
        group.put_current(member_id, current)
    if classic.state is GroupState.STABLE and _assigns_all(group, cluster):
        group.metadata_hash = metadata_hash(group.subscriptions.names({}), cluster)
    # Otherwise it stays unlike that of the topics, so that partitions are assigned in place of the rebalance under way,
    # or of the second one of cooperative consumers, even if the joining member only takes the place of a static one.
    group.put_epoch(epoch)
    group.put_assignment_epoch(epoch)
    made = [
        group_tombstone(group_id),
        *(records.member_record(group_id, each.member_id, each.metadata) for each in group.members.values()),
        records.group_record(group_id, epoch, group.metadata_hash),
        *(records.target_record(group_id, member_id, target) for member_id, target in group.target.items()),
        records.assignment_epoch_record(group_id, epoch),
        *(records.current_assignment_record(group_id, each.member_id, each.current) for each in group.members.values()),
    ]
    return Upgrade(group, made, _answers(classic))


def _assigns_all(group: ConsumerGroup, cluster: Cluster) -> bool:
    """Whether the target has all partitions of the topics that members subscribe to; O(partitions)."""
    assigned = set[TopicIdPartition]().union(*group.target.values())
    return assigned.issuperset(
        TopicIdPartition(topic_id, number)
        for name in group.subscriptions.topics
        if (topic_id := cluster.topic_id(name)) is not None
        for number in range(cluster.partitions(name) or 0)
    )


def _member(
    classic: ClassicGroup, member: Member, cluster: Cluster
) -> tuple[ConsumerMetadata, CurrentAssignment[TopicIdPartition, Role]]:
    partitions, user_data = decode_assignment(member.assignment, cluster)
    if user_data:
        raise KafkaError(  # in Kafka's words, which its own tests compare
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {classic.group_id} to consumer group because an unsupported custom assignor"
            " is in use. Please refer to the documentation or switch to a default assignor before re-attempting the"
            " upgrade.",
        )
    # In its first rebalance a group has no protocol yet.
    chosen = member.protocols.get(classic.protocol or "", next(iter(member.protocols.values())))
    metadata = ConsumerMetadata(
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        regex="",
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
    )
    subscription = decode_subscription(chosen, cluster)
    # Who hasn't got its assignment yet still has what it came with; Kafka takes that for free.
    waits = member.member_id in classic.pending_sync or not member.assignment
    owned = subscription.owned - partitions if waits else frozenset()
    epoch = classic.generation
    current = CurrentAssignment(
        epoch,
        epoch,
        MemberState.UNREVOKED if owned else MemberState.STABLE,
        dict.fromkeys(partitions, ASSIGNED),
        dict.fromkeys(owned, ASSIGNED),
        dict.fromkeys(partitions | owned, epoch),
    )
    return with_subscription(metadata, subscription), current


def _answers(classic: ClassicGroup) -> list[Answer]:
    code = ErrorCode.REBALANCE_IN_PROGRESS
    return [
        *(Answer(each.reply, join_refused(code, name, each.version)) for name, each in classic.joining.items()),
        *(Answer(each.reply, sync_refused(code)) for each in classic.syncing.values()),
    ]


def _refused(classic: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Classic group {classic.group_id} can't become a consumer group: {why}."
    )
