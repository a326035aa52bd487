"""The streams groups of a shard: requests of members and administrators, timeouts, and the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kohort.coordinator.modern.cached_results import CachedResult
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.modern.timeouts import MemberTimer, MemberTimers
from kohort.coordinator.placement.model import Placement
from kohort.coordinator.step import Answer, Client, Record, Reply, Step
from kohort.coordinator.streams.describing import describe
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import PlacementJob, StreamsEnvironment
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.heartbeats import Heartbeats
from kohort.coordinator.streams.records import group_tombstones
from kohort.coordinator.streams.replaying import replay
from kohort.coordinator.streams.request_validation import check_heartbeat, check_topology
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.soft_state import SoftState
from kohort.coordinator.streams.states import GroupState
from kohort.coordinator.streams.target_assignment import TargetUpdater
from kohort.coordinator.streams.topology_updates import depends_on, detect_changes
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.list_groups import ListGroupsResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.task_offsets import TaskOffsets

log = logging.getLogger(__name__)

STREAMS: Final = "streams"
"""The type of these groups, and their protocol type, as ListGroups has them."""

_INT32: Final = 2**31


class StreamsGroups:
    """Streams groups, by id.

    Args:
        pending_steps: gets the steps that timers cause.
        convert: returns the records that remove an empty group of another type, so that a streams group can have its
            id; None if that group isn't empty.
    """

    def __init__(
        self,
        environment: StreamsEnvironment,
        wheel: TimingWheel,
        pending_steps: list[Step],
        convert: Callable[[str], list[Record] | None],
    ) -> None:
        self._environment = environment
        self._wheel = wheel
        self._pending = pending_steps
        self._convert = convert
        self._timed: dict[str, Draft] = {}
        self._groups: dict[str, StreamsGroup] = {}
        self._timers = MemberTimers(wheel, self._on_timeout)
        self._target = TargetUpdater(environment.placer)
        self._heartbeats = Heartbeats(environment.cluster, self._target, self._timers)

    def get(self, group_id: str) -> StreamsGroup | None:
        return self._groups.get(group_id)

    def group_ids(self) -> Collection[str]:
        return self._groups.keys()

    def count_by_state(self) -> Counter[GroupState]:
        return Counter(group.state for group in self._groups.values())

    # Members ----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, client: Client, now: int, reply: Reply) -> Step:
        """A member joins, stays or leaves; answers with a `HeartbeatResult`, errors included."""
        group = self._groups.get(request.group_id)
        cached = None if group is None else group.cached_results.get(request.member_id)
        if cached is not None and cached.answers(request, client):  # as is the case with almost all heartbeats
            cached.timer.last_heartbeat = now
            return Step(answers=[Answer(reply, cached.result)])
        try:
            check_heartbeat(request)
            if request.topology is not None:
                check_topology(request.topology)
            return self._heartbeat(request, client, now, reply)
        except KafkaError as error:
            named = request.group_id, request.member_id, request.member_epoch, error.code.name, error.detail
            log.info("heartbeat refused group=%r member=%r epoch=%d error=%s because=%s", *named)
            return Step(answers=[Answer(reply, HeartbeatResult.refused(error))])

    def _heartbeat(self, request: StreamsGroupHeartbeatRequest, client: Client, now: int, reply: Reply) -> Step:
        group = self._groups.get(request.group_id)
        leaves = request.member_epoch < JOIN_GROUP_MEMBER_EPOCH
        room: list[Record] | None = []
        if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
            room = self._convert(request.group_id)
            if room is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a streams group.")
            group = group or StreamsGroup(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no streams group {request.group_id}.")
        draft = self._draft(group)
        if leaves:
            result = self._heartbeats.leave(draft, request, now)
        else:
            result = self._heartbeats.heartbeat(draft, request, client, now)
        step = self._step(draft, [Answer(reply, result)], reply, room or ())
        # While topics are missing, each heartbeat asks for them; a map of endpoints that is stale changes with time.
        if not leaves and not result.missing_topics and not draft.soft.endpoints_stale:
            step.apply = partial(self._apply_and_cache, draft, request, client, result)
        return step

    def _apply_and_cache(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client, result: HeartbeatResult
    ) -> None:
        """Applies the draft of a heartbeat, and caches its result if the heartbeat changed nothing."""
        group_id, member_id = draft.group.group_id, request.member_id
        self._apply(draft)
        group = self._groups[group_id]
        if group.revision == draft.revision and (timer := self._timers.get(group_id, member_id)) is not None:
            group.cached_results[member_id] = CachedResult(request, client, result, timer)

    # What happens elsewhere, and timeouts -----------------------------------------------------------------------

    def placed(self, job: PlacementJob, placement: Placement | None) -> Step:
        """A placement that wasn't done at once is done; None if it failed."""
        group = self._groups.get(job.group_id)
        if group is None or group.soft.job is not job:
            return Step()
        self._happened(group, lambda soft: replace(soft, job=None))
        draft = self._draft(group)
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
                self._happened(group, lambda soft: replace(soft, refinement_stale=True))
        return Step()

    def _on_timeout(self, timer: MemberTimer, why: str) -> bool:
        """Fences a member whose session timeout or rebalance timeout has expired; returns whether it does."""
        group = self._groups[timer.group_id]
        if timer.rebalance_deadline is not None and timer.last_heartbeat + timer.session_timeout_ms > self._wheel.now:
            current = group.members[timer.member_id].current
            if current.state is not MemberState.UNREVOKED or current.epoch != timer.rebalance_epoch:
                return False
        self._heartbeats.remove_member(self._timed_draft(group), timer.member_id, why, self._wheel.now)
        return True

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

    def _happened(self, group: StreamsGroup, change: Callable[[SoftState], SoftState]) -> None:
        """Changes soft state because of what has happened: it has, whether or not records can be appended.

        A draft that timers have begun in this turn knows of it, too.
        """
        group.soft = change(group.soft)
        group.bump_revision()
        if draft := self._timed.get(group.group_id):
            draft.soft = change(draft.soft)

    # Steps ------------------------------------------------------------------------------------------------------

    def _draft(self, group: StreamsGroup) -> Draft:
        return Draft(group, self._environment.settings_of(group.group_id))

    def _timed_draft(self, group: StreamsGroup) -> Draft:
        """Returns the draft for changes by a timer; timers that run in the same turn share one step."""
        draft = self._timed.get(group.group_id)
        if draft is None:
            draft = self._timed[group.group_id] = self._draft(group)
            self._pending.append(self._step(draft))
        return draft

    def _step(
        self, draft: Draft, answers: Iterable[Answer] = (), reply: Reply | None = None, before: Collection[Record] = ()
    ) -> Step:
        records = [*before, *draft.records] if before else draft.records  # timers add records to a draft in its step
        return Step(records, list(answers), partial(self._failed, draft, reply), apply=partial(self._apply, draft))

    def _apply(self, draft: Draft) -> None:
        group_id = draft.group.group_id
        self._timed.pop(group_id, None)
        group = self._groups.get(group_id)
        if group is None:
            return
        at = draft.soft.placement_at
        if at is not None and at != group.soft.placement_at:
            if group.placement_timer is not None:
                group.placement_timer.cancel()
            group.placement_timer = self._wheel.add(at, partial(self._place_tasks, group))
        draft.apply(group)

    def _failed(self, draft: Draft, reply: Reply | None, code: ErrorCode) -> Step:
        """Records couldn't be appended, so nothing has changed; or not be synced, so the log is offline."""
        self._timed.pop(draft.group.group_id, None)
        log.error("records could not be stored group=%s error=%s", draft.group.group_id, code.name)
        if reply is None:
            return Step()
        return Step(answers=[Answer(reply, HeartbeatResult(StreamsGroupHeartbeatResponse(error_code=code)))])

    # Administrators ---------------------------------------------------------------------------------------------

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.Group:
        group = self._groups.get(group_id)
        if group is None:
            return StreamsGroupDescribeResponse.Group(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"There is no streams group {group_id}.",
            )
        return describe(group, self._environment.cluster)

    def listed(self, states: Iterable[str] = ()) -> list[ListGroupsResponse.Group]:
        """Returns the groups in one of these states, such as "NotReady" or "not_ready"; without states, all groups."""
        wanted = {state.strip().lower().replace("_", "") for state in states}
        return [
            ListGroupsResponse.Group(
                group_id=group.group_id, protocol_type=STREAMS, group_state=group.state.value, group_type=STREAMS
            )
            for group in self._groups.values()
            if not wanted or group.state.value.lower() in wanted
        ]

    def check_delete(self, group_id: str) -> ErrorCode:
        """Returns NONE if a group may be deleted, or why not."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members else ErrorCode.NONE

    def maybe_delete_empty(self, group_id: str) -> list[Record] | None:
        """Returns the records that remove a group if it is empty, so that another type can have its id; None if not."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        return None if group.members else self.delete(group_id)

    def delete(self, group_id: str) -> list[Record]:
        """Returns the records that remove a group without members; not its offsets."""
        log.info("group deleted group=%s", group_id)
        return group_tombstones(group_id)

    # The log ----------------------------------------------------------------------------------------------------

    def replay(self, key: Data, value: Data | None) -> None:
        """Applies a record of a group."""
        untyped: Any = key
        group = self._groups.get(untyped.group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[untyped.group_id] = StreamsGroup(untyped.group_id)
        removes = replay(group, key, value)
        group.bump_revision()
        if removes:
            self._remove(group)

    def loaded(self, now: int) -> None:
        """The log was replayed: session timeouts start now."""
        for group in self._groups.values():
            self._start_timeouts(group, now)
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

    def _start_timeouts(self, group: StreamsGroup, now: int) -> None:
        session_timeout_ms = self._environment.settings_of(group.group_id).session_timeout_ms
        for member_id, member in group.members.items():
            self._timers.reset_session_timeout(group.group_id, member_id, now, session_timeout_ms)
            timeout = member.metadata.rebalance_timeout_ms
            if member.current.state is MemberState.UNREVOKED and timeout > 0:
                self._timers.start_rebalance_timeout(group.group_id, member_id, member.current.epoch, now + timeout)

    def unload(self) -> None:
        """Forgets all groups."""
        for group in list(self._groups.values()):
            self._remove(group)

    def _remove(self, group: StreamsGroup) -> None:
        self._groups.pop(group.group_id, None)
        for timer in (group.placement_timer, group.task_offsets_timer):
            if timer is not None:
                timer.cancel()
        for member_id in group.members:
            self._timers.stop(group.group_id, member_id)
