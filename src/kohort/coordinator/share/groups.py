"""The share groups of a shard: requests of members, timeouts, and the log; administrators' are in `offset_requests`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from kohort.coordinator.modern.groups import ModernGroups
from kohort.coordinator.share.describing import describe
from kohort.coordinator.share.draft import Draft
from kohort.coordinator.share.environment import ShareEnvironment
from kohort.coordinator.share.group import ShareGroup, SoftState
from kohort.coordinator.share.heartbeats import Heartbeats
from kohort.coordinator.share.records import group_tombstones
from kohort.coordinator.share.replaying import replay
from kohort.coordinator.share.request_validation import check_heartbeat
from kohort.coordinator.share.results import HeartbeatResult
from kohort.coordinator.share.state_partitions import TopicState
from kohort.coordinator.step import Client, Record, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeResponse
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

log = logging.getLogger(__name__)

SHARE: Final = "share"
"""The type of these groups, and their protocol type, as ListGroups has them."""

"""The name of a topic that was deleted in the meantime, as Kafka writes it."""


class ShareGroups(ModernGroups[ShareGroup, Draft, ShareGroupHeartbeatRequest, SoftState]):
    """Share groups, by id.

    Args:
        of_other_kind: whether a group of another kind has an id, even an empty one: it is never converted.
    """

    kind = SHARE
    protocol_type = SHARE

    def __init__(
        self,
        environment: ShareEnvironment,
        wheel: TimingWheel,
        pending_steps: list[Step],
        of_other_kind: Callable[[str], bool],
    ) -> None:
        super().__init__(wheel, pending_steps, lambda group_id: None if of_other_kind(group_id) else [])
        self.environment: Final = environment
        self.of_other_kind: Final = of_other_kind
        self._heartbeats = Heartbeats(environment, self._timers)

    # Members ----------------------------------------------------------------------------------------------------

    def _check(self, request: ShareGroupHeartbeatRequest, client: Client) -> None:
        check_heartbeat(request)

    def _join_or_stay(
        self, draft: Draft, request: ShareGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult:
        draft.now = now
        return self._heartbeats.heartbeat(draft, request, client, now)

    def _leave(self, draft: Draft, request: ShareGroupHeartbeatRequest, now: int) -> HeartbeatResult:
        return self._heartbeats.leave(draft, request)

    def _remove_member(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        self._heartbeats.fence_member(draft, member_id, why)

    def _refused(self, error: KafkaError) -> HeartbeatResult:
        return HeartbeatResult.refused(error)

    def _may_cache(self, draft: Draft, result: HeartbeatResult) -> bool:
        """Not while partitions are initialized, a target waits, or the next heartbeat is to come soon: each ends."""
        settled = result.response.heartbeat_interval_ms == draft.settings.heartbeat_interval_ms
        return settled and not draft.states.pending and draft.assignment_epoch == draft.epoch

    # What happens elsewhere -------------------------------------------------------------------------------------

    def initialized(self, group_id: str, partitions: Mapping[UUID, Collection[int]]) -> Step:
        """The share coordinator has initialized the states of these partitions."""
        group = self._groups.get(group_id)
        if group is None or not partitions:
            return Step()
        draft = self._draft(group)
        if topics := self._topics(group, partitions):
            draft.put_states(group.states.finish(topics))
        return self._step(draft)

    def not_initialized(self, group_id: str, partitions: Mapping[UUID, Collection[int]]) -> Step:
        """The share coordinator couldn't initialize these partitions: the next heartbeat tries again."""
        group = self._groups.get(group_id)
        if group is None or not group.states.initializing:
            return Step()
        draft = self._draft(group)
        draft.put_states(group.states.give_up(self._topics(group, partitions)))
        asked_at = {topic_id: at for topic_id, at in draft.soft.asked_at.items() if topic_id not in partitions}
        draft.soft = replace(draft.soft, asked_at=asked_at)
        return self._step(draft)

    def _topics(self, group: ShareGroup, partitions: Mapping[UUID, Collection[int]]) -> dict[UUID, TopicState]:
        known = group.states.known()
        topics = {}
        for topic_id, numbers in partitions.items():
            name = known[topic_id].name if topic_id in known else self.environment.cluster.name_of(topic_id)
            if name is not None:  # else it was deleted meanwhile
                topics[topic_id] = TopicState(name, frozenset(numbers))
        return topics

    def topics_changed(self, names: Collection[str]) -> Step:
        """Topics were created or deleted, or have grown: their groups see it with the next heartbeat."""
        changed = set(names)
        for group in self._groups.values():
            if any(not changed.isdisjoint(member.metadata.topics) for member in group.members.values()):
                group.bump_revision()
        return Step()

    def topic_deleted(self, topic_id: UUID) -> Step:
        """A topic was deleted, and with it the states of its partitions."""
        for group in self._groups.values():
            states = group.states.without_topic(topic_id)
            if states != group.states:
                draft = self._draft(group)
                draft.put_states(states)
                self._pending.append(self._step(draft))
        return Step()

    def settings_changed(self, group_id: str | None = None) -> Step:
        """The settings of a group have changed, or those of all groups; the next heartbeats go by them."""
        for group in self._groups.values():
            if group_id in (None, group.group_id):
                group.bump_revision()
        return Step()

    # Administrators ---------------------------------------------------------------------------------------------

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.Group:
        group = self._groups.get(group_id)
        if group is None:
            return ShareGroupDescribeResponse.Group(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"There is no share group {group_id}.",
            )
        assignor = self.environment.settings_of(group_id).assignors[0]
        return describe(group, assignor, self.environment.cluster)

    def maybe_delete_empty(self, group_id: str) -> list[Record] | None:
        """A share group isn't removed for a group of another kind, even an empty one: it may have states."""
        return [] if group_id not in self._groups else None

    def draft(self, group_id: str) -> Draft:
        """A draft of a group, or of a new one if there is none."""
        return self._draft(self._groups.get(group_id) or self._new_group(group_id))

    def apply(self, draft: Draft) -> None:
        """Applies a draft whose records were replayed."""
        self._apply(draft)

    # The groups -------------------------------------------------------------------------------------------------

    def _new_group(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id)

    def _draft(self, group: ShareGroup) -> Draft:
        return Draft(group, self.environment.settings_of(group.group_id), self._now(group))

    def _replay(self, group: ShareGroup, key: Any, value: Data | None) -> bool:
        return replay(group, key, value)

    def _tombstones(self, group: ShareGroup) -> list[Record]:
        return group_tombstones(group.group_id)

    def _session_timeout_ms(self, group_id: str) -> int:
        return self.environment.settings_of(group_id).session_timeout_ms
