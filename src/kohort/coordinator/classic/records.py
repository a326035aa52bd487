"""Classic groups in the log: a record of type 2 of `__consumer_offsets` holds a whole group.

It is written when the members of a generation have their assignments, when a static member comes back, and when a group
becomes empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.step import Record
from kohort.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata

VALUE_VERSION: Final = 3
"""The version that Kafka writes these values in, though it knows 4."""


def group_record(
    group: ClassicGroup, members: Iterable[Member], leader: str | None, assignments: Mapping[str, bytes], now: int
) -> Record:
    """The record of a group with these members and assignments, by member id; an empty one where there is none."""
    protocol = group.protocol
    return Record(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=protocol,
            leader=leader,
            current_state_timestamp=now,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.protocols[protocol or ""],
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in members
            ],
        ),
    )


def group_tombstone(group_id: str) -> Record:
    return Record(GroupMetadataKey(group=group_id), None)


def apply_record(group: ClassicGroup, value: GroupMetadataValue) -> list[Member]:
    """Makes a group what its record says, and returns the members that it no longer has.

    Members that it has already, and `replacements`, stay the same objects: they have more protocols than the one that
    the record holds.
    """
    protocol = value.protocol or ""
    members = []
    for stored in value.members:
        member = group.members.get(stored.member_id) or group.replacements.pop(stored.member_id, None)
        subscription = bytes(stored.subscription)
        rebalance = stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout
        if member is None or member.protocols.get(protocol) != subscription:
            member = Member(
                stored.member_id,
                stored.group_instance_id,
                stored.client_id,
                stored.client_host,
                stored.session_timeout,
                rebalance,
                {protocol: subscription},
            )
        member.session_timeout_ms = stored.session_timeout
        member.rebalance_timeout_ms = rebalance
        member.assignment = bytes(stored.assignment)
        members.append(member)
    kept = set(members)
    gone = [member for member in group.members.values() if member not in kept]
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.state = GroupState.STABLE if members else GroupState.EMPTY
    group.state_since = value.current_state_timestamp
    group.reset(members, value.leader or None, value.protocol if members else None)
    return gone
