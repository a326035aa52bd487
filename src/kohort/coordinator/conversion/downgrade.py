"""A consumer group becomes a classic one, as its last member of the consumer protocol leaves, or is replaced.

The classic group's first generation is the consumer group's epoch, and its assignments are what members have. In Kafka
(ClassicGroup.fromConsumerGroup) they are the target, which is the same unless members are on the move. Then a rebalance
follows; but if a member of the consumer protocol comes before that is over, it mustn't get what others still have.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kohort.coordinator.classic.group import CONSUMERS, ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.records import group_record
from kohort.coordinator.consumer import records
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.conversion.classic_metadata import protocols_of
from kohort.coordinator.conversion.embedded_protocol import encode_assignment
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.step import Record


class Downgrade(NamedTuple):
    """What becomes of a consumer group.

    Attributes:
        records: remove the consumer group, and make the classic one.
        protocols: all that members support, by member id: the classic group's record has the chosen protocol alone.
    """

    records: list[Record]
    protocols: dict[str, dict[str, bytes]]


def may_downgrade(
    draft: Draft, gone: Collection[str], policy: MigrationPolicy, max_size: int, joining: int = 0
) -> bool:
    """Whether a group becomes a classic one when these members are gone, and so many classic ones come.

    One of them must have been of the consumer protocol: a group of classic members that stayed a consumer group, as the
    policy was another one, remains one. O(members that are gone).
    """
    if not policy.downgrades:
        return False
    leaving = [metadata for member_id in gone if (metadata := draft.metadata(member_id)) is not None]
    classic_leaving = sum(metadata.classic is not None for metadata in leaving)
    staying = draft.member_count() - len(leaving)
    return (
        0 < staying + joining <= max_size
        and staying == draft.subscriptions.classic - classic_leaving
        and classic_leaving < len(leaving)
    )


def downgrade(draft: Draft, cluster: Cluster, now: int) -> Downgrade:
    """Makes a classic group of one whose members all use the classic protocol. `now` is in ms since 1970."""
    currents = {member_id: current for member_id, (_, current) in draft.members().items()}
    members = {
        member_id: Member(
            member_id,
            metadata.instance_id,
            metadata.client_id,
            metadata.client_host,
            metadata.classic.session_timeout_ms,
            metadata.rebalance_timeout_ms,
            protocols_of(metadata.classic),
        )
        for member_id, (metadata, _) in draft.members().items()
        if metadata.classic is not None
    }
    classic = ClassicGroup(draft.group_id, now)
    classic.generation, classic.protocol_type = draft.epoch, CONSUMERS
    classic.protocol = protocol = ClassicGroup.select_protocol(members.values())
    assignments = {
        member_id: encode_assignment(dict(currents[member_id].held()), member.protocols[protocol], cluster)
        for member_id, member in members.items()
    }
    made: list[Record] = []
    for member_id in members:
        made += records.member_tombstones(draft.group_id, member_id)
    made += records.group_tombstones(draft.group_id, draft.group.regexes)
    made.append(group_record(classic, members.values(), next(iter(members)), assignments, now))
    return Downgrade(made, {member_id: member.protocols for member_id, member in members.items()})
