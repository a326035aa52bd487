"""Heartbeats of members that join, stay and leave, and the removal of members that are fenced, step by step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.reconciliation import reconcile
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.modern.timeouts import MemberTimers
from kohort.coordinator.step import Client
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import Cluster
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.member_identity import Sender, identified_member, joining_member, leaving_member
from kohort.coordinator.streams.reconciliation_rules import RULES
from kohort.coordinator.streams.refined_target import hand_over, refine_target, refined_tasks
from kohort.coordinator.streams.responses import endpoint_map, heartbeat_response
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.statuses import statuses
from kohort.coordinator.streams.target_assignment import TargetUpdater
from kohort.coordinator.streams.topology_updates import detect_changes, update_topology
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.task_offsets import offsets_by_task
from kohort.streams.tasks import Role, TaskId, shown, tasks_of
from kohort.streams.topology_messages import topology_of

log = logging.getLogger(__name__)

_LARGE_GROUP: Final = 64
"""Members above which not every change of the map of endpoints is sent at once."""


class Heartbeats:
    """Handles heartbeats.

    Args:
        timers: the members' session and rebalance timeouts.
        initial_rebalance_delay: makes a new group wait for more members until a time, in ms since 1970.
    """

    def __init__(
        self,
        cluster: Cluster,
        target_updater: TargetUpdater,
        timers: MemberTimers,
        initial_rebalance_delay: Callable[[StreamsGroup, int], None],
    ) -> None:
        self._cluster = cluster
        self._target = target_updater
        self._timers = timers
        self._start_initial_rebalance_delay = initial_rebalance_delay

    # A member joins or stays ------------------------------------------------------------------------------------

    def heartbeat(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult:
        """A member joins or stays.

        Raises:
            KafkaError: the member is refused; nothing has changed then.
        """
        group, member_id = draft.group, request.member_id
        joins = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        owned = None
        if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
            owned = tasks_of(request.active_tasks, request.standby_tasks, request.warmup_tasks)
        sender = joining_member(draft, request) if joins else identified_member(group, request, owned)
        metadata = sender.metadata.merged(request, client)
        reasons = []
        if request.topology is not None and (why := update_topology(draft, topology_of(request.topology))):
            reasons.append(why)
            for other in group.members:
                group.offsets.forget(other)
        reasons += self._update_metadata(draft, member_id, sender, metadata)
        reasons += detect_changes(draft, self._cluster)
        if owned:
            _check_tasks_exist(group, sender.current, owned)
        eager = self._update_offsets(draft, member_id, metadata, request)
        if sender.replaces is not None:
            hand_over(
                group, sender.replaces, member_id, goes_on=metadata.topology_epoch == sender.metadata.topology_epoch
            )
            eager = group.refinement_stale = True  # its state may be old by now
        if joins and not group.members and draft.settings.initial_rebalance_delay_ms > 0:
            self._start_initial_rebalance_delay(group, now + draft.settings.initial_rebalance_delay_ms)
        group.empty_since = None
        if reasons:
            draft.bump("; ".join(reasons))
        self._target.update(draft)
        refine_target(draft, eager=eager)
        current = sender.current if sender.behind else self._reconcile(draft, member_id, metadata, sender, owned)
        if request.shutdown_application and group.shutdown_by is None:
            log.info("application shuts down group=%s member=%s", group.group_id, member_id)
            group.shutdown_by = member_id
            group.bump_revision()
        self._reset_timeouts(draft, member_id, metadata, sender, current, now)
        assigned = current.assigned
        # An earlier response may have got lost: tasks are sent again to a member that reports others than it was
        # assigned, and to one that reports everything again.
        resends = owned is not None and (owned != assigned or request.process_id is not None)
        sends_tasks = joins or sender.behind or assigned != sender.current.assigned or resends
        if metadata.endpoint != sender.metadata.endpoint or (
            metadata.endpoint is not None and assigned != sender.current.assigned
        ):
            group.endpoints_changed()
        response = heartbeat_response(
            draft,
            member_id,
            current.epoch,
            statuses(draft, metadata, assigned, client.version),
            assigned if sends_tasks else None,
        )
        self._add_endpoints(draft, request, response, now)
        configured = group.configured
        return HeartbeatResult(response, () if configured is None else configured.missing)

    def _update_metadata(self, draft: Draft, member_id: str, sender: Sender, metadata: StreamsMetadata) -> list[str]:
        """Stores the member's metadata if it changed; returns why tasks are to be placed again, if they are."""
        if metadata == sender.metadata and not sender.new and sender.replaces in (None, member_id):
            return []
        draft.put_member(member_id, metadata)
        if sender.new:
            return [f"member {member_id} joined"]
        if metadata.instance_id is not None and not metadata.asks_for_other_tasks(sender.metadata):
            return []
        return [f"member {member_id} changed"]

    def _update_offsets(
        self, draft: Draft, member_id: str, metadata: StreamsMetadata, request: StreamsGroupHeartbeatRequest
    ) -> bool:
        """Stores the member's task offsets; returns whether they concern a task that is moving.

        Tasks of the same name are others in another topology than the group's.
        """
        group = draft.group
        if request.task_offsets is None and request.task_end_offsets is None:
            return False
        if draft.topology is not None and metadata.topology_epoch != draft.topology.epoch:
            group.offsets.forget(member_id)
            return False
        if (member := group.members.get(member_id)) is not None:
            member.may_report = False
        offsets, ends = (
            None if listed is None else offsets_by_task(listed)
            for listed in (request.task_offsets, request.task_end_offsets)
        )
        group.offsets.report(member_id, metadata.process_id or member_id, offsets, ends)
        moving: frozenset[TaskId] = frozenset() if group.refined is None else group.refined.moving
        concerned = offsets is not None and not moving.isdisjoint(offsets)
        if concerned:
            group.refinement_stale = True
            group.bump_revision()
        return concerned

    def _reconcile(
        self,
        draft: Draft,
        member_id: str,
        metadata: StreamsMetadata,
        sender: Sender,
        owned: Mapping[TaskId, Role] | None,
    ) -> CurrentAssignment[TaskId, Role]:
        group, before = draft.group, sender.current
        process = metadata.process_id or member_id
        selves = {member_id, sender.replaces}
        outdated = draft.assignment_epoch != draft.epoch

        def free(task: TaskId, role: Role) -> bool:
            if outdated:
                return False  # a new target is on its way, and may have this task elsewhere
            for holder, held in group.ownership.holders(task).items():
                if holder not in selves:
                    other = group.members[holder].metadata.process_id or holder
                    if other == process or (role is Role.ACTIVE and held is Role.ACTIVE):
                        return False
            return True

        wanted = refined_tasks(draft, member_id)
        if wanted is None:
            wanted = before.assigned
        current = reconcile(before, wanted, draft.assignment_epoch, owned, free, RULES)
        if current is not before:
            draft.put_current(member_id, current)
            log.info(
                "member moved group=%s member=%s epoch=%d was=%d state=%s tasks=[%s] revoking=[%s]",
                group.group_id,
                member_id,
                current.epoch,
                before.epoch,
                current.state.value,
                shown(current.assigned),
                shown(current.revoking),
            )
            if group.refined is not None and group.refined.moving:
                group.refinement_stale = True
        return current

    def _reset_timeouts(
        self,
        draft: Draft,
        member_id: str,
        metadata: StreamsMetadata,
        sender: Sender,
        current: CurrentAssignment[TaskId, Role],
        now: int,
    ) -> None:
        """Resets the session timeout; starts or ends the rebalance timeout."""
        if sender.replaces not in (None, member_id):
            self._timers.stop(draft.group.group_id, sender.replaces)
        timer = self._timers.reset_session_timeout(
            draft.group.group_id, member_id, now, draft.settings.session_timeout_ms
        )
        if current.state is not MemberState.UNREVOKED:
            timer.rebalance_deadline = None
        elif current is not sender.current and metadata.rebalance_timeout_ms > 0:
            self._timers.start_rebalance_timeout(timer, current.epoch, now + metadata.rebalance_timeout_ms)

    def _add_endpoints(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, response: StreamsGroupHeartbeatResponse, now: int
    ) -> None:
        """Adds the map of endpoints to a response if the member has an older one.

        The map names every member, and each member gets it: in a large group it changes at most once in a heartbeat
        interval while tasks move.
        """
        group = draft.group
        pause = draft.settings.heartbeat_interval_ms if len(group.members) > _LARGE_GROUP else 0
        if group.endpoints_stale and (now >= group.endpoints_at + pause or group.reconciled):
            group.endpoints_stale = False
            group.endpoints_at = now
            group.endpoint_epoch += 1
            group.bump_revision()
        response.endpoint_information_epoch = group.endpoint_epoch
        if request.endpoint_information_epoch == group.endpoint_epoch or group.configured is None:
            return
        if group.endpoints[0] != group.endpoint_epoch:
            group.endpoints = group.endpoint_epoch, endpoint_map(draft, group.configured)
        response.partitions_by_user_endpoint = group.endpoints[1]

    # A member leaves or is fenced -------------------------------------------------------------------------------

    def leave(self, draft: Draft, request: StreamsGroupHeartbeatRequest, now: int) -> HeartbeatResult:
        """A member leaves, for good or for a while.

        Raises:
            KafkaError: there is no such member.
        """
        group = draft.group
        member_id = leaving_member(group, request)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = member_id
            group.bump_revision()
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and request.instance_id is not None:
            log.info("static member left for a while group=%s member=%s", group.group_id, member_id)
            self._leave_for_a_while(draft, member_id)
        else:
            self.remove_member(draft, member_id, "it left", now)
        return HeartbeatResult(StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch))

    def _leave_for_a_while(self, draft: Draft, member_id: str) -> None:
        """Keeps the tasks of a static member that will be back, until its session timeout."""
        current = draft.group.members[member_id].current
        draft.put_current(
            member_id,
            replace(
                current,
                epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
                state=MemberState.STABLE,
                revoking={},
                assignment_epochs={task: 0 for task, role in current.assigned.items() if role in RULES.exclusive},
            ),
        )
        if timer := self._timers.get(draft.group.group_id, member_id):
            timer.rebalance_deadline = None

    def remove_member(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        """Removes a member that leaves or is fenced. Its tasks are placed later: other members may leave as well."""
        group = draft.group
        log.info("member removed group=%s member=%s because=%s", group.group_id, member_id, why)
        self._timers.stop(group.group_id, member_id)
        if group.members[member_id].metadata.endpoint is not None:
            group.endpoints_changed()
        draft.remove_member(member_id)
        if not draft.members():
            group.empty_since = now
        reasons = [f"member {member_id} is gone: {why}", *detect_changes(draft, self._cluster)]
        if draft.epoch == group.epoch:
            draft.bump("; ".join(reasons))


def _check_tasks_exist(
    group: StreamsGroup, current: CurrentAssignment[TaskId, Role], owned: dict[TaskId, Role]
) -> None:
    """Refuses tasks that don't exist; those that the member was assigned may be of an older topology."""
    configured = group.configured
    if configured is None or not configured.ready:
        return
    for task in owned:
        subtopology = configured.subtopologies.get(task.subtopology)
        tasks = 0 if subtopology is None else subtopology.tasks
        if task.partition >= tasks and task not in current.assigned and task not in current.revoking:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The member says that it has task {task}, which there isn't: "
                + ("there is no such subtopology." if subtopology is None else f"the subtopology has {tasks} tasks."),
            )
