"""JoinGroup: who may join a classic group, as whom, and whether that takes a rebalance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kohort.coordinator.classic.effects import Effects
from kohort.coordinator.classic.group import ClassicGroup, PendingReply
from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.rebalancer import Rebalancer
from kohort.coordinator.classic.records import group_record
from kohort.coordinator.classic.responses import join_refused, join_response
from kohort.coordinator.classic.settings import ClassicSettings
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.refusals import LONGEST, Refusals
from kohort.coordinator.step import Answer, Client, Record, Reply, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest

log = logging.getLogger(__name__)

_MEMBER_ID_REQUIRED: Final = 4  # first version of JoinGroup in which a client gets its id before it joins (KIP-394)
_NAME_LENGTH: Final = 1024  # characters of a client's name in a member id, so that the id fits in a string field
_SKIP_ASSIGNMENT: Final = 9  # first version of JoinGroup that tells a leader to keep the assignment (KIP-814)


class _Join:
    __slots__ = ("client", "protocols", "reply", "request")

    def __init__(self, request: JoinGroupRequest, client: Client, reply: Reply) -> None:
        self.request = request
        self.client = client
        self.reply = reply
        self.protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}

    @property
    def rebalance_timeout_ms(self) -> int:
        """The session timeout where the request has none, in version 0."""
        timeout = self.request.rebalance_timeout_ms
        return timeout if timeout >= 0 else self.request.session_timeout_ms

    @property
    def why(self) -> str:
        return self.request.reason or "no reason given"

    def member(self, member_id: str) -> Member:
        return Member(
            member_id,
            self.request.group_instance_id,
            self.client.client_id,
            self.client.host,
            self.request.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.protocols,
        )


class Joins:
    """Handles JoinGroup.

    Args:
        groups: all groups, by id; a first member adds its group.
        new_id: makes a member id from a client id, or from an instance id.
        maybe_delete_empty: gives the records that remove an empty group of another type with the same id; None if there
            is one that isn't empty.
    """

    def __init__(
        self,
        settings: ClassicSettings,
        groups: dict[str, ClassicGroup],
        rebalancer: Rebalancer,
        effects: Effects,
        new_id: Callable[[str], str],
        maybe_delete_empty: Callable[[str], list[Record] | None],
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._rebalancer = rebalancer
        self._effects = effects
        self._new_id = new_id
        self._maybe_delete_empty = maybe_delete_empty
        self._refusals = Refusals()

    def join(self, request: JoinGroupRequest, client: Client, reply: Reply) -> None:
        """Handles a JoinGroup; the answer may come with a later request, or at a timeout."""
        join = _Join(request, client, reply)
        member_id = request.member_id
        limits = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        group = self._groups.get(request.group_id)
        # Asked even if there is a group: the other one's tombstones may not have got into the log.
        tombstones = self._maybe_delete_empty(request.group_id)
        if not request.group_id:
            self._refuse(join, ErrorCode.INVALID_GROUP_ID, member_id)
        elif not limits[0] <= request.session_timeout_ms <= limits[1]:
            self._refuse(join, ErrorCode.INVALID_SESSION_TIMEOUT, member_id)
        elif tombstones is None:
            self._tell_refused(join, "the group is of another type, and has members")
            self._refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
        elif group is None and member_id:
            self._refuse(join, ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        else:
            self._join_group(group or ClassicGroup(request.group_id, self._effects.now), join, tombstones)

    def _join_group(self, group: ClassicGroup, join: _Join, tombstones: list[Record]) -> None:
        member_id = join.request.member_id
        # A static member that comes back without an id replaces its former self.
        replaced = member_id or group.static_ids.get(join.request.group_instance_id or "", "")
        if not self._has_room(group, replaced):
            self._refuse_for_size(group, join)
        elif not group.supports(join.request.protocol_type, join.protocols):
            self._tell_refused(join, _mismatch(group, join))
            self._refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        else:
            self._groups[group.group_id] = group
            for record in tombstones:
                self._effects.record(record)
            if member_id:
                self._join_known(group, join)
            else:
                self._join_new(group, join)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether `group.max.size` leaves room for this member; in a rebalance, the first to rejoin may stay."""
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            return member_id in group.joining or len(group.joining) < self._settings.group_max_size
        return member_id in group.members or len(group.members) < self._settings.group_max_size

    def _refuse_for_size(self, group: ClassicGroup, join: _Join) -> None:
        member_id = join.request.member_id
        self._refuse(join, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        if member := group.members.get(member_id):
            self._rebalancer.remove(group, member, "there is no room: group.max.size")
            self._rebalancer.rebalance_after_removal(group, f"no room for member {member_id}")
        elif member_id in group.pending_members:
            self._rebalancer.remove_pending_member(group, member_id)

    # A client without a member id -------------------------------------------------------------------------------

    def _join_new(self, group: ClassicGroup, join: _Join) -> None:
        request = join.request
        instance_id = request.group_instance_id
        member_id = self._new_id((join.client.client_id if instance_id is None else instance_id)[:_NAME_LENGTH])
        if instance_id is not None and (old_id := group.static_ids.get(instance_id)):
            self._return_static(group, join, group.members[old_id], join.member(member_id))
        elif instance_id is None and join.client.version >= _MEMBER_ID_REQUIRED:
            self._rebalancer.add_pending_member(group, member_id, request.session_timeout_ms)
            self._refuse(join, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, join, member_id)

    def _add(self, group: ClassicGroup, join: _Join, member_id: str) -> None:
        if not group.members:
            group.protocol_type = join.request.protocol_type
        self._wait(group, join, member_id)
        self._rebalancer.add(group, join.member(member_id))
        self._rebalancer.rebalance(group, f"new member {member_id}: {join.why}")

    def _return_static(self, group: ClassicGroup, join: _Join, old: Member, new: Member) -> None:
        """A static member is back after a restart, and replaces its former self under a new id (KIP-345)."""
        if group.state is GroupState.STABLE:
            members = [new if member is old else member for member in group.members.values()]
            if group.select_protocol(members) == group.protocol:
                self._swap_static(group, join, old, new, members)
                return
        self._rebalancer.replace_static_member(group, old, new)
        self._wait(group, join, new.member_id)
        self._rebalancer.rebalance(group, f"static member {new.instance_id} is back: {join.why}")

    def _swap_static(self, group: ClassicGroup, join: _Join, old: Member, new: Member, members: list[Member]) -> None:
        """Gives the new self the old one's assignment, without a rebalance."""
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        assignments[new.member_id] = old.assignment
        leads = group.leader == old.member_id
        leader = new.member_id if leads else group.leader
        if join.client.version >= _SKIP_ASSIGNMENT:
            response = join_response(group, new, members=members, leader=leader, skip_assignment=leads)
        else:
            # It can't be told to skip the assignment, so it mustn't know that it leads.
            response = join_response(group, new, members=(), leader=group.leader)

        def failed(code: ErrorCode) -> Step:
            if group.replacements.pop(new.member_id, None):
                self._rebalancer.cancel_session_timeout(new)
            return Step(answers=[Answer(join.reply, join_refused(code, "", join.client.version))])

        log.info("static member is back group=%s instance=%s member=%s", group.group_id, new.instance_id, new.member_id)
        group.replacements[new.member_id] = new
        self._rebalancer.reset_session_timeout(group, new, self._effects.now)
        self._effects.record(group_record(group, members, leader, assignments, self._effects.now), failed)
        self._effects.answer(join.reply, response)

    # A client with a member id ----------------------------------------------------------------------------------

    def _join_known(self, group: ClassicGroup, join: _Join) -> None:
        request = join.request
        member_id = request.member_id
        if member_id in group.pending_members and request.group_instance_id is None:
            self._add(group, join, member_id)
            return
        if code := group.check_member(member_id, request.group_instance_id):
            self._refuse(join, code, member_id)
            return
        member = group.members[member_id]
        unchanged = member.has_protocols(join.protocols)
        completing = group.state is GroupState.COMPLETING_REBALANCE
        stable = group.state is GroupState.STABLE
        # A leader joins a stable group to have it rebalanced, for instance as partitions were added to a topic.
        if unchanged and (completing or (stable and group.leader != member_id)):
            response = join_response(group, member, members=group.members.values(), leader=group.leader)
            self._effects.answer(join.reply, response)
            return
        group.change_protocols(member, join.protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        self._wait(group, join, member_id)
        self._rebalancer.rebalance(group, f"member {member_id} joins again: {join.why}")

    # ------------------------------------------------------------------------------------------------------------

    def _wait(self, group: ClassicGroup, join: _Join, member_id: str) -> None:
        """Makes the join wait; one that the same member sent before gets REBALANCE_IN_PROGRESS."""
        if earlier := group.joining.pop(member_id, None):
            response = join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member_id, earlier.version)
            self._effects.answer(earlier.reply, response)
        group.joining[member_id] = PendingReply(join.reply, join.client.version)

    def _tell_refused(self, join: _Join, why: str) -> None:
        """Writes a line, of a client in ten seconds one: who is refused tries again and again."""
        group_id, client_id = join.request.group_id, join.client.client_id
        if self._refusals.is_news(self._effects.now, group_id, client_id):
            log.info("join refused group=%s client=%s reason=%s", group_id[:LONGEST], client_id[:LONGEST], why)

    def _refuse(self, join: _Join, code: ErrorCode, member_id: str) -> None:
        self._effects.answer(join.reply, join_refused(code, member_id, join.client.version))


def _mismatch(group: ClassicGroup, join: _Join) -> str:
    """Why a member can't join: its type, or its protocols (a consumer's assignors), beside the members'."""
    has, of_type = ", ".join(join.protocols)[:LONGEST], join.request.protocol_type[:LONGEST]
    if not has or not of_type:
        return "names no protocol"
    if of_type != group.protocol_type:
        return f"is of type {of_type}, the members are of type {group.protocol_type}"
    common = set.intersection(*(set(member.protocols) for member in group.members.values()))
    return f"has {has}, the members have {', '.join(sorted(common))[:LONGEST]}"
