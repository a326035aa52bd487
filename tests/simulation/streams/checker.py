"""What must hold after every step, whatever happens.

Two sets of books are kept: the log's (`Ledger`), and the members' own, of what they really have. A member that was
removed, but doesn't know yet, doesn't count: what it has is void until it abandons it.

- A task is run by one member; a process has one copy of it, in whatever role: in both books.
- Whatever a member has, the log says that it has it, or that it is giving it up.
- A member is told what the log says, and knows it even if it is told nothing.
- A member is removed at its session timeout or its rebalance timeout, neither before nor after, or for another reason
  that the protocol knows.
- Epochs only rise; a member's is never above its group's.
- Offsets of a task are committed by the member that owns it.
- What a replay of the log comes to is what is live.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.streams.tasks import Role, TaskId
from tests.simulation.books import InvariantError
from tests.simulation.streams.ledger import UNREVOKED, Current, Group, Ledger
from tests.simulation.streams.member import Member, Tasks, tasks_of
from tests.simulation.streams.state_reuse import StateReuse

if TYPE_CHECKING:
    from tests.simulation.streams.world import StreamsWorld

LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2
STALE_TOPOLOGY, SHUTDOWN_APPLICATION, ASSIGNMENT_DELAYED, MISSING_CLIENT_TAGS = 0, 4, 5, 6
FIRST_EPOCH = 1  # of an assignment that nobody has made yet, and which is empty


class Session:
    """A member's session, and when it was told to revoke something.

    Attributes:
        last_heartbeat: the last one that counts.
        maybe_last_heartbeat: the last one that may have counted; later only if a record couldn't be written.
        revocation_told: when it was first told to revoke what it now has to, and when last.
    """

    __slots__ = ("last_heartbeat", "maybe_last_heartbeat", "revocation_told", "watched")

    def __init__(self, now: int) -> None:
        self.last_heartbeat = self.maybe_last_heartbeat = now
        self.revocation_told: tuple[int, int] | None = None
        self.watched = False


class Checker:
    """Watches a world."""

    def __init__(self, world: StreamsWorld) -> None:
        self.world = world
        self.ledger = Ledger()
        self.void: set[str] = set()  # members that were removed and don't know
        self._sessions: dict[tuple[str, str], Session] = {}
        self._deadlines: list[tuple[int, str, str]] = []
        self._owners: dict[tuple[str, TaskId], list[Member]] = {}
        self._copies: dict[tuple[str, TaskId], list[Member]] = {}
        self._before: dict[tuple[str, str], Current] = {}
        self._epochs: dict[str, tuple[int, int]] = {}
        self._most_warmups: dict[str, int] = {}
        self._started = -1
        self._last_owner: dict[tuple[str, TaskId], str] = {}
        self.moves: Counter[str] = Counter()  # of active tasks from one member to another, by group
        self.state_reuse = StateReuse(world)

    def fail(self, group_id: str, what: str) -> None:
        raise InvariantError(f"at {self.world.elapsed}, {group_id}: {what}")

    # The members' own books -------------------------------------------------------------------------------------

    def took(self, member: Member, task: TaskId, role: Role) -> None:
        """A member has taken on a task, or has it in another role."""
        owners = self._owners.setdefault((member.group_id, task), [])
        copies = self._copies.setdefault((member.process_id, task), [])
        if member in owners:
            owners.remove(member)
        if role is Role.ACTIVE:
            owners.append(member)
        if member not in copies:
            copies.append(member)
        if member.member_id not in self.void:
            for what, members in (("run by", owners), ("held in one process by", copies)):
                if len([one for one in members if one.member_id not in self.void]) > 1:
                    self.fail(member.group_id, f"{task} is {what} {members}")
            self._check_held(member)

    def dropped(self, member: Member, task: TaskId) -> None:
        """A member has let go of a task."""
        owners = self._owners.get((member.group_id, task), [])
        if member in owners:
            owners.remove(member)
        self._copies[member.process_id, task].remove(member)

    def rejoins(self, member: Member) -> None:
        """A member has abandoned all it had: it counts again."""
        self.void.discard(member.member_id)

    def _check_held(self, member: Member) -> None:
        """The log knows of all that a member has."""
        current = self.ledger.group(member.group_id).current.get(member.member_id)
        if current is None:
            self.fail(member.group_id, f"{member} has {member.held}, and isn't in the log")
        elif not current.all.issuperset(member.held):
            self.fail(member.group_id, f"{member} has {set(member.held) - current.all}, and the log doesn't say so")
        elif not current.active.issuperset(task for task, role in member.held.items() if role is Role.ACTIVE):
            self.fail(member.group_id, f"{member} runs what the log doesn't let it run: {member.held}, {current}")

    # Requests and answers ---------------------------------------------------------------------------------------

    def answered(
        self,
        request: StreamsGroupHeartbeatRequest,
        response: StreamsGroupHeartbeatResponse,
        expecting: Member | None,
    ) -> None:
        """A heartbeat was answered; `expecting` is the member, if the answer will reach it."""
        group_id, member_id = request.group_id, request.member_id
        if self.world.append_error is not None and (session := self._sessions.get((group_id, member_id))):
            session.maybe_last_heartbeat = self.world.now
        lists = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
        if any(of is None for of in lists) != all(of is None for of in lists):
            self.fail(group_id, f"a response with some lists and without others: {response}")
        if response.error_code or request.member_epoch < 0:
            if lists[0] is not None:
                self.fail(group_id, f"tasks for one who gets none: {response}")
            return
        self._hear(group_id, member_id)
        current = self.ledger.group(group_id).current.get(member_id)
        if current is None:
            self.fail(group_id, f"{member_id} was answered without an error, and isn't in the log")
        elif response.member_epoch != current.epoch:
            self.fail(group_id, f"{member_id} was told epoch {response.member_epoch}, the log says {current.epoch}")
        elif lists[0] is not None:
            if (told := Tasks(*map(tasks_of, lists))) != current.assigned:
                self.fail(group_id, f"{member_id} was told of {told}, the log says {current.assigned}")
        elif request.member_epoch == 0:
            self.fail(group_id, f"{member_id} has joined, and wasn't told its tasks")
        elif expecting is not None and not expecting.gone and expecting.target != current.assigned:
            self.fail(group_id, f"{expecting} isn't told of {current.assigned}, and believes {expecting.target}")
        if self.world.thorough == 1:
            self._check_statuses(self.ledger.group(group_id), member_id, response)

    def verdict(self, request: StreamsGroupHeartbeatRequest) -> set[ErrorCode]:
        """What may come of a heartbeat, as far as its epoch goes: to be asked before the coordinator is."""
        group = self.ledger.group(request.group_id)
        current, member = group.current.get(request.member_id), group.members.get(request.member_id)
        if request.member_epoch <= 0 or (member and request.instance_id not in (None, member.instance_id)):
            return set()
        if current is None:
            return {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND}
        if request.member_epoch == current.epoch:
            return {ErrorCode.NONE}
        lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
        if request.member_epoch != current.previous_epoch or request.member_epoch > current.epoch or None in lists:
            return {ErrorCode.FENCED_MEMBER_EPOCH}
        owned = Tasks(*map(tasks_of, lists))
        given = owned.active <= current.active and owned.active.union(*owned) <= current.all
        return {ErrorCode.NONE} if given else {ErrorCode.FENCED_MEMBER_EPOCH}

    def stray_epoch(self, group_id: str, member_id: str) -> int | None:
        """An epoch that a member of the group can't possibly have."""
        current = self.ledger.group(group_id).current.get(member_id)
        if current is None or current.epoch < 0:
            return None
        return self.world.rng.choice([current.epoch + 1, current.epoch + 7, max(1, current.previous_epoch - 1)])

    def _check_statuses(self, group: Group, member_id: str, response: StreamsGroupHeartbeatResponse) -> None:
        """A member is told what keeps it from working, and nothing else; a shutdown apart, which is forgotten."""
        if self.world.untold_topics or group.topology is None:
            return
        application = self.world.application(group.group_id, group.topology.epoch)
        stale = group.members[member_id].topology_epoch < group.topology.epoch
        problem = application.problem(self.world.topics)
        delayed = max(FIRST_EPOCH, group.assignment_epoch) != group.epoch and not any(group.current[member_id].assigned)
        expected = {STALE_TOPOLOGY} if stale else set()
        expected |= ({problem} if problem is not None else set()) | ({ASSIGNMENT_DELAYED} if delayed else set())
        told = {status.status_code for status in response.status or ()}
        if told - {SHUTDOWN_APPLICATION, MISSING_CLIENT_TAGS} != expected:
            self.fail(group.group_id, f"{member_id} was told {response.status}, where {expected} is true")

    def commit_answered(self, member: Member, task: TaskId, request: OffsetCommitRequest, code: ErrorCode) -> None:
        """An offset commit for a task was answered."""
        group = self.ledger.group(request.group_id)
        current = group.current.get(request.member_id)
        epoch = request.generation_id_or_member_epoch
        if code is ErrorCode.NONE:
            owners = group.owners.get(task, set())
            if current is None or epoch > current.epoch or (owners and request.member_id not in owners):
                self.fail(request.group_id, f"{member} committed for {task}, which is {owners}'s; its log: {current}")
        elif self.world.append_error is None and current is not None and epoch == current.epoch:
            self.fail(request.group_id, f"{member} couldn't commit for {task}: {code.name}")

    # Timeouts ---------------------------------------------------------------------------------------------------------

    def _hear(self, group_id: str, member_id: str) -> None:
        session = self._sessions.get((group_id, member_id))
        if session is None:
            session = self._sessions[group_id, member_id] = Session(self.world.now)
        session.last_heartbeat = session.maybe_last_heartbeat = self.world.now
        self._watch(group_id, member_id, session)

    def _watch(self, group_id: str, member_id: str, session: Session) -> None:
        if not session.watched:
            session.watched = True
            heapq.heappush(self._deadlines, (self._latest(group_id, member_id, session), group_id, member_id))

    def _latest(self, group_id: str, member_id: str, session: Session) -> int:
        """When the member must be gone, if nothing is heard of it."""
        latest = session.maybe_last_heartbeat + self.world.settings_of(group_id).session_timeout_ms
        if session.revocation_told is None:
            return latest
        member = self.ledger.group(group_id).members[member_id]
        return min(latest, session.revocation_told[1] + member.rebalance_timeout_ms)

    def check_deadlines(self) -> None:
        """No member outlives its session timeout, or its rebalance timeout."""
        now = self.world.now
        while self._deadlines and self._deadlines[0][0] <= now:
            _, group_id, member_id = heapq.heappop(self._deadlines)
            session = self._sessions.get((group_id, member_id))
            if session is None:
                continue
            session.watched = False
            if self._latest(group_id, member_id, session) > now:
                self._watch(group_id, member_id, session)
            elif self.world.up and not self.world.counts["failed appends"]:
                last = session.last_heartbeat - self.world.start
                self.fail(group_id, f"{member_id}, whose last heartbeat was at {last}, is there still")

    def was_heard_of(self, group_id: str, member_id: str) -> bool:
        """Whether a member has sent a heartbeat since the coordinator was started."""
        session = self._sessions.get((group_id, member_id))
        return session is not None and session.last_heartbeat > self._started

    def started(self) -> None:
        """A coordinator has loaded the log: the timeouts of its members start over."""
        self.state_reuse.restarted()
        self._started = self.world.now
        self._deadlines.clear()
        for (group_id, member_id), session in self._sessions.items():
            session.last_heartbeat = session.maybe_last_heartbeat = self.world.now
            session.revocation_told = session.revocation_told and (self.world.now, self.world.now)
            session.watched = False
            self._watch(group_id, member_id, session)

    # Steps ------------------------------------------------------------------------------------------------------

    def stepped(self, cause: StreamsGroupHeartbeatRequest | None) -> None:
        """A step was persisted; `cause` is the heartbeat that led to it, if one did."""
        ledger = self.ledger
        if not ledger.touched and not ledger.placed:
            return
        members, ledger.touched = ledger.touched, {}
        for group_id in ledger.placed:
            self.state_reuse.decided(ledger.group(group_id), self._before)
        tasks: dict[str, set[TaskId]] = {}
        for group_id in dict.fromkeys([*(group_id for group_id, _ in members), *ledger.placed]):
            self._check_epochs(ledger.group(group_id))
        for group_id, member_id in members:
            tasks.setdefault(group_id, set()).update(ledger.group(group_id).index(member_id))
        for group_id, member_id in members:
            self._check_member(ledger.group(group_id), member_id, cause)
        for group_id, touched in tasks.items():
            self._check_exclusion(ledger.group(group_id), touched, members)
            self._check_limits(ledger.group(group_id))
        placed, ledger.placed = ledger.placed, {}
        for group_id in placed:
            self.world.placement_checks.placed(ledger.group(group_id))

    def _check_epochs(self, group: Group) -> None:
        before, epochs = self._epochs.get(group.group_id, (-1, -1)), (group.epoch, group.assignment_epoch)
        self._epochs[group.group_id] = epochs
        if group.epoch != -1 and (epochs < before or epochs[1] < before[1] or epochs[1] > epochs[0]):
            self.fail(group.group_id, f"group and assignment epoch {epochs} after {before}")

    def _check_exclusion(self, group: Group, tasks: set[TaskId], members: dict[tuple[str, str], None]) -> None:
        for task in tasks:
            if len(owners := group.owners.get(task, ())) > 1:
                self.fail(group.group_id, f"{task} has owners in the log: {owners}")
        for group_id, member_id in members:
            if group_id == group.group_id and member_id in group.current:
                process = group.members[member_id].process_id
                for task in group.current[member_id].all:
                    if len(copies := group.copies[process, task]) > 1:
                        self.fail(group_id, f"{task} is in process {process} more than once: {copies}")

    def _check_limits(self, group: Group) -> None:
        """There are no more members than the group may have, and no more warm-ups than it ever could have.

        What is left of an older topology doesn't count: it is being given up.
        """
        settings = self.world.settings_of(group.group_id)
        if len(group.current) > settings.max_size:
            self.fail(group.group_id, f"{len(group.current)} members of at most {settings.max_size}")
        most = max(self._most_warmups.get(group.group_id, 0), settings.num_warmup_replicas)
        self._most_warmups[group.group_id] = most
        epoch = group.topology.epoch if group.topology is not None else -1
        able = (one for name, one in group.current.items() if group.members[name].topology_epoch == epoch)
        warmups = sum(len(one.assigned.warmup | one.pending.warmup) for one in able)
        if warmups > most:
            self.fail(group.group_id, f"{warmups} warm-ups of at most {most}")

    def _check_member(self, group: Group, member_id: str, cause: StreamsGroupHeartbeatRequest | None) -> None:
        name = (group.group_id, member_id)
        current, before = group.current.get(member_id), self._before.get(name)
        if current is None:
            if before is not None:
                del self._before[name]
                self._check_removal(group, member_id, before, cause)
                del self._sessions[name]
                self.void.add(member_id)
                self.state_reuse.gone(*name)
            return
        self._before[name] = current
        if before is None:
            self._hear(*name)
        session = self._sessions[name]
        if current.state != UNREVOKED:
            session.revocation_told = None
        else:
            told, again = session.revocation_told, before and before.epoch == current.epoch
            first = told[0] if told and again else self.world.now
            session.revocation_told = first, self.world.now
            session.watched = False  # the deadline may be earlier now
            self._watch(*name, session)
        if current.epoch > max(FIRST_EPOCH, group.assignment_epoch) or (
            current.epoch < 0 and current.epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH
        ):
            self.fail(group.group_id, f"{member_id} at {current.epoch}, assignment epoch {group.assignment_epoch}")
        if before and current.epoch < before.epoch and cause and cause.member_epoch > 0:
            self.fail(group.group_id, f"{member_id} went back from {before.epoch} to {current.epoch}")
        member = self.world.members.get(member_id)
        if member is not None and member_id not in self.void and member.held:
            self._check_held(member)
        for task in current.assigned.active:
            owner = self._last_owner.get((group.group_id, task))
            if owner != member_id:
                self._last_owner[group.group_id, task] = member_id
                self.moves[group.group_id] += owner is not None
        self.state_reuse.changed(group, member_id, before, current)

    def _check_removal(
        self, group: Group, member_id: str, current: Current, cause: StreamsGroupHeartbeatRequest | None
    ) -> None:
        now = self.world.now
        if cause is None:
            session = self._sessions[group.group_id, member_id]
            expired = now >= session.last_heartbeat + self.world.settings_of(group.group_id).session_timeout_ms
            timeout = self.world.rebalance_timeouts[member_id]
            late = session.revocation_told is not None and now >= session.revocation_told[0] + timeout
            legal = expired or late
        elif cause.member_id == member_id:
            legal = cause.member_epoch < 0
        else:
            legal = (
                cause.member_epoch == 0
                and cause.instance_id is not None
                and current.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
            )
        if not legal:
            self.fail(group.group_id, f"{member_id}, at {current.epoch}, was removed; cause: {cause}")
