"""What a heartbeat, a departure or a late member comes to, step by step."""

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
from kohort.coordinator.streams.answers import answer, endpoint_map, statuses
from kohort.coordinator.streams.configuring import review, take_topology
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import Cluster
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.membership import Known, admit, departing, identify
from kohort.coordinator.streams.placing import Placing
from kohort.coordinator.streams.reconciliation_rules import RULES
from kohort.coordinator.streams.refining import hand_over, refined, settle
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.task_offsets import offsets_by_task
from kohort.streams.tasks import Role, TaskId, shown, tasks_of
from kohort.streams.topology_messages import topology_of

__all__ = ["Heartbeats"]

log = logging.getLogger(__name__)

_LARGE: Final = 64
"""Members above which the map of endpoints isn't told of every change."""


class Heartbeats:
    """Works out heartbeats.

    Args:
        cluster: the topics.
        placing: who places tasks.
        timers: the members' timers.
        delay: has a new group wait for more members, for some ms.
    """

    def __init__(
        self, cluster: Cluster, placing: Placing, timers: MemberTimers, delay: Callable[[StreamsGroup, int], None]
    ) -> None:
        self._cluster = cluster
        self._placing = placing
        self._timers = timers
        self._delay = delay

    # A member is alive ------------------------------------------------------------------------------------------

    def heartbeat(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client, now: int
    ) -> HeartbeatResult:
        """A member joins, or shows that it is alive.

        Raises:
            KafkaError: the member is refused; nothing has changed then.
        """
        group, member_id = draft.group, request.member_id
        joins = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        owned = None
        if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
            owned = tasks_of(request.active_tasks, request.standby_tasks, request.warmup_tasks)
        known = admit(draft, request) if joins else identify(group, request, owned)
        metadata = known.metadata.merged(request, client)
        reasons = []
        if request.topology is not None and (why := take_topology(draft, topology_of(request.topology))):
            reasons.append(why)
            for other in group.members:
                group.offsets.forget(other)
        reasons += self._take_metadata(draft, member_id, known, metadata)
        reasons += review(draft, self._cluster)
        if owned:
            _check_tasks_exist(group, known.current, owned)
        eager = self._take_offsets(draft, member_id, metadata, request)
        if known.replaces is not None:
            hand_over(
                group, known.replaces, member_id, goes_on=metadata.topology_epoch == known.metadata.topology_epoch
            )
            eager = group.refine_again = True  # its state may have become old while it was away
        if joins and not group.members and draft.settings.initial_rebalance_delay_ms > 0:
            self._delay(group, now + draft.settings.initial_rebalance_delay_ms)
        group.empty_since = None
        if reasons:
            draft.bump("; ".join(reasons))
        self._placing.place(draft)
        settle(draft, eager=eager)
        current = known.current if known.behind else self._reconcile(draft, member_id, metadata, known, owned)
        if request.shutdown_application and group.shutdown_by is None:
            log.info("application shuts down group=%s member=%s", group.group_id, member_id)
            group.shutdown_by = member_id
            group.touch()
        self._watch(draft, member_id, metadata, known, current, now)
        given = current.assigned
        # An earlier answer may have got lost: who has something else than it was given is told again, and so is who
        # says everything again, since it doesn't know.
        again = owned is not None and (owned != given or request.process_id is not None)
        tell = joins or known.behind or given != known.current.assigned or again
        if metadata.endpoint != known.metadata.endpoint or (
            metadata.endpoint is not None and given != known.current.assigned
        ):
            group.endpoints_changed()
        response = answer(
            draft,
            member_id,
            current.epoch,
            statuses(draft, metadata, given, client.version),
            given if tell else None,
        )
        self._tell_endpoints(draft, request, response, now)
        configured = group.configured
        return HeartbeatResult(response, () if configured is None else configured.missing)

    def _take_metadata(self, draft: Draft, member_id: str, known: Known, metadata: StreamsMetadata) -> list[str]:
        """Note what the member says about itself; is that a reason to place tasks anew?"""
        if metadata == known.metadata and not known.new and known.replaces in (None, member_id):
            return []
        draft.put_member(member_id, metadata)
        if known.new:
            return [f"member {member_id} joined"]
        if metadata.instance_id is not None and not metadata.asks_for_other_tasks(known.metadata):
            return []
        return [f"member {member_id} changed"]

    def _take_offsets(
        self, draft: Draft, member_id: str, metadata: StreamsMetadata, request: StreamsGroupHeartbeatRequest
    ) -> bool:
        """Note how far the member's copies are; does that concern a task that is moving?

        On another topology than the group's, tasks of the same name are something else.
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
            group.refine_again = True
            group.touch()
        return concerned

    def _reconcile(
        self,
        draft: Draft,
        member_id: str,
        metadata: StreamsMetadata,
        known: Known,
        owned: Mapping[TaskId, Role] | None,
    ) -> CurrentAssignment[TaskId, Role]:
        """Move the member as far as it can go."""
        group, before = draft.group, known.current
        process = metadata.process_id or member_id
        selves = {member_id, known.replaces}
        outdated = draft.assignment_epoch != draft.epoch

        def free(task: TaskId, role: Role) -> bool:
            if outdated:
                return False  # a target that fits is on its way, and may have this task elsewhere
            for holder, held in group.ownership.holders(task).items():
                if holder not in selves:
                    other = group.members[holder].metadata.process_id or holder
                    if other == process or (role is Role.ACTIVE and held is Role.ACTIVE):
                        return False
            return True

        wanted = refined(draft, member_id)
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
                group.refine_again = True
        return current

    def _watch(
        self,
        draft: Draft,
        member_id: str,
        metadata: StreamsMetadata,
        known: Known,
        current: CurrentAssignment[TaskId, Role],
        now: int,
    ) -> None:
        """Wind up the member's timers."""
        if known.replaces not in (None, member_id):
            self._timers.stop(draft.group.group_id, known.replaces)
        timer = self._timers.reset_session_timeout(
            draft.group.group_id, member_id, now, draft.settings.session_timeout_ms
        )
        if current.state is not MemberState.UNREVOKED:
            timer.rebalance_deadline = None
        elif current is not known.current and metadata.rebalance_timeout_ms > 0:
            self._timers.start_rebalance_timeout(timer, current.epoch, now + metadata.rebalance_timeout_ms)

    def _tell_endpoints(
        self, draft: Draft, request: StreamsGroupHeartbeatRequest, response: StreamsGroupHeartbeatResponse, now: int
    ) -> None:
        """Give the member the map of endpoints if it has an older one.

        The map names every member, and each member gets it: in a large group that is told once in a heartbeat interval
        at most, while tasks move.
        """
        group = draft.group
        pause = draft.settings.heartbeat_interval_ms if len(group.members) > _LARGE else 0
        if group.endpoints_stale and (now >= group.endpoints_at + pause or group.reconciled):
            group.endpoints_stale = False
            group.endpoints_at = now
            group.endpoint_epoch += 1
            group.touch()
        response.endpoint_information_epoch = group.endpoint_epoch
        if request.endpoint_information_epoch == group.endpoint_epoch or group.configured is None:
            return
        if group.endpoints[0] != group.endpoint_epoch:
            group.endpoints = group.endpoint_epoch, endpoint_map(draft, group.configured)
        response.partitions_by_user_endpoint = group.endpoints[1]

    # A member goes ----------------------------------------------------------------------------------------------

    def leave(self, draft: Draft, request: StreamsGroupHeartbeatRequest, now: int) -> HeartbeatResult:
        """A member leaves, for good or for a while.

        Raises:
            KafkaError: there is no such member.
        """
        group = draft.group
        member_id = departing(group, request)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = member_id
            group.touch()
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and request.instance_id is not None:
            log.info("static member left for a while group=%s member=%s", group.group_id, member_id)
            self._away(draft, member_id)
        else:
            self.remove(draft, member_id, "it left", now)
        return HeartbeatResult(StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch))

    def _away(self, draft: Draft, member_id: str) -> None:
        """Keep the tasks of a static member that will be back, until its session is over."""
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

    def remove(self, draft: Draft, member_id: str, why: str, now: int) -> None:
        """A member goes, by its own will or not. Its tasks are to be placed anew, but others may be about to go too."""
        group = draft.group
        log.info("member removed group=%s member=%s because=%s", group.group_id, member_id, why)
        self._timers.stop(group.group_id, member_id)
        if group.members[member_id].metadata.endpoint is not None:
            group.endpoints_changed()
        draft.remove(member_id)
        if not draft.members():
            group.empty_since = now
        reasons = [f"member {member_id} is gone: {why}", *review(draft, self._cluster)]
        if draft.epoch == group.epoch:
            draft.bump("; ".join(reasons))


def _check_tasks_exist(
    group: StreamsGroup, current: CurrentAssignment[TaskId, Role], owned: dict[TaskId, Role]
) -> None:
    """Refuse tasks that nobody can have; those the member was given may be of an older topology."""
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
