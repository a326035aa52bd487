"""The streams groups of a shard: requests of members and administrators, timeouts, and the log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final

from kohort.coordinator.modern.epochs import FIRST_EPOCH, JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
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
from kohort.coordinator.streams.states import GroupState
from kohort.coordinator.streams.target_assignment import TargetUpdater
from kohort.coordinator.streams.topology_updates import configure_topology, depends_on, detect_changes
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.list_groups import ListGroupsResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

log = logging.getLogger(__name__)

STREAMS: Final = "streams"
"""The type of these groups, and their protocol type, as ListGroups has them."""

_INT32: Final = 2**31
_PLACEMENT_DELAY_MS: Final = 50


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
        self._timed: list[tuple[Step, Draft]] = []
        self._groups: dict[str, StreamsGroup] = {}
        self._timers = MemberTimers(wheel, self._on_timeout)
        self._target = TargetUpdater(environment.placer)
        self._heartbeats = Heartbeats(
            environment.cluster, self._target, self._timers, self._start_initial_rebalance_delay
        )

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
        if group is not None and (result := self._cached_result(group, request, client, now)) is not None:
            return Step(answers=[Answer(reply, result)])
        try:
            check_heartbeat(request)
            if request.topology is not None:
                check_topology(request.topology)
            return self._heartbeat(request, client, now, reply)
        except KafkaError as error:
            named = request.group_id, request.member_id, request.member_epoch, error.code.name, error.detail
            log.info("heartbeat refused group=%r member=%r epoch=%d error=%s because=%s", *named)
            return Step(answers=[Answer(reply, HeartbeatResult.refused(error))])

    def _cached_result(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult | None:
        """Returns the cached result for a member if nothing changed, as is the case with almost all heartbeats."""
        member = group.members.get(request.member_id)
        if member is None or member.cached_revision != group.revision or member.cached_result is None:
            return None
        metadata, cached_result, timer = member.metadata, member.cached_result, member.timer
        if (
            request.member_epoch != cached_result.response.member_epoch
            or request.endpoint_information_epoch != cached_result.response.endpoint_information_epoch
            or request.active_tasks is not None
            or request.standby_tasks is not None
            or request.warmup_tasks is not None
            or request.task_offsets is not None
            or request.task_end_offsets is not None
            or request.topology is not None
            or request.shutdown_application
            or request.rebalance_timeout_ms != -1
            or request.process_id is not None
            or request.user_endpoint is not None
            or request.client_tags is not None
            or request.rack_id is not None
            or (request.instance_id is not None and request.instance_id != metadata.instance_id)
            or client.client_id != metadata.client_id
            or client.host != metadata.client_host
            or self._environment.settings_of(group.group_id) is not group.settings
            or timer is None
        ):
            return None
        timer.last_heartbeat = now
        return cached_result

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
            self._schedule_placement(group, now)
        else:
            result = self._heartbeats.heartbeat(draft, request, client, now)
            self._groups[group.group_id] = group
            self._cache_result(draft, request, result)
        return self._step(draft, [Answer(reply, result)], reply, room or ())

    def _cache_result(self, draft: Draft, request: StreamsGroupHeartbeatRequest, result: HeartbeatResult) -> None:
        """Caches the result until something changes."""
        member = draft.group.members.get(request.member_id)
        response = result.response
        if (
            member is not None
            and not draft.records
            and response.active_tasks is None
            and response.partitions_by_user_endpoint is None
            and not result.missing_topics
            and not draft.group.endpoints_stale
        ):
            member.cached_result, member.cached_revision = result, draft.group.revision
            member.timer = self._timers.get(draft.group.group_id, request.member_id)

    # Placement, topics and timeouts -----------------------------------------------------------------------------

    def placed(self, job: PlacementJob, placement: Placement | None, now: int) -> Step:
        """A placement that wasn't done at once is done; None if it failed."""
        del now
        group = self._groups.get(job.group_id)
        if group is None:
            return Step()
        draft = self._draft(group)
        self._target.placed(draft, job, placement)
        return self._step(draft)

    def topics_changed(self, names: Collection[str], now: int) -> Step:
        """Topics were created or deleted, or have grown: groups that depend on them are updated."""
        del now
        for group in self._groups.values():
            if not depends_on(group, names):
                continue
            group.configured = None
            group.bump_revision()
            if group.members:
                draft = self._draft(group)
                if reasons := detect_changes(draft, self._environment.cluster):
                    draft.bump("; ".join(reasons))
                    self._target.update(draft)
                    self._pending.append(self._step(draft))
        return Step()

    def _on_timeout(self, timer: MemberTimer, why: str) -> bool:
        """Fences a member whose session timeout or rebalance timeout has expired; returns whether it did."""
        group = self._groups.get(timer.group_id)
        member = None if group is None else group.members.get(timer.member_id)
        if group is None or member is None:
            return True
        if timer.rebalance_deadline is not None and timer.last_heartbeat + timer.session_timeout_ms > self._wheel.now:
            current = member.current
            if current.state is not MemberState.UNREVOKED or current.epoch != timer.rebalance_epoch:
                return False
        draft = self._timed_draft(group)
        self._heartbeats.remove_member(draft, timer.member_id, why, self._wheel.now)
        self._schedule_placement(group, self._wheel.now)
        return True

    def _start_initial_rebalance_delay(self, group: StreamsGroup, until: int) -> None:
        """Makes a new group wait for more members: `group.streams.initial.rebalance.delay.ms`."""
        if not group.delayed:
            group.initial_rebalance_delay = self._wheel.add(until, partial(self._place_tasks, group))

    def _schedule_placement(self, group: StreamsGroup, now: int) -> None:
        """Schedules the placement of a group's tasks, unless a heartbeat causes it before."""
        if group.placement_timer is None or not group.placement_timer.waiting:
            group.placement_timer = self._wheel.add(now + _PLACEMENT_DELAY_MS, partial(self._place_tasks, group))

    def _place_tasks(self, group: StreamsGroup) -> None:
        """Places the tasks of a group whose timer has run."""
        group.bump_revision()
        if self._groups.get(group.group_id) is group:
            draft = self._timed_draft(group)
            if draft.members():
                if (reasons := detect_changes(draft, self._environment.cluster)) and draft.epoch == group.epoch:
                    draft.bump("; ".join(reasons))
                self._target.update(draft)

    def _await_task_offsets(self, group: StreamsGroup, since: int, now: int) -> None:
        """Waits for task offsets after a restart: members that sent heartbeats and reported none by then never do."""
        settings = self._draft(group).settings
        wait = settings.task_offset_interval_ms + settings.heartbeat_interval_ms
        group.task_offsets_timer = self._wheel.add(now + wait, partial(self._task_offsets_awaited, group, since))

    def _task_offsets_awaited(self, group: StreamsGroup, since: int) -> None:
        silent = False
        for member_id, member in group.members.items():
            timer = self._timers.get(group.group_id, member_id)
            if not member.may_report or member.current.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
                continue
            if timer is None or timer.last_heartbeat == since:
                silent = True
            else:
                member.may_report = False
                group.offsets.forget(member_id)
        group.refinement_stale = True
        group.bump_revision()
        if silent:
            self._await_task_offsets(group, since, self._wheel.now)

    def _timed_draft(self, group: StreamsGroup) -> Draft:
        """Returns the draft for changes by a timer; timers that run at the same time share one step."""
        for step, draft in self._timed:
            if draft.group is group and any(step is pending for pending in self._pending):
                return draft
        draft = self._draft(group)
        step = Step(draft.records, failed=partial(self._failed, [group], None))
        self._timed = [entry for entry in self._timed if any(entry[0] is pending for pending in self._pending)]
        self._timed.append((step, draft))
        self._pending.append(step)
        return draft

    # Steps ------------------------------------------------------------------------------------------------------

    def _draft(self, group: StreamsGroup) -> Draft:
        settings = self._environment.settings_of(group.group_id)
        if settings is not group.settings:
            if settings != group.settings:
                group.refinement_stale = True
            group.settings = settings
            group.bump_revision()
        return Draft(group, settings)

    def _step(
        self, draft: Draft, answers: Iterable[Answer] = (), reply: Reply | None = None, before: Iterable[Record] = ()
    ) -> Step:
        records = [*before, *draft.records]
        return Step(records, list(answers), partial(self._failed, [draft.group], reply) if records else None)

    def _failed(self, groups: Collection[StreamsGroup], reply: Reply | None, code: ErrorCode) -> Step:
        """Records couldn't be appended: forgets everything derived from them, and goes on with the state before."""
        for group in groups:
            log.error("records could not be stored group=%s error=%s", group.group_id, code.name)
            group.forget_derived()
            for member_id in group.offsets.members() - group.members.keys():
                group.offsets.forget(member_id)
            if group.epoch == FIRST_EPOCH and not group.members:
                self._remove(group)
            self._start_timeouts(group, self._wheel.now)
        if reply is None:
            return Step()
        return Step(answers=[Answer(reply, HeartbeatResult(StreamsGroupHeartbeatResponse(error_code=code)))])

    def _start_timeouts(self, group: StreamsGroup, now: int) -> None:
        """Starts timers that don't run: all after a restart, and those that were stopped for records that got lost."""
        timeout = self._draft(group).settings.session_timeout_ms
        for member_id, member in group.members.items():
            timer = self._timers.get(group.group_id, member_id)
            if timer is None:
                timer = self._timers.reset_session_timeout(group.group_id, member_id, now, timeout)
            unrevoked = member.current.state is MemberState.UNREVOKED and member.metadata.rebalance_timeout_ms > 0
            if unrevoked and timer.rebalance_deadline is None:
                by = now + member.metadata.rebalance_timeout_ms
                self._timers.start_rebalance_timeout(timer, member.current.epoch, by)

    # Administrators ---------------------------------------------------------------------------------------------

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.Group:
        group = self._groups.get(group_id)
        if group is None:
            return StreamsGroupDescribeResponse.Group(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"There is no streams group {group_id}.",
            )
        if group.topology is not None:
            configure_topology(group, group.topology, self._environment.cluster)
        return describe(group)

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
        if replay(group, key, value):
            self._remove(group)

    def loaded(self, now: int) -> None:
        """The log was replayed: session timeouts start now."""
        for group in self._groups.values():
            self._start_timeouts(group, now)
            # An epoch that no member has seen before the restart, so that all get the map.
            group.endpoint_epoch = now // 1000 % _INT32
            group.refinement_stale = True
            for member_id, member in group.members.items():
                member.may_report = True
                group.offsets.report(member_id, member.metadata.process_id or member_id, {}, None)
            if group.members:
                self._await_task_offsets(group, now, now)

    def unload(self) -> None:
        """Forgets all groups."""
        for group in list(self._groups.values()):
            self._remove(group)

    def _remove(self, group: StreamsGroup) -> None:
        self._groups.pop(group.group_id, None)
        for timer in (group.initial_rebalance_delay, group.placement_timer, group.task_offsets_timer):
            if timer is not None:
                timer.cancel()
        for member_id in group.members:
            self._timers.stop(group.group_id, member_id)
