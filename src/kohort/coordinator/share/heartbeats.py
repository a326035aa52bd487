"""Heartbeats of members that join, stay and leave, and the removal of members that are fenced, step by step."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from kohort.coordinator.member_lines import tell_joined, tell_removed
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH
from kohort.coordinator.modern.fencing import check_member_epoch
from kohort.coordinator.modern.heartbeat_interval import heartbeat_interval_ms
from kohort.coordinator.modern.member_identity import check_known, check_room
from kohort.coordinator.modern.metadata_hash import metadata_hash
from kohort.coordinator.modern.reconciliation import reconcile
from kohort.coordinator.modern.timeouts import MemberTimers
from kohort.coordinator.share.draft import Draft
from kohort.coordinator.share.environment import ShareEnvironment
from kohort.coordinator.share.member import RULES, Role, ShareMetadata
from kohort.coordinator.share.records import by_topic
from kohort.coordinator.share.results import HeartbeatResult, Initialization
from kohort.coordinator.share.state_partitions import TopicState
from kohort.coordinator.share.target_assignment import assignment_pending, update_target
from kohort.coordinator.step import Client
from kohort.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.protocol.topic_partition import TopicIdPartition

log = logging.getLogger(__name__)

_NO_START_OFFSET = -1


class Heartbeats:
    """Handles heartbeats.

    Args:
        timers: the members' session timeouts.
    """

    def __init__(self, environment: ShareEnvironment, timers: MemberTimers) -> None:
        self._environment = environment
        self._cluster = environment.cluster
        self._timers = timers

    # A member joins or stays ------------------------------------------------------------------------------------

    def heartbeat(self, draft: Draft, request: ShareGroupHeartbeatRequest, client: Client, now: int) -> HeartbeatResult:
        """A member joins or stays.

        Raises:
            KafkaError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
        """
        group, member_id = draft.group, request.member_id
        before = _identify(draft, request)
        known = group.members.get(member_id)
        metadata = ShareMetadata() if known is None else known.metadata
        merged = metadata.merged(request, client)
        if known is None:
            tell_joined(draft.group_id, member_id, None, client.client_id, client.host)
        if known is None or merged != metadata:
            draft.put_member(member_id, merged)
        names = subscribed_names(draft)
        reasons = []
        if merged.topics != metadata.topics:
            reasons.append(f"member {member_id} {'joined' if known is None else 'subscribes to other topics'}")
        self._bump_if_needed(draft, names, reasons)
        update_target(draft, names, self._cluster)
        current = self._reconcile(draft, member_id, before, merged)
        initialization = self._initialize(draft, names, now)
        draft.then(
            self._timers.reset_session_timeout, draft.group_id, member_id, now, draft.settings.session_timeout_ms
        )
        response = ShareGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=current.epoch,
            heartbeat_interval_ms=heartbeat_interval_ms(
                draft.settings,
                moving=bool(draft.states.pending) or draft.is_moving(),
                since_assigned_ms=draft.now - draft.assigned_at,
            ),
        )
        # An earlier response may have got lost: a member behind its epoch, and one that says all again, is told again.
        full = request.subscribed_topic_names is not None
        behind = request.member_epoch != before.epoch
        if full or behind or current.assigned != before.assigned:
            response.assignment = _assignment(current)
        return HeartbeatResult(response, initialization)

    def _bump_if_needed(self, draft: Draft, names: frozenset[str], reasons: list[str]) -> None:
        """Begins a new group epoch for these reasons, and if the target depends on something else that has changed."""
        if draft.assignment_epoch >= draft.epoch and assignment_pending(draft, names, self._cluster):
            reasons.append("other partitions are initialized than assigned")
        found = metadata_hash(names, self._cluster)
        if found != draft.metadata_hash:
            draft.metadata_hash = found
            reasons.append("topics have changed")
        if reasons:
            draft.bump("; ".join(reasons))

    def _reconcile(
        self,
        draft: Draft,
        member_id: str,
        before: CurrentAssignment[TopicIdPartition, Role],
        metadata: ShareMetadata,
    ) -> CurrentAssignment[TopicIdPartition, Role]:
        """Gives the member its part of the target, of the topics that it subscribes to."""
        topic_ids = {self._cluster.topic_id(name) for name in metadata.topics}
        wanted = {place: role for place, role in draft.target(member_id).items() if place.topic_id in topic_ids}
        current = reconcile(before, wanted, draft.assignment_epoch, None, lambda place, role: True, RULES)
        if current is before and before.assigned != wanted:  # other topics before a new target: what it has is less
            current = replace(before, assigned=wanted)
        if current is not before:
            draft.put_current(member_id, current)
            log.info(
                "member moved group=%s member=%s epoch=%d was=%d partitions=%d",
                draft.group_id, member_id, current.epoch, before.epoch, len(current.assigned),
            )  # fmt: skip
        return current

    def _initialize(self, draft: Draft, names: frozenset[str], now: int) -> Initialization | None:
        """Begins to initialize the partitions of subscribed topics that have no state yet."""
        asked_at, retry_ms = draft.soft.asked_at, draft.settings.initialize_retry_interval_ms

        def topic(name: str) -> tuple[UUID, int] | None:
            partitions, topic_id = self._cluster.partitions(name), self._cluster.topic_id(name)
            return None if partitions is None or topic_id is None else (topic_id, partitions)

        def waiting(topic_id: UUID) -> bool:
            return topic_id in asked_at and now < asked_at[topic_id] + retry_ms

        missing = draft.states.missing(names, topic, waiting)
        if not missing:
            return None
        draft.put_states(draft.states.begin(missing))
        draft.note_asked(missing, now)
        return Initialization(draft.epoch, _without_offsets(missing))

    # A member leaves or is fenced -------------------------------------------------------------------------------

    def leave(self, draft: Draft, request: ShareGroupHeartbeatRequest) -> HeartbeatResult:
        """A member leaves.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        check_known(draft.group, request.member_id, None)
        self.remove_member(draft, request.member_id, "it left")
        return HeartbeatResult(
            ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        )

    def fence_member(self, draft: Draft, member_id: str, why: str) -> None:
        """Removes a member that is silent; what it holds is given to others.

        One that leaves ends its share session by itself, maybe with acknowledgements that come after its leaving.
        """
        draft.then(self._environment.member_fenced, draft.group_id, member_id)
        self.remove_member(draft, member_id, why)

    def remove_member(self, draft: Draft, member_id: str, why: str) -> None:
        """Removes a member that leaves or is fenced. The next heartbeat of another one makes a new target."""
        metadata = draft.group.members[member_id].metadata
        tell_removed(draft.group_id, member_id, metadata.client_id, metadata.client_host, why)
        draft.then(self._timers.stop, draft.group_id, member_id)
        draft.remove_member(member_id)
        draft.metadata_hash = metadata_hash(subscribed_names(draft), self._cluster)
        draft.bump(f"member {member_id} is gone: {why}")


def subscribed_names(draft: Draft) -> frozenset[str]:
    """Names of the topics that any member subscribes to. O(members)."""
    return frozenset[str]().union(*(metadata.topics for metadata, _ in draft.members().values()))


def _identify(draft: Draft, request: ShareGroupHeartbeatRequest) -> CurrentAssignment[TopicIdPartition, Role]:
    """Returns the current assignment of the sender; a new one for a member that joins."""
    group, member_id = draft.group, request.member_id
    check_room(group, member_id, None, draft.settings.max_size)
    if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
        member = group.members.get(member_id)
        return CurrentAssignment() if member is None else member.current
    check_known(group, member_id, None)
    current = group.members[member_id].current
    check_member_epoch("share", current, request.member_epoch, {}, RULES.exclusive)
    return current


def _assignment(current: CurrentAssignment[TopicIdPartition, Role]) -> ShareGroupHeartbeatResponse.Assignment:
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in by_topic(current.assigned)
        ]
    )


def _without_offsets(topics: Mapping[UUID, TopicState]) -> dict[UUID, dict[int, int]]:
    return {topic_id: dict.fromkeys(sorted(each.partitions), _NO_START_OFFSET) for topic_id, each in topics.items()}
