"""The consumer groups of a shard: requests of members and administrators, timeouts, topics, and the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kohort.coordinator.consumer.describing import describe
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.heartbeats import Heartbeats
from kohort.coordinator.consumer.records import group_tombstones
from kohort.coordinator.consumer.regexes import MIN_INTERVAL_MS, begin, due_at, take_over
from kohort.coordinator.consumer.replaying import replay
from kohort.coordinator.consumer.request_validation import check_heartbeat
from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.consumer.soft_state import RegexJob, SoftState
from kohort.coordinator.consumer.target_assignment import topics_changed, update_target
from kohort.coordinator.modern.groups import ModernGroups
from kohort.coordinator.step import Client, Record, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

log = logging.getLogger(__name__)

CONSUMER: Final = "consumer"
"""The type of these groups, and their protocol type, as ListGroups has them."""


class ConsumerGroups(ModernGroups[ConsumerGroup, Draft, ConsumerGroupHeartbeatRequest, SoftState]):
    """Consumer groups, by id."""

    kind = CONSUMER
    protocol_type = CONSUMER

    def __init__(
        self,
        environment: ConsumerEnvironment,
        wheel: TimingWheel,
        pending_steps: list[Step],
        convert: Callable[[str], list[Record] | None],
    ) -> None:
        super().__init__(wheel, pending_steps, convert)
        self._environment = environment
        self._heartbeats = Heartbeats(environment, self._timers, self._resolve_later)

    # Members ----------------------------------------------------------------------------------------------------

    def _check(self, request: ConsumerGroupHeartbeatRequest, client: Client) -> None:
        check_heartbeat(request, client.version, self._settings(request.group_id).assignors)

    def _join_or_stay(
        self, draft: Draft, request: ConsumerGroupHeartbeatRequest, client: Client, now: int
    ) -> ConsumerGroupHeartbeatResponse:
        draft.now = now
        return self._heartbeats.heartbeat(draft, request, client)

    def _leave(self, draft: Draft, request: ConsumerGroupHeartbeatRequest, now: int) -> ConsumerGroupHeartbeatResponse:
        draft.now = now
        return self._heartbeats.leave(draft, request)

    def _remove_member(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        del now
        self._heartbeats.remove_member(draft, member_id, why)

    def _refused(self, error: KafkaError) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.detail)

    def _may_cache(self, draft: Draft, result: ConsumerGroupHeartbeatResponse) -> bool:
        """Not while a target waits, or heartbeats are to come soon: after a while, either ends."""
        settled = result.heartbeat_interval_ms == draft.settings.heartbeat_interval_ms
        return settled and draft.assignment_epoch == draft.epoch

    # What happens elsewhere -------------------------------------------------------------------------------------

    def topics_changed(self, names: Collection[str]) -> Step:
        """Topics were created or deleted, or have grown: groups that subscribe to them are updated."""
        for group in self._groups.values():
            subscribed = group.subscriptions.names(group.regexes)
            has_regexes = bool(group.subscriptions.regexes)
            concerned = any(name in subscribed for name in names)
            if not concerned and not has_regexes:
                continue
            self._happened(
                group,
                lambda soft, concerned=concerned: replace(  # type: ignore[misc]
                    soft, topics_checked=soft.topics_checked and not concerned, regexes_stale=True
                ),
            )
            draft = self._draft(group)
            if group.members and concerned:
                if topics_changed(draft, self._environment.cluster):
                    draft.bump("its topics changed")
                    update_target(draft, self._environment.cluster)
                draft.soft = replace(draft.soft, topics_checked=True)
            self._resolve_later(draft)
            self._pending.append(self._step(draft))
        return Step()

    def settings_changed(self, group_id: str | None = None) -> Step:
        """The settings of a group have changed, or those of all groups; heartbeats see what follows from that."""
        for group in self._groups.values():
            if group_id in (None, group.group_id):
                group.bump_revision()
        return Step()

    # Regular expressions ----------------------------------------------------------------------------------------

    def _resolve_later(self, draft: Draft) -> None:
        """Has regular expressions resolved if they have to be, once the draft's records are in the log."""
        at = due_at(draft)
        if at is None:
            return
        if at <= draft.now:
            draft.then(self._environment.resolver, begin(draft))
        else:
            draft.then(self._start_regex_timer, draft.group_id, at)

    def _start_regex_timer(self, group_id: str, at: int) -> None:
        group = self._groups.get(group_id)
        if group is None:
            return
        if group.regex_timer is not None:
            group.regex_timer.cancel()
        group.regex_timer = self._wheel.add(at, partial(self._regexes_due, group))

    def _regexes_due(self, group: ConsumerGroup) -> None:
        """It is time to resolve a group's regular expressions."""
        self._happened(group, lambda soft: replace(soft, regexes_stale=True))
        draft = self._draft(group)
        self._resolve_later(draft)
        self._pending.append(self._step(draft))

    def resolved(self, job: RegexJob, topics: Mapping[str, tuple[str, ...]] | None) -> Step:
        """Regular expressions were resolved: the names of their topics, sorted; None if it failed."""
        group = self._groups.get(job.group_id)
        if group is None or group.soft.job is not job:
            return Step()
        missed = group.soft.regexes_stale  # topics were created meanwhile
        self._happened(group, lambda soft: replace(soft, job=None, regexes_stale=True))
        draft = self._draft(group)
        if topics is None:
            draft.then(self._start_regex_timer, group.group_id, draft.now + MIN_INTERVAL_MS)
            return self._step(draft)
        draft.soft = replace(draft.soft, regexes_stale=missed, topics_checked=True)
        reasons = ["its regular expressions match other topics"] if take_over(draft, job, topics) else []
        if topics_changed(draft, self._environment.cluster):
            reasons.append("its topics changed")
        if reasons:
            draft.bump("; ".join(reasons))
        update_target(draft, self._environment.cluster)
        soon = missed or draft.has_unresolved()
        wait = MIN_INTERVAL_MS + 1 if soon else self._settings(group.group_id).regex_refresh_interval_ms
        draft.then(self._start_regex_timer, group.group_id, draft.now + wait)
        return self._step(draft)

    # Administrators ---------------------------------------------------------------------------------------------

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponse.Group:
        group = self._groups.get(group_id)
        if group is None:
            return ConsumerGroupDescribeResponse.Group(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"There is no consumer group {group_id}.",
            )
        return describe(group, self._environment.cluster, self._settings(group_id).assignors[0])

    # The groups -------------------------------------------------------------------------------------------------

    def _settings(self, group_id: str) -> ConsumerSettings:
        return self._environment.settings_of(group_id)

    def _new_group(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id)

    def _draft(self, group: ConsumerGroup) -> Draft:
        return Draft(group, self._settings(group.group_id), self._now(group))

    def _replay(self, group: ConsumerGroup, key: Any, value: Data | None) -> bool:
        return replay(group, key, value)

    def _tombstones(self, group: ConsumerGroup) -> list[Record]:
        return group_tombstones(group.group_id, group.regexes)

    def _session_timeout_ms(self, group_id: str) -> int:
        return self._settings(group_id).session_timeout_ms

    def _loaded(self, group: ConsumerGroup, now: int) -> None:
        """Topics may have come and gone, and clients' rights changed."""
        del now
        group.soft = SoftState(regexes_stale=True)

    def _stopped(self, group: ConsumerGroup) -> None:
        if group.regex_timer is not None:
            group.regex_timer.cancel()
