"""The streams groups of a shard: requests of members and administrators, timeouts, and the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kohort.coordinator.modern.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.groups import ModernGroups
from kohort.coordinator.placement.model import Placement
from kohort.coordinator.purgatory import Purgatory
from kohort.coordinator.step import Answer, Client, Record, Reply, Step
from kohort.coordinator.streams.describing import describe
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import PlacementJob, StreamsEnvironment
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.heartbeats import Heartbeats
from kohort.coordinator.streams.held_heartbeats import Held, HeldHeartbeats
from kohort.coordinator.streams.member_connections import MemberConnections
from kohort.coordinator.streams.news import Known
from kohort.coordinator.streams.records import group_tombstones
from kohort.coordinator.streams.replaying import replay
from kohort.coordinator.streams.request_validation import check_heartbeat, check_topology
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.soft_state import SoftState
from kohort.coordinator.streams.target_assignment import TargetUpdater
from kohort.coordinator.streams.topology_description import MAX_NODES, check_update, described
from kohort.coordinator.streams.topology_updates import depends_on, detect_changes
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.heartbeat_wishes import Grant, Wishes
from kohort.protocol.message import Data
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from kohort.streams.task_offsets import TaskOffsets

log = logging.getLogger(__name__)

STREAMS: Final = "streams"
"""The type of these groups, and their protocol type, as ListGroups has them."""

_INT32: Final = 2**31


class StreamsGroups(ModernGroups[StreamsGroup, Draft, StreamsGroupHeartbeatRequest, SoftState]):
    """Streams groups, by id."""

    kind = STREAMS
    protocol_type = STREAMS

    def __init__(
        self,
        environment: StreamsEnvironment,
        wheel: TimingWheel,
        pending_steps: list[Step],
        convert: Callable[[str], list[Record] | None],
    ) -> None:
        super().__init__(wheel, pending_steps, convert)
        self._environment = environment
        self._target = TargetUpdater(environment.placer)
        self._connections = MemberConnections(wheel, self._on_disconnect_timeout)
        self._held = HeldHeartbeats(wheel, self._draft_since)
        self._held_answers: list[Answer] | None = None  # of the step that is to give them
        self._heartbeats = Heartbeats(environment.cluster, self._target, self._timers, self._connections)

    # Members ----------------------------------------------------------------------------------------------------

    def _check(self, request: StreamsGroupHeartbeatRequest, client: Client) -> None:
        check_heartbeat(request)
        if request.topology is not None:
            check_topology(request.topology)

    def _join_or_stay(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult:
        draft.now = now
        return self._heartbeats.heartbeat(draft, request, client, now)

    def _leave(self, draft: Draft, request: StreamsGroupHeartbeatRequest, now: int) -> HeartbeatResult:
        draft.now = now
        return self._heartbeats.leave(draft, request, now)

    def _remove_member(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        self._heartbeats.remove_member(draft, member_id, why, now)

    def _refused(self, error: KafkaError) -> HeartbeatResult:
        return HeartbeatResult.refused(error)

    def _may_cache(self, draft: Draft, result: HeartbeatResult) -> bool:
        """While topics are missing, heartbeats ask for them; a map of endpoints that is stale changes with time.

        A target that waits for the assignment interval is made by a heartbeat if the timer's clock was set back.
        """
        waits = draft.assignment_epoch != draft.epoch and draft.waits_for_interval
        return not result.missing_topics and not draft.soft.endpoints_stale and not waits

    # Held heartbeats --------------------------------------------------------------------------------------------

    def hold(
        self, request: StreamsGroupHeartbeatRequest, wishes: Wishes, client: Client, connection: Hashable, now: int,
        reply: Reply,
    ) -> Step:  # fmt: skip
        """A member asks for news; answers when its next heartbeat would bring some, or when it has waited long enough.

        Args:
            connection: of its own, over which the request came.
        """
        group_id, member_id = request.group_id, request.member_id
        settings = self._environment.settings_of(group_id)
        interval, timeout = settings.heartbeat_interval_ms, settings.disconnect_timeout(wishes.disconnect_timeout_ms)

        def answer(news: bool) -> None:
            response = StreamsGroupHeartbeatResponse(
                member_id=member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=interval, status=None
            )
            response.unknown_tags = Grant(timeout, interval, news).tags()
            self._answer_soon(Answer(reply, HeartbeatResult(response)))

        timer = self._timers.get(group_id, member_id)
        if timer is None or not self._is_here(group_id, member_id):
            answer(True)  # it is no member any more, as its next heartbeat will be told, or has left for a while
            return Step()
        timer.last_heartbeat = now
        self._held.release(group_id, member_id)
        if timeout >= 0:
            self._connections.heard(group_id, member_id, connection, timeout, held=True)
        known = Known(member_id, client.version, request.endpoint_information_epoch, frozenset(wishes.status_codes))
        self._held.hold(Held(group_id, known, connection, now, now + min(wishes.max_wait_ms, interval)), answer)
        return Step()

    @property
    def held_heartbeats(self) -> Purgatory:
        """Where heartbeats wait that are held."""
        return self._held.purgatory

    def _answer_soon(self, answer: Answer) -> None:
        """Answers in the next step, with all others that are answered until then."""
        if self._held_answers is None:
            step = Step(apply=self._held_answered)
            self._held_answers = step.answers
            self._pending.append(step)
        self._held_answers.append(answer)

    def _held_answered(self) -> None:
        self._held_answers = None

    def _draft_since(self, group_id: str, now: int) -> Draft | None:
        group = self._groups.get(group_id)
        if group is None:
            return None
        draft = self._draft(group)
        draft.now = max(draft.now, now)
        return draft

    def _look_for_news(self, group: StreamsGroup) -> None:
        self._held.changed(group.group_id, len(group.members))

    def _apply(self, draft: Draft) -> None:
        super()._apply(draft)
        group = self._groups.get(draft.group_id)
        if group is not None and group.revision != draft.revision:
            self._look_for_news(group)

    def _happened(self, group: StreamsGroup, change: Callable[[SoftState], SoftState]) -> None:
        super()._happened(group, change)
        self._look_for_news(group)

    # Members' connections ---------------------------------------------------------------------------------------

    def heard_over(self, connection: Hashable, group_id: str, member_id: str, disconnect_timeout_ms: int) -> None:
        """A member of a group was heard over a connection; the timeout is the one in the result of its heartbeat."""
        if self._is_here(group_id, member_id):
            self._connections.heard(group_id, member_id, connection, disconnect_timeout_ms)

    def _is_here(self, group_id: str, member_id: str) -> bool:
        """Whether there is such a member that needs a connection: not a static one that has left for a while."""
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        return member is not None and member.current.epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH

    def disconnected(self, connection: Hashable, now: int) -> None:
        """A connection is broken, not by this server."""
        self._connections.disconnected(connection, now)

    def closed(self, connection: Hashable) -> None:
        """A connection is closed, whoever did it: what is held on it needs no answer.

        If it is broken, `disconnected` comes first.
        """
        self._held.disconnected(connection)
        self._connections.closed(connection)

    def forget_connections(self) -> None:
        """The server stops, and breaks all connections itself: nobody dies of that."""
        self._connections.clear()

    def _on_disconnect_timeout(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Fences a member whose connections were broken for too long, as if its session had timed out.

        If that can't be recorded, its session timeout does it.
        """
        if not self._is_here(group_id, member_id):
            return
        draft = self._timed_draft(self._groups[group_id])
        if draft.metadata(member_id) is not None:
            why = f"disconnect timeout: its connections were broken for {timeout_ms} ms"
            self._remove_member(draft, member_id, why, self._wheel.now)

    # What happens elsewhere, and timeouts -----------------------------------------------------------------------

    def placed(self, job: PlacementJob, placement: Placement | None, now: int) -> Step:
        """A placement that wasn't done at once is done; None if it failed."""
        group = self._groups.get(job.group_id)
        if group is None or group.soft.job is not job:
            return Step()
        self._happened(group, lambda soft: replace(soft, job=None))
        draft = self._draft(group)
        draft.now = now
        self._target.placed(draft, job, placement)
        return self._step(draft)

    def topics_changed(self, names: Collection[str]) -> Step:
        """Topics were created or deleted, or have grown: groups that depend on them are updated."""
        for group in self._groups.values():
            if not depends_on(group, names):
                continue
            self._happened(group, lambda soft: replace(soft, configured=None))
            if group.members:
                draft = self._draft(group)
                if reasons := detect_changes(draft, self._environment.cluster):
                    draft.bump("; ".join(reasons))
                    self._target.update(draft)
                self._pending.append(self._step(draft))
        return Step()

    def settings_changed(self, group_id: str | None = None) -> Step:
        """The settings of a group have changed, or those of all groups; heartbeats see what follows from that."""
        for group in self._groups.values():
            if group_id in (None, group.group_id):
                timeout = self._environment.settings_of(group.group_id).disconnect_timeout_ms
                if timeout != group.disconnect_timeout_ms:
                    group.disconnect_timeout_ms = timeout
                    for member_id in group.members:  # their next heartbeats know the timeout of today
                        self._connections.forget(group.group_id, member_id)
                self._happened(group, lambda soft: replace(soft, refinement_stale=True))
        return Step()

    def _place_tasks(self, group: StreamsGroup) -> None:
        """Places the tasks of a group whose timer has run."""
        self._happened(group, lambda soft: replace(soft, placement_at=None, delayed=False))
        draft = self._timed_draft(group)
        if draft.members():
            if (reasons := detect_changes(draft, self._environment.cluster)) and draft.epoch == group.epoch:
                draft.bump("; ".join(reasons))
            self._target.update(draft)

    def _await_task_offsets(self, group: StreamsGroup, since: int, now: int) -> None:
        """Waits for task offsets after a restart: members that sent heartbeats and reported none by then never do."""
        settings = self._environment.settings_of(group.group_id)
        wait = settings.task_offset_interval_ms + settings.heartbeat_interval_ms
        group.task_offsets_timer = self._wheel.add(now + wait, partial(self._task_offsets_awaited, group, since))

    def _task_offsets_awaited(self, group: StreamsGroup, since: int) -> None:
        heard, silent = set(), False
        for member_id in group.soft.may_report & group.members.keys():
            timer = self._timers.get(group.group_id, member_id)
            if group.members[member_id].current.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
                continue
            if timer is None or timer.last_heartbeat == since:
                silent = True
            else:
                heard.add(member_id)
        self._happened(
            group,
            lambda soft: replace(
                soft, offsets=soft.offsets.forget(*heard), may_report=soft.may_report - heard, refinement_stale=True
            ),
        )
        if silent:
            self._await_task_offsets(group, since, self._wheel.now)

    def _before_apply(self, draft: Draft, group: StreamsGroup) -> None:
        at = draft.soft.placement_at
        if at is not None and at != group.soft.placement_at:
            if group.placement_timer is not None:
                group.placement_timer.cancel()
            group.placement_timer = self._wheel.add(at, partial(self._place_tasks, group))

    def describe_topology(self, request: StreamsGroupTopologyDescriptionUpdateRequest) -> None:
        """A member describes the group's topology.

        Raises:
            KafkaError: INVALID_REQUEST, UNKNOWN_MEMBER_ID (also of an unknown group), or
                STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED if it is too large to be kept.
        """
        check_update(request)
        group = self._groups.get(request.group_id)
        if group is None or group.topology is None or request.member_id not in group.members:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"{shown(request.member_id)} is no member of streams group {shown(request.group_id)}.",
            )
        if request.topology_epoch != group.topology.epoch:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"TopologyEpoch is {request.topology_epoch}; the group's topology has epoch {group.topology.epoch}.",
            )
        update = described(request)
        self._happened(group, lambda soft: replace(soft, described=update))
        if update.description is None:
            raise KafkaError(
                ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
                f"The topology has more than {MAX_NODES} nodes, too many to be kept.",
            )

    # Administrators ---------------------------------------------------------------------------------------------

    def describe(self, group_id: str, *, with_description: bool = False) -> StreamsGroupDescribeResponse.Group:
        group = self._groups.get(group_id)
        if group is None:
            return StreamsGroupDescribeResponse.Group(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"There is no streams group {group_id}.",
            )
        return describe(
            group,
            self._environment.cluster,
            self._environment.settings_of(group_id).assignor_name,
            with_description=with_description,
        )

    # The groups -------------------------------------------------------------------------------------------------

    def _new_group(self, group_id: str) -> StreamsGroup:
        group = StreamsGroup(group_id)
        group.disconnect_timeout_ms = self._environment.settings_of(group_id).disconnect_timeout_ms
        return group

    def _draft(self, group: StreamsGroup) -> Draft:
        return Draft(group, self._environment.settings_of(group.group_id), self._now(group))

    def _replay(self, group: StreamsGroup, key: Any, value: Data | None) -> bool:
        return replay(group, key, value)

    def _tombstones(self, group: StreamsGroup) -> list[Record]:
        return group_tombstones(group.group_id)

    def _session_timeout_ms(self, group_id: str) -> int:
        return self._environment.settings_of(group_id).session_timeout_ms

    def _loaded(self, group: StreamsGroup, now: int) -> None:
        processes = {name: member.metadata.process_id or name for name, member in group.members.items()}
        group.soft = SoftState(
            # An epoch that no member has seen before the restart, so that all get the map.
            endpoint_epoch=now // 1000 % _INT32,
            refinement_stale=True,
            offsets=TaskOffsets.of_processes(processes),
            may_report=frozenset(group.members),
        )
        if group.members:
            self._await_task_offsets(group, now, now)

    def _stopped(self, group: StreamsGroup) -> None:
        self._look_for_news(group)  # there is none for those that were members, as they will be told
        for member_id in group.members:
            self._connections.forget(group.group_id, member_id)
        for timer in (group.placement_timer, group.task_offsets_timer):
            if timer is not None:
                timer.cancel()
