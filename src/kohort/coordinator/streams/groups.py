"""The streams groups of a shard: what members and administrators ask of them, and what their log tells."""

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
from kohort.coordinator.streams.configuring import configure_group, review, uses
from kohort.coordinator.streams.describing import describe
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import PlacementJob, StreamsEnvironment
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.heartbeats import Heartbeats
from kohort.coordinator.streams.placing import Placing
from kohort.coordinator.streams.records import group_tombstones
from kohort.coordinator.streams.replaying import replay
from kohort.coordinator.streams.requests import check_heartbeat, check_topology
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.states import GroupState
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.list_groups import ListGroupsResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

__all__ = ["STREAMS", "StreamsGroups"]

log = logging.getLogger(__name__)

STREAMS: Final = "streams"
"""The type of these groups, and their protocol type, as ListGroups tells them."""

_INT32: Final = 2**31
_A_MOMENT_MS: Final = 50


class StreamsGroups:
    """Streams groups, by id.

    Args:
        environment: the topics, the settings, and who places tasks.
        wheel: timers for what waits.
        pending_steps: where steps go that timers bring about.
        convert: what makes room for a streams group of an id: the records that remove an empty group of another type;
            None if there is one that isn't empty.
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
        self._timers = MemberTimers(wheel, self._late)
        self._placing = Placing(environment.placer)
        self._heartbeats = Heartbeats(environment.cluster, self._placing, self._timers, self._delay)

    def get(self, group_id: str) -> StreamsGroup | None:
        """A group, or None."""
        return self._groups.get(group_id)

    def group_ids(self) -> Collection[str]:
        """The ids of all groups."""
        return self._groups.keys()

    def count_by_state(self) -> Counter[GroupState]:
        """Number of groups in each state."""
        return Counter(group.state for group in self._groups.values())

    # Members ----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, client: Client, now: int, reply: Reply) -> Step:
        """A member joins, is alive, or leaves; answers with a `HeartbeatResult`, errors included."""
        group = self._groups.get(request.group_id)
        if group is not None and (result := self._quiet(group, request, client, now)) is not None:
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

    def _quiet(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult | None:
        """The answer to a member that says nothing new and hears nothing new, as almost all do almost always."""
        member = group.members.get(request.member_id)
        if member is None or member.quiet_at != group.revision or member.quiet is None:
            return None
        metadata, quiet, timer = member.metadata, member.quiet, member.timer
        if (
            request.member_epoch != quiet.response.member_epoch
            or request.endpoint_information_epoch != quiet.response.endpoint_information_epoch
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
        return quiet

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
            self._place_soon(group, now)
        else:
            result = self._heartbeats.heartbeat(draft, request, client, now)
            self._groups[group.group_id] = group
            self._remember(draft, request, result)
        return self._step(draft, [Answer(reply, result)], reply, room or ())

    def _remember(self, draft: Draft, request: StreamsGroupHeartbeatRequest, result: HeartbeatResult) -> None:
        """The same will be the answer as long as nothing changes."""
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
            member.quiet, member.quiet_at = result, draft.group.revision
            member.timer = self._timers.get(draft.group.group_id, request.member_id)

    # What happens without a member's doing ----------------------------------------------------------------------

    def placed(self, job: PlacementJob, placement: Placement | None, now: int) -> Step:
        """A placement that took its time is done; None, if it failed."""
        del now
        group = self._groups.get(job.group_id)
        if group is None:
            return Step()
        draft = self._draft(group)
        self._placing.placed(draft, job, placement)
        return self._step(draft)

    def topics_changed(self, names: Collection[str], now: int) -> Step:
        """Topics were created or deleted, or have grown: groups that use them see what that means to them."""
        del now
        for group in self._groups.values():
            if not uses(group, names):
                continue
            group.configured = None
            group.touch()
            if group.members:
                draft = self._draft(group)
                if reasons := review(draft, self._environment.cluster):
                    draft.bump("; ".join(reasons))
                    self._placing.place(draft)
                    self._pending.append(self._step(draft))
        return Step()

    def _late(self, timer: MemberTimer, why: str) -> bool:
        """A member's time is up; was that of any consequence?"""
        group = self._groups.get(timer.group_id)
        member = None if group is None else group.members.get(timer.member_id)
        if group is None or member is None:
            return True
        if timer.rebalance_deadline is not None and timer.last_heartbeat + timer.session_timeout_ms > self._wheel.now:
            current = member.current
            if current.state is not MemberState.UNREVOKED or current.epoch != timer.rebalance_epoch:
                return False
        draft = self._timed_draft(group)
        self._heartbeats.remove(draft, timer.member_id, why, self._wheel.now)
        self._place_soon(group, self._wheel.now)
        return True

    def _delay(self, group: StreamsGroup, until: int) -> None:
        """Have a group wait for more members."""
        if not group.delayed:
            group.delay = self._wheel.add(until, partial(self._place, group))

    def _place_soon(self, group: StreamsGroup, now: int) -> None:
        """Have a group's tasks placed after a moment, unless a heartbeat brings that about before."""
        if group.soon is None or not group.soon.waiting:
            group.soon = self._wheel.add(now + _A_MOMENT_MS, partial(self._place, group))

    def _place(self, group: StreamsGroup) -> None:
        """A group has waited long enough."""
        group.touch()
        if self._groups.get(group.group_id) is group:
            draft = self._timed_draft(group)
            if draft.members():
                if (reasons := review(draft, self._environment.cluster)) and draft.epoch == group.epoch:
                    draft.bump("; ".join(reasons))
                self._placing.place(draft)

    def _expect_reports(self, group: StreamsGroup, since: int, now: int) -> None:
        """Wait for task offsets after a restart: who was heard of since, and for so long reported none, never does."""
        settings = self._draft(group).settings
        wait = settings.task_offset_interval_ms + settings.heartbeat_interval_ms
        group.reports_due = self._wheel.add(now + wait, partial(self._expect_no_reports, group, since))

    def _expect_no_reports(self, group: StreamsGroup, since: int) -> None:
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
        group.refine_again = True
        group.touch()
        if silent:
            self._expect_reports(group, since, self._wheel.now)

    def _timed_draft(self, group: StreamsGroup) -> Draft:
        """For what a timer does to a group; timers that run at the same time do it in one step."""
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
                group.refine_again = True
            group.settings = settings
            group.touch()
        return Draft(group, settings)

    def _step(
        self, draft: Draft, answers: Iterable[Answer] = (), reply: Reply | None = None, before: Iterable[Record] = ()
    ) -> Step:
        records = [*before, *draft.records]
        return Step(records, list(answers), partial(self._failed, [draft.group], reply) if records else None)

    def _failed(self, groups: Collection[StreamsGroup], reply: Reply | None, code: ErrorCode) -> Step:
        """Records didn't get into the log: forget what was concluded from them, and go on with what there was."""
        for group in groups:
            log.error("records could not be stored group=%s error=%s", group.group_id, code.name)
            group.forget_derived()
            for member_id in group.offsets.members() - group.members.keys():
                group.offsets.forget(member_id)
            if group.epoch == FIRST_EPOCH and not group.members:
                self._remove(group)
            self._watch(group, self._wheel.now)
        if reply is None:
            return Step()
        return Step(answers=[Answer(reply, HeartbeatResult(StreamsGroupHeartbeatResponse(error_code=code)))])

    def _watch(self, group: StreamsGroup, now: int) -> None:
        """Have the timers run that don't: all after a restart, and those that were stopped for what didn't happen."""
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
        """All there is to know of a group."""
        group = self._groups.get(group_id)
        if group is None:
            return StreamsGroupDescribeResponse.Group(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"There is no streams group {group_id}.",
            )
        if group.topology is not None:
            configure_group(group, group.topology, self._environment.cluster)
        return describe(group)

    def listed(self, states: Iterable[str] = ()) -> list[ListGroupsResponse.Group]:
        """All groups in one of these states, written "NotReady" or "not_ready"; in any state without such."""
        wanted = {state.strip().lower().replace("_", "") for state in states}
        return [
            ListGroupsResponse.Group(
                group_id=group.group_id, protocol_type=STREAMS, group_state=group.state.value, group_type=STREAMS
            )
            for group in self._groups.values()
            if not wanted or group.state.value.lower() in wanted
        ]

    def check_delete(self, group_id: str) -> ErrorCode:
        """Whether a group may be deleted."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members else ErrorCode.NONE

    def maybe_delete_empty(self, group_id: str) -> list[Record] | None:
        """What removes a group if it is empty, so that one of another type can have its id; None if it isn't empty."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        return None if group.members else self.delete(group_id)

    def delete(self, group_id: str) -> list[Record]:
        """What removes a group without members, its offsets apart."""
        log.info("group deleted group=%s", group_id)
        return group_tombstones(group_id)

    # The log ----------------------------------------------------------------------------------------------------

    def replay(self, key: Data, value: Data | None) -> None:
        """Take in a record of a group."""
        untyped: Any = key
        group = self._groups.get(untyped.group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[untyped.group_id] = StreamsGroup(untyped.group_id)
        if replay(group, key, value):
            self._remove(group)

    def loaded(self, now: int) -> None:
        """All of the log was replayed: from now on members have to be heard of, each within its session timeout."""
        for group in self._groups.values():
            self._watch(group, now)
            # An epoch that no member has seen before the restart, so that all ask for the map.
            group.endpoint_epoch = now // 1000 % _INT32
            group.refine_again = True
            for member_id, member in group.members.items():
                member.may_report = True
                group.offsets.report(member_id, member.metadata.process_id or member_id, {}, None)
            if group.members:
                self._expect_reports(group, now, now)

    def unload(self) -> None:
        """Forget all groups: nobody waits for an answer."""
        for group in list(self._groups.values()):
            self._remove(group)

    def _remove(self, group: StreamsGroup) -> None:
        self._groups.pop(group.group_id, None)
        for timer in (group.delay, group.soon, group.reports_due):
            if timer is not None:
                timer.cancel()
        for member_id in group.members:
            self._timers.stop(group.group_id, member_id)
