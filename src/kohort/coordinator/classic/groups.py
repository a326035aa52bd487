"""The classic groups of a shard: SyncGroup, Heartbeat, LeaveGroup, and administrators. See also `join_group`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from kohort.coordinator.classic.effects import Effects
from kohort.coordinator.classic.group import ClassicGroup, PendingReply
from kohort.coordinator.classic.join_group import Joins
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.rebalancer import Rebalancer
from kohort.coordinator.classic.records import apply_record, group_record, group_tombstone
from kohort.coordinator.classic.responses import join_refused, sync_refused, sync_response
from kohort.coordinator.classic.settings import ClassicSettings
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.step import Client, Record, Reply, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_groups import DescribeGroupsResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.list_groups import ListGroupsResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue

log = logging.getLogger(__name__)

CLASSIC: Final = "classic"
"""The type of these groups, as ListGroups tells it."""

_LEAVE_BY_INSTANCE: Final = 3  # first version of LeaveGroup with several members, and static ones
_UNKNOWN_IS_AN_ERROR: Final = 6  # first version of DescribeGroups that says so of an unknown group
_COMMON: Final = (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)


class ClassicGroups:
    """Classic groups, by id.

    Args:
        pending_steps: takes the steps that timers cause.
        new_id: makes a member id from a client id, or from an instance id.
        maybe_delete_empty: gives the records that remove an empty group of another type with the same id; None if there
            is one that isn't empty.

    Attributes:
        rebalancer: rebalances groups; its purgatories hold what waits.
        completed_rebalances: generations that got their assignments.
    """

    def __init__(
        self,
        settings: ClassicSettings,
        wheel: TimingWheel,
        pending_steps: list[Step],
        new_id: Callable[[str], str],
        maybe_delete_empty: Callable[[str], list[Record] | None],
    ) -> None:
        self._settings = settings
        self._groups: dict[str, ClassicGroup] = {}
        self._effects = Effects(wheel, pending_steps)
        self.rebalancer = Rebalancer(settings, wheel, self._effects)
        self.completed_rebalances = 0
        self._joins = Joins(settings, self._groups, self.rebalancer, self._effects, new_id, maybe_delete_empty)

    def get(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def group_ids(self) -> Collection[str]:
        return self._groups.keys()

    def count_by_state(self) -> Counter[GroupState]:
        return Counter(group.state for group in self._groups.values())

    # Members ----------------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """JoinGroup: a member joins or rejoins. Its answer waits for the other members."""
        with self._effects.of_request(now) as step:
            self._joins.join(request, client, reply)
        return step

    def sync(self, request: SyncGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """SyncGroup: a member asks for its assignment, which the leader's request brings; the answer waits for that."""
        with self._effects.of_request(now) as step:
            group = self._groups.get(request.group_id)
            if group is None:
                self._effects.answer(reply, sync_refused(_unknown_group(request.group_id)))
            elif code := _check_sync(group, request):
                self._effects.answer(reply, sync_refused(code))
            else:
                self._sync(group, request, PendingReply(reply, client.version))
        return step

    def _sync(self, group: ClassicGroup, request: SyncGroupRequest, waiting: PendingReply) -> None:
        member = group.members[request.member_id]
        self.rebalancer.remove_pending_sync(group, member)
        if group.state is GroupState.STABLE:
            self._effects.answer(waiting.reply, sync_response(group, member.assignment))
            return
        if earlier := group.syncing.pop(member.member_id, None):
            self._effects.answer(earlier.reply, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        group.syncing[member.member_id] = waiting
        if group.leader == member.member_id:
            self._store_assignments(group, request)

    def _store_assignments(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        """Stores the leader's assignments; with the record in the log the group is STABLE."""
        now, generation = self._effects.now, group.generation
        assignments = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
        syncing, group.syncing = group.syncing, {}
        for member_id, waiting in syncing.items():
            self._effects.answer(waiting.reply, sync_response(group, assignments.get(member_id, b"")))
            self.rebalancer.reset_session_timeout(group, group.members[member_id], now)

        def failed(code: ErrorCode) -> Step:
            with self._effects.of_request(now) as step:
                for waiting in syncing.values():
                    self._effects.answer(waiting.reply, sync_refused(code))
                if group.generation == generation and group.state in _COMMON:
                    self.rebalancer.prepare_rebalance(group, f"{code.name} when the assignments were to be stored")
            return step

        log.info("assignments stored group=%s generation=%d leader=%s", group.group_id, generation, group.leader)
        members = group.members.values()
        self._effects.record(group_record(group, members, group.leader, assignments, now), failed)

    def heartbeat(self, request: HeartbeatRequest, now: int) -> ErrorCode:
        """Heartbeat: starts the member's session timeout over; REBALANCE_IN_PROGRESS tells it to rejoin.

        There is no step, since nothing is persisted.
        """
        group = self._groups.get(request.group_id)
        if group is None:
            return _unknown_group(request.group_id)
        if code := group.check_member(request.member_id, request.group_instance_id):
            return code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.rebalancer.reset_session_timeout(group, group.members[request.member_id], now)
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, request: LeaveGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """LeaveGroup: members leave, or an administrator removes them, static ones by instance id alone."""
        several = client.version >= _LEAVE_BY_INSTANCE
        members = request.members
        if not several:
            members = [LeaveGroupRequest.Member(member_id=request.member_id, group_instance_id=None)]
        with self._effects.of_request(now) as step:
            if not request.group_id:
                response = LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
            else:
                outcomes = self._leave_all(self._groups.get(request.group_id), members)
                response = (
                    LeaveGroupResponse(members=outcomes)
                    if several
                    else LeaveGroupResponse(error_code=outcomes[0].error_code)
                )
            self._effects.answer(reply, response)
        return step

    def _leave_all(
        self, group: ClassicGroup | None, members: list[LeaveGroupRequest.Member]
    ) -> list[LeaveGroupResponse.Member]:
        before = 0 if group is None else len(group.members)
        outcomes = [
            LeaveGroupResponse.Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._leave(group, member),
            )
            for member in members
        ]
        if group is not None and len(group.members) < before:
            self.rebalancer.rebalance_after_removal(group, "members left")
        return outcomes

    def _leave(self, group: ClassicGroup, leaving: LeaveGroupRequest.Member) -> ErrorCode:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if member_id in group.pending_members:
            self.rebalancer.remove_pending_member(group, member_id)
            return ErrorCode.NONE
        if not member_id and instance_id is not None:
            member_id = group.static_ids.get(instance_id, "")
        code = group.check_member(member_id, instance_id)
        if not code:
            why = f"it left: {leaving.reason}" if leaving.reason else "it left"
            self.rebalancer.remove(group, group.members[member_id], why)
        return code

    # Administrators ---------------------------------------------------------------------------------------------

    def describe(self, group_id: str, version: int) -> DescribeGroupsResponse.Group:
        """State and members of a group; `version` is that of DescribeGroups.

        While a rebalance is being prepared, members that have joined have the metadata that they sent, and those that
        are awaited have none: of Kafka's groups no member has any then, so nobody can tell who is awaited.
        """
        group = self._groups.get(group_id)
        if group is None:
            described = DescribeGroupsResponse.Group(group_id=group_id, group_state=GroupState.DEAD.value)
            if version >= _UNKNOWN_IS_AN_ERROR:
                described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                described.error_message = f"Group {group_id} not found."
            return described
        stable = group.state is GroupState.STABLE
        protocol = (group.protocol or "") if stable else ""

        def metadata(member: Member) -> bytes:
            if stable:
                return member.protocols[protocol]
            joined = group.state is GroupState.PREPARING_REBALANCE and member.member_id in group.joining
            return next(iter(member.protocols.values()), b"") if joined else b""

        return DescribeGroupsResponse.Group(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol,
            members=[
                DescribeGroupsResponse.Group.Member(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=metadata(member),
                    member_assignment=member.assignment if stable else b"",
                )
                for member in group.members.values()
            ],
        )

    def listed(self, states: Iterable[str] = ()) -> list[ListGroupsResponse.Group]:
        """The groups in one of these states, in upper or lower case; all groups if no state is given."""
        wanted = {state.strip().lower() for state in states}
        return [
            ListGroupsResponse.Group(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in self._groups.values()
            if not wanted or group.state.value.lower() in wanted
        ]

    def check_delete(self, group_id: str) -> ErrorCode:
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def maybe_delete_empty(self, group_id: str) -> list[Record] | None:
        """The records that remove a group if it is empty, so that one of another type can have its id; else None."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        return self.delete(group_id) if group.state is GroupState.EMPTY else None

    def forget_simple(self, group_id: str) -> None:
        """Removes a simple group whose offsets turn out to belong to a group of another type."""
        group = self._groups.get(group_id)
        if group is not None and group.protocol_type is None and group.state is GroupState.EMPTY:
            del self._groups[group_id]

    def delete(self, group_id: str) -> list[Record]:
        """The tombstone of a group, without those of its offsets."""
        return [group_tombstone(group_id)]

    # The log ----------------------------------------------------------------------------------------------------

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        group = self._groups.get(key.group)
        if value is None:
            if group is not None:
                del self._groups[key.group]
                self.rebalancer.mark_dead(group)
            return
        if group is None:
            group = self._groups[key.group] = ClassicGroup(key.group)
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.completed_rebalances += 1
        for member in apply_record(group, value):
            self.rebalancer.cancel_session_timeout(member)

    def continue_converted(self, group_id: str, protocols: Mapping[str, dict[str, bytes]], why: str | None) -> None:
        """Goes on with a group that was a consumer group, once the record is replayed that makes it a classic one.

        Args:
            protocols: all that members support, by member id; the record has the group's protocol alone.
            why: rebalances the group for this reason; None: its assignments are what they should be.
        """
        with self._effects.of_timer():
            group = self._groups[group_id]
            for member in group.members.values():
                group.change_protocols(member, protocols[member.member_id])
                self.rebalancer.reset_session_timeout(group, member, self._effects.now)
            if why is not None:
                self.rebalancer.prepare_rebalance(group, why)

    def ensure_simple_group(self, group_id: str) -> None:
        """Makes an unknown group a simple one, as an offset of it was replayed."""
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id)

    def loaded(self, now: int) -> None:
        """Starts all session timeouts, as all of the log was replayed."""
        with self._effects.of_request(now):
            for group in self._groups.values():
                for member in group.members.values():
                    self.rebalancer.reset_session_timeout(group, member, now)
                if len(group.members) > self._settings.group_max_size:
                    self.rebalancer.prepare_rebalance(group, "it has more members than it may have now")
                elif group.members and group.leader is None:
                    self.rebalancer.prepare_rebalance(group, "its rebalance after a conversion had not ended")

    def unload(self, now: int) -> Step:
        """Forgets all groups; requests that wait are answered with NOT_COORDINATOR."""
        code = ErrorCode.NOT_COORDINATOR
        with self._effects.of_request(now) as step:
            for group in self._groups.values():
                for member_id, waiting in group.joining.items():
                    self._effects.answer(waiting.reply, join_refused(code, member_id, waiting.version))
                for waiting in group.syncing.values():
                    self._effects.answer(waiting.reply, sync_refused(code))
                self.rebalancer.mark_dead(group)
            self._groups.clear()
        return step


def _unknown_group(group_id: str) -> ErrorCode:
    return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if code := group.check_member(request.member_id, request.group_instance_id):
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    expected = request.protocol_type, request.protocol_name
    for asked, agreed in zip(expected, (group.protocol_type, group.protocol), strict=True):
        if asked is not None and agreed is not None and asked != agreed:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
