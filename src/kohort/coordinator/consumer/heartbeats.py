"""Heartbeats of members that join, stay and leave, and the removal of members that are fenced, step by step."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.member_identity import Sender, identified_member, joining_member
from kohort.coordinator.consumer.reconciliation_rules import RULES
from kohort.coordinator.consumer.regexes import drop_unused, update_regex
from kohort.coordinator.consumer.responses import heartbeat_response
from kohort.coordinator.consumer.target_assignment import subscribed_ids, topics_changed, update_target
from kohort.coordinator.member_lines import tell_removed
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.member_identity import away, check_known
from kohort.coordinator.modern.partitions import Partitions, Role, partitions_of
from kohort.coordinator.modern.reconciliation import reconcile
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.modern.timeouts import MemberTimers
from kohort.coordinator.step import Client
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.protocol.topic_partition import TopicIdPartition

log = logging.getLogger(__name__)


class MemberUpdate(NamedTuple):
    """What a member that joins or stays says: in a heartbeat, or in a JoinGroup of the classic protocol.

    Attributes:
        sender: the member before it.
        metadata: its metadata after it.
        owned: the partitions that it says it has; None if it doesn't say.
    """

    member_id: str
    client: Client
    sender: Sender
    metadata: ConsumerMetadata
    owned: Partitions | None

    @property
    def changes_subscription(self) -> bool:
        before, after = self.sender.metadata, self.metadata
        return before.topics != after.topics or (before.regex or "") != (after.regex or "")


class Heartbeats:
    """Handles heartbeats.

    Args:
        timers: the members' session and rebalance timeouts.
        resolve: resolves regular expressions if a draft asks for it, once its records are in the log.
    """

    def __init__(
        self, environment: ConsumerEnvironment, timers: MemberTimers, resolve: Callable[[Draft], None]
    ) -> None:
        self._cluster = environment.cluster
        self._new_member_id = environment.new_member_id
        self._timers = timers
        self._resolve = resolve

    # A member joins or stays ------------------------------------------------------------------------------------

    def heartbeat(
        self, draft: Draft, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> ConsumerGroupHeartbeatResponse:
        """A member joins or stays.

        Raises:
            KafkaError: the member is refused.
        """
        if not request.member_id:  # only a member that joins, in version 0
            request = copy.copy(request)
            request.member_id = self._new_member_id()
        update = _identify(draft, request, client)
        current, before = self.update(draft, update), update.sender
        tells = _is_full(request) or before.behind or before.new or current.assigned != before.current.assigned
        return heartbeat_response(draft, request.member_id, current, tells_assignment=tells)

    def update(
        self, draft: Draft, update: MemberUpdate, *, assigns: bool = True
    ) -> CurrentAssignment[TopicIdPartition, Role]:
        """Takes in what a member says, and moves it towards its part of the target.

        Args:
            assigns: makes a target that is due. Otherwise the member stays where it is unless the target is up to date.
        """
        reasons = self._changes(draft, update)
        if (reasons or not draft.soft.topics_checked) and topics_changed(draft, self._cluster):
            reasons.append("its topics changed")
        draft.soft = replace(draft.soft, topics_checked=True)
        if reasons:
            draft.bump("; ".join(reasons))
        if assigns:
            update_target(draft, self._cluster)
        outdated = not assigns and draft.assignment_epoch < draft.epoch
        current = update.sender.current if outdated else self._reconcile(draft, update)
        self._resolve(draft)
        draft.then(self._reset_timeouts, draft, update, current)
        return current

    def _changes(self, draft: Draft, update: MemberUpdate) -> list[str]:
        """Updates the member's metadata; returns why partitions are to be assigned again, if they are."""
        before, after = update.sender.metadata, update.metadata
        if update.sender.new or after != before:
            draft.put_member(update.member_id, after)
        reasons = []
        if after.topics != before.topics:
            does = "joined" if update.sender.new else "subscribes to other topics"
            reasons.append(f"member {update.member_id} {does}")
        if why := update_regex(draft, before, after, update.client):
            reasons.append(why)
        return reasons

    def _reconcile(self, draft: Draft, update: MemberUpdate) -> CurrentAssignment[TopicIdPartition, Role]:
        """Moves the member towards its part of the target, as far as it still subscribes to the topics."""
        group, member_id, before = draft.group, update.member_id, update.sender.current
        forced = update.changes_subscription
        if not forced and before.is_reconciled_to(draft.assignment_epoch):
            return before
        selves = {member_id, update.sender.replaces}

        def free(partition: TopicIdPartition, role: Role) -> bool:
            del role
            return all(holder in selves for holder in group.ownership.holders(partition))

        ids = subscribed_ids(draft, update.metadata, self._cluster)
        wanted = {partition: role for partition, role in draft.target(member_id).items() if partition.topic_id in ids}
        epoch = draft.assignment_epoch
        current = reconcile(before, wanted, epoch, update.owned, free, RULES, forced=forced)
        if current is not before:
            draft.put_current(member_id, current)
            log.info(
                "member moved group=%s member=%s epoch=%d was=%d state=%s partitions=%d revoking=%d",
                group.group_id,
                member_id,
                current.epoch,
                before.epoch,
                current.state.value,
                len(current.assigned),
                len(current.revoking),
            )
        return current

    def _reset_timeouts(
        self, draft: Draft, update: MemberUpdate, current: CurrentAssignment[TopicIdPartition, Role]
    ) -> None:
        """Resets the session timeout; starts or ends the rebalance timeout, which classic members don't have."""
        sender, now, timeout = update.sender, draft.now, update.metadata.rebalance_timeout_ms
        group_id, member_id, classic = draft.group_id, update.member_id, update.metadata.classic
        if sender.replaces is not None and sender.replaces != member_id:
            self._timers.stop(group_id, sender.replaces)
        session = draft.settings.session_timeout_ms if classic is None else classic.session_timeout_ms
        self._timers.reset_session_timeout(group_id, member_id, now, session)
        if current.state is not MemberState.UNREVOKED or classic is not None:
            self._timers.stop_rebalance_timeout(group_id, member_id)
        elif current is not sender.current and timeout > 0:
            self._timers.start_rebalance_timeout(group_id, member_id, current.epoch, now + timeout)

    # A member leaves or is fenced -------------------------------------------------------------------------------

    def leave(self, draft: Draft, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """A member leaves, for good or for a while.

        Raises:
            KafkaError: there is no such member.
        """
        member_id = request.member_id
        check_known(draft.group, member_id, request.instance_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            log.info("static member left for a while group=%s member=%s", draft.group_id, member_id)
            draft.put_current(member_id, away(draft.group.members[member_id].current, RULES))
            draft.then(self._timers.stop_rebalance_timeout, draft.group_id, member_id)
        else:
            self.remove_member(draft, member_id, "it left")
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    def remove_member(self, draft: Draft, member_id: str, why: str) -> None:
        """Removes a member that leaves or is fenced. The next heartbeat assigns its partitions.

        Thousands may be fenced in one draft, so it takes time in proportion to the member's topics, and to all of the
        group's only when one of them has lost its last subscriber.
        """
        draft.then(self._timers.stop, draft.group_id, member_id)
        metadata = draft.metadata(member_id) or ConsumerMetadata()
        tell_removed(draft.group_id, member_id, metadata.client_id, metadata.client_host, why)
        draft.remove_member(member_id)
        drop_unused(draft, metadata.regex or "")
        changed = False
        if not draft.soft.topics_checked or draft.may_have_lost(metadata):
            changed = topics_changed(draft, self._cluster)
            draft.soft = replace(draft.soft, topics_checked=True)
        if draft.epoch == draft.group.epoch:
            draft.bump(f"member {member_id} is gone: {why}")
        elif changed:
            draft.records.append(draft.group_record())  # the one of the bump has the hash before this removal


def _identify(draft: Draft, request: ConsumerGroupHeartbeatRequest, client: Client) -> MemberUpdate:
    owned = None if request.topic_partitions is None else partitions_of(request.topic_partitions)
    if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
        sender = joining_member(draft, request, client)
    else:
        sender = identified_member(draft.group, request, owned)
    return MemberUpdate(request.member_id, client, sender, sender.metadata.merged(request, client), owned)


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a heartbeat says everything, as after an error; such a member gets its assignment again."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
