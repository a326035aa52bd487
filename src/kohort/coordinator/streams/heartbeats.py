"""Heartbeats of members that join, stay and leave, and the removal of members that are fenced, step by step."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final, NamedTuple

from kohort.coordinator.member_lines import tell_removed
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.member_identity import away
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.modern.timeouts import MemberTimers
from kohort.coordinator.step import Client
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.member_connections import MemberConnections
from kohort.coordinator.streams.member_identity import Sender, identified_member, joining_member, leaving_member
from kohort.coordinator.streams.next_assignment import next_assignment
from kohort.coordinator.streams.reconciliation_rules import RULES
from kohort.coordinator.streams.refined_target import refine_target
from kohort.coordinator.streams.responses import endpoint_map, heartbeat_response
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.statuses import statuses
from kohort.coordinator.streams.target_assignment import TargetUpdater
from kohort.coordinator.streams.topology_updates import detect_changes, update_topology
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.heartbeat_wishes import Grant, wishes_of
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.configured_topology import ConfiguredTopology
from kohort.streams.task_offsets import offsets_by_task
from kohort.streams.tasks import Role, TaskId, shown, tasks_of
from kohort.streams.topology_messages import topology_of

log = logging.getLogger(__name__)

_LARGE_GROUP: Final = 64
"""Members above which not every change of the map of endpoints is sent at once."""

_DESCRIBES: Final = 1
"""First version of the heartbeat whose clients can be asked to describe their topology (KIP-1331)."""

_PLACEMENT_DELAY_MS: Final = 50
"""Time after a member is gone in which others may leave as well, before tasks are placed."""


class _Heartbeat(NamedTuple):
    """A heartbeat of a member that joins or stays.

    Attributes:
        sender: the member before this heartbeat.
        metadata: its metadata after it.
        owned: the tasks that it says it has; None if it doesn't say.
        now: in ms since 1970.
    """

    request: StreamsGroupHeartbeatRequest
    client: Client
    sender: Sender
    metadata: StreamsMetadata
    owned: dict[TaskId, Role] | None
    now: int

    @property
    def member_id(self) -> str:
        return self.request.member_id

    @property
    def joins(self) -> bool:
        return self.request.member_epoch == JOIN_GROUP_MEMBER_EPOCH


class Heartbeats:
    """Handles heartbeats.

    Args:
        timers: the members' session and rebalance timeouts.
        connections: of members with a disconnect timeout.
    """

    def __init__(
        self, cluster: Cluster, target_updater: TargetUpdater, timers: MemberTimers, connections: MemberConnections
    ) -> None:
        self._cluster = cluster
        self._target = target_updater
        self._timers = timers
        self._connections = connections

    # A member joins or stays ------------------------------------------------------------------------------------

    def heartbeat(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult:
        """A member joins or stays.

        Raises:
            KafkaError: the member is refused.
        """
        heartbeat = _identify(draft, request, client, now)
        reasons = self._changes(draft, heartbeat)
        _check_tasks_exist(draft.soft.configured, heartbeat)
        on_moving_task = _update_offsets(draft, heartbeat)
        returned = heartbeat.sender.replaces is not None
        if returned:  # a member's state may be old by now
            draft.soft = replace(draft.soft, refinement_stale=True)
        _end_emptiness(draft, now)
        if reasons:
            draft.bump("; ".join(reasons))
        self._target.update(draft)
        refine_target(draft, eager=on_moving_task or returned)
        current = heartbeat.sender.current if heartbeat.sender.behind else _reconcile(draft, heartbeat)
        if request.shutdown_application:
            _shut_down(draft, request.member_id)
        draft.then(self._reset_timeouts, draft, heartbeat, current)
        return _result(draft, heartbeat, current)

    def _changes(self, draft: Draft, heartbeat: _Heartbeat) -> list[str]:
        """Updates topology and metadata; returns why tasks are to be placed again, if they are."""
        sender, metadata, topology = heartbeat.sender, heartbeat.metadata, heartbeat.request.topology
        reasons = []
        if topology is not None and (why := update_topology(draft, topology_of(topology))):
            reasons.append(why)
        if metadata != sender.metadata or sender.new or sender.replaces not in (None, heartbeat.member_id):
            draft.put_member(heartbeat.member_id, metadata)
            if sender.new:
                reasons.append(f"member {heartbeat.member_id} joined")
            elif metadata.instance_id is None or metadata.asks_for_other_tasks(sender.metadata):
                reasons.append(f"member {heartbeat.member_id} changed")
        return reasons + detect_changes(draft, self._cluster)

    def _reset_timeouts(self, draft: Draft, heartbeat: _Heartbeat, current: CurrentAssignment[TaskId, Role]) -> None:
        """Resets the session timeout, ends the disconnect timeout, starts or ends the rebalance timeout."""
        sender, now, timeout = heartbeat.sender, heartbeat.now, heartbeat.metadata.rebalance_timeout_ms
        group_id, member_id = draft.group.group_id, heartbeat.member_id
        if sender.replaces not in (None, member_id):
            self._timers.stop(group_id, sender.replaces)
            self._connections.forget(group_id, sender.replaces)
        self._timers.reset_session_timeout(group_id, member_id, now, draft.settings.session_timeout_ms)
        self._connections.came_back(group_id, member_id)
        if current.state is not MemberState.UNREVOKED:
            self._timers.stop_rebalance_timeout(group_id, member_id)
        elif current is not sender.current and timeout > 0:
            self._timers.start_rebalance_timeout(group_id, member_id, current.epoch, now + timeout)

    # A member leaves or is fenced -------------------------------------------------------------------------------

    def leave(self, draft: Draft, request: StreamsGroupHeartbeatRequest, now: int) -> HeartbeatResult:
        """A member leaves, for good or for a while.

        Raises:
            KafkaError: there is no such member.
        """
        member_id = leaving_member(draft.group, request)
        if request.shutdown_application:
            _shut_down(draft, member_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and request.instance_id is not None:
            log.info("static member left for a while group=%s member=%s", draft.group.group_id, member_id)
            self._leave_for_a_while(draft, member_id)
        else:
            self.remove_member(draft, member_id, "it left", now)
        return HeartbeatResult(StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch))

    def _leave_for_a_while(self, draft: Draft, member_id: str) -> None:
        """Keeps the tasks of a static member that will be back, until its session timeout."""
        current = draft.group.members[member_id].current
        draft.put_current(member_id, away(current, RULES))
        draft.then(self._timers.stop_rebalance_timeout, draft.group.group_id, member_id)
        draft.then(self._connections.forget, draft.group.group_id, member_id)

    def remove_member(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        """Removes a member that leaves or is fenced. Its tasks are placed later: other members may leave as well."""
        group = draft.group
        metadata = group.members[member_id].metadata
        tell_removed(group.group_id, member_id, metadata.client_id, metadata.client_host, why)
        draft.then(self._timers.stop, group.group_id, member_id)
        draft.then(self._connections.forget, group.group_id, member_id)
        had_endpoint = metadata.endpoint is not None
        draft.remove_member(member_id)
        soft = draft.soft
        draft.soft = replace(
            soft,
            endpoints_stale=soft.endpoints_stale or had_endpoint,
            empty_since=soft.empty_since if draft.members() else now,
            placement_at=now + _PLACEMENT_DELAY_MS if soft.placement_at is None else soft.placement_at,
        )
        reasons = [f"member {member_id} is gone: {why}", *detect_changes(draft, self._cluster)]
        if draft.epoch == group.epoch:
            draft.bump("; ".join(reasons))


def _identify(draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client, now: int) -> _Heartbeat:
    owned = None
    if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
        owned = tasks_of(request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
        sender = joining_member(draft, request, client)
    else:
        sender = identified_member(draft.group, request, owned)
    return _Heartbeat(request, client, sender, sender.metadata.merged(request, client), owned, now)


def _check_tasks_exist(configured: ConfiguredTopology | None, heartbeat: _Heartbeat) -> None:
    """Refuses tasks that don't exist; those that the member was assigned may be of an older topology."""
    if not heartbeat.owned or configured is None or not configured.ready:
        return
    current = heartbeat.sender.current
    for task in heartbeat.owned:
        subtopology = configured.subtopologies.get(task.subtopology)
        tasks = 0 if subtopology is None else subtopology.tasks
        if task.partition >= tasks and task not in current.assigned and task not in current.revoking:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The member says that it has task {task}, which there isn't: "
                + ("there is no such subtopology." if subtopology is None else f"the subtopology has {tasks} tasks."),
            )


def _update_offsets(draft: Draft, heartbeat: _Heartbeat) -> bool:
    """Stores the member's task offsets; returns whether they concern a task that is moving.

    Tasks of the same name are others in another topology than the group's.
    """
    request, metadata, soft = heartbeat.request, heartbeat.metadata, draft.soft
    if request.task_offsets is None and request.task_end_offsets is None:
        return False
    if draft.topology is not None and metadata.topology_epoch != draft.topology.epoch:
        draft.soft = replace(soft, offsets=soft.offsets.forget(heartbeat.member_id))
        return False
    offsets, ends = (
        None if listed is None else offsets_by_task(listed)
        for listed in (request.task_offsets, request.task_end_offsets)
    )
    process = metadata.process_id or heartbeat.member_id
    concerned = offsets is not None and soft.refined is not None and not soft.refined.moving.isdisjoint(offsets)
    draft.soft = replace(
        soft,
        offsets=soft.offsets.report(heartbeat.member_id, process, offsets, ends),
        may_report=soft.may_report - {heartbeat.member_id},
        refinement_stale=soft.refinement_stale or concerned,
    )
    return concerned


def _end_emptiness(draft: Draft, now: int) -> None:
    """The group has a member; a new group waits for more: `group.streams.initial.rebalance.delay.ms`."""
    delay, soft = draft.settings.initial_rebalance_delay_ms, draft.soft
    if soft.empty_since is not None:
        draft.soft = soft = replace(soft, empty_since=None)
    if not draft.group.members and delay > 0 and not soft.delayed:
        draft.soft = replace(soft, delayed=True, placement_at=now + delay)


def _reconcile(draft: Draft, heartbeat: _Heartbeat) -> CurrentAssignment[TaskId, Role]:
    """Moves the member towards its part of the refined target."""
    group, member_id, before = draft.group, heartbeat.member_id, heartbeat.sender.current
    process = heartbeat.metadata.process_id or member_id
    selves = {member_id, heartbeat.sender.replaces}
    current = next_assignment(draft, member_id, process, before, heartbeat.owned, selves)
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
        if draft.soft.refined is not None and draft.soft.refined.moving:
            draft.soft = replace(draft.soft, refinement_stale=True)
    return current


def _shut_down(draft: Draft, member_id: str) -> None:
    """A member asks the whole application to shut down."""
    if draft.soft.shutdown_by is None:
        log.info("application shuts down group=%s member=%s", draft.group.group_id, member_id)
        draft.soft = replace(draft.soft, shutdown_by=member_id)


def _result(draft: Draft, heartbeat: _Heartbeat, current: CurrentAssignment[TaskId, Role]) -> HeartbeatResult:
    """Returns what the member is told.

    An earlier response may have got lost: tasks are sent again to a member that reports others than it was assigned,
    and to one that reports everything again.
    """
    sender, metadata, owned, assigned = heartbeat.sender, heartbeat.metadata, heartbeat.owned, current.assigned
    moved = assigned != sender.current.assigned
    resends = owned is not None and (owned != assigned or heartbeat.request.process_id is not None)
    if metadata.endpoint != sender.metadata.endpoint or (metadata.endpoint is not None and moved):
        draft.soft = replace(draft.soft, endpoints_stale=True)
    endpoints = _updated_endpoints(draft, heartbeat)
    response = heartbeat_response(
        draft,
        heartbeat.member_id,
        current.epoch,
        statuses(draft, metadata, assigned, heartbeat.client.version),
        assigned if heartbeat.joins or sender.behind or moved or resends else None,
        heartbeat.client.version,
    )
    response.partitions_by_user_endpoint = endpoints
    response.topology_description_required = heartbeat.client.version >= _DESCRIBES and _is_undescribed(draft, metadata)
    configured = draft.soft.configured
    missing = () if configured is None else configured.missing
    return HeartbeatResult(response, missing, _disconnect_timeout_ms(draft, heartbeat.request, response))


def _disconnect_timeout_ms(
    draft: Draft, request: StreamsGroupHeartbeatRequest, response: StreamsGroupHeartbeatResponse
) -> int:
    """Returns the member's disconnect timeout, in ms; a member that asks for one is told."""
    settings = draft.settings
    wishes = wishes_of(request.unknown_tags)
    if wishes is None:
        return settings.disconnect_timeout_ms
    timeout = settings.disconnect_timeout(wishes.disconnect_timeout_ms)
    response.unknown_tags = Grant(timeout, settings.heartbeat_interval_ms).tags()
    return timeout


def _is_undescribed(draft: Draft, metadata: StreamsMetadata) -> bool:
    """Whether the member has the group's topology, which nobody has described yet."""
    topology, described = draft.topology, draft.soft.described
    if topology is None or metadata.topology_epoch != topology.epoch:
        return False
    return described is None or described.epoch != topology.epoch


def _updated_endpoints(
    draft: Draft, heartbeat: _Heartbeat
) -> list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint] | None:
    """Returns the map of endpoints; None if the member has the latest.

    The map names every member, and each member gets it: in a large group it changes at most once in a heartbeat
    interval while tasks move.
    """
    group, soft, now = draft.group, draft.soft, heartbeat.now
    pause = draft.settings.heartbeat_interval_ms if len(group.members) > _LARGE_GROUP else 0
    if soft.endpoints_stale and (now >= soft.endpoints_at + pause or group.reconciled):
        epoch = soft.endpoint_epoch + 1
        draft.soft = soft = replace(soft, endpoints_stale=False, endpoints_at=now, endpoint_epoch=epoch)
    if heartbeat.request.endpoint_information_epoch == soft.endpoint_epoch or soft.configured is None:
        return None
    if soft.endpoints[0] != soft.endpoint_epoch:
        endpoints = soft.endpoint_epoch, endpoint_map(draft, soft.configured)
        draft.soft = soft = replace(soft, endpoints=endpoints)
    return soft.endpoints[1]
