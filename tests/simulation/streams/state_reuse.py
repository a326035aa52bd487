"""State is reused: no task starts from nothing while a copy of it has caught up.

What is known of a copy is what its member has reported; what is true of it is in the simulated disks. A violation needs
both: a copy that has caught up, and is known to, isn't used, for another that hasn't, and isn't known to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.streams.ledger import Current, Group
from tests.simulation.streams.member import Member, Tasks

if TYPE_CHECKING:
    from tests.simulation.streams.world import StreamsWorld


class Decision(NamedTuple):
    """What was known when a group came to its epoch.

    Attributes:
        settings: how it was configured.
        lags: of the copies that members had.
        on_disk: lags of the copies in their processes.
        silent: members that were heard of, and have reported nothing: an older client for all that is known.
    """

    settings: StreamsSettings
    lags: dict[tuple[str, TaskId], int]
    on_disk: dict[tuple[str, TaskId], int]
    silent: set[str]


class StateReuse:
    """Watches the copies of stateful tasks in groups with warm-ups whose members all report offsets."""

    def __init__(self, world: StreamsWorld) -> None:
        self.world = world
        self._offsets: dict[tuple[str, str], dict[TaskId, int]] = {}
        self._ends: dict[tuple[str, str], dict[TaskId, int]] = {}
        self._decided: dict[str, Decision] = {}
        self._topologies: dict[str, int] = {}

    def reported(self, request: StreamsGroupHeartbeatRequest) -> None:
        """A member was heard of, and may have reported offsets: those of another topology than the group's don't count.

        Tasks of a new topology may be something else than those of the same names.
        """
        group_id, member_id = request.group_id, request.member_id
        group = self.world.checker.ledger.group(group_id)
        assert group.topology is not None
        if self._topologies.get(group_id) != group.topology.epoch:
            self._topologies[group_id] = group.topology.epoch
            for name in group.members:
                self.gone(group_id, name)
        told = (request.task_offsets, request.task_end_offsets)
        if told != (None, None) and group.members[member_id].topology_epoch != group.topology.epoch:
            self.gone(group_id, member_id)
            return
        for reports, offsets in zip((self._offsets, self._ends), told, strict=True):
            if offsets is not None:
                reports[group_id, member_id] = {TaskId(of.subtopology_id, of.partition): of.offset for of in offsets}

    def reports(self, group_id: str) -> Iterator[tuple[str, TaskId, int]]:
        """What members have reported of copies: process, task and offset."""
        members = self.world.checker.ledger.group(group_id).members
        for (of_group, name), offsets in self._offsets.items():
            if of_group == group_id and name in members:
                for task, offset in offsets.items():
                    yield members[name].process_id, task, offset

    def end(self, group_id: str, task: TaskId) -> int | None:
        """The largest end of a task's changelog that somebody has reported."""
        ends = (ends[task] for (of_group, _), ends in self._ends.items() if of_group == group_id and task in ends)
        return max(ends, default=None)

    def decided(self, group: Group, before: dict[tuple[str, str], Current]) -> None:
        """A group has come to a new epoch, going by what is known now, and by what members had before the step."""
        if self.world.thorough > 1:
            return
        group_id = group.group_id
        lags: dict[tuple[str, TaskId], int] = {}
        for name in group.current:
            held = before[group_id, name].assigned if (group_id, name) in before else Tasks()
            offsets, ends = self._offsets.get((group_id, name), {}), self._ends.get((group_id, name), {})
            for task in offsets.keys() & held.active.union(*held):
                end = ends.get(task, self.end(group_id, task))
                if end is not None:
                    lags[name, task] = end - offsets[task]
        on_disk = {(group.members[name].process_id, task): lag for (name, task), lag in lags.items()}
        for process, task, offset in self.reports(group_id):
            end = self.end(group_id, task)
            if end is not None:
                on_disk[process, task] = min(end - offset, on_disk.get((process, task), end))
        silent = {name for name in group.current if (group_id, name) not in self._offsets}
        known = {name for name in silent if self.world.checker.was_heard_of(group_id, name)}
        self._decided[group_id] = Decision(self.world.settings_of(group_id), lags, on_disk, known)

    def gone(self, group_id: str, member_id: str) -> None:
        """A member isn't in the group any more."""
        self._offsets.pop((group_id, member_id), None)
        self._ends.pop((group_id, member_id), None)

    def restarted(self) -> None:
        """The coordinator has forgotten what was reported, and decides anew how members get to their targets."""
        self._decided.clear()
        self._offsets.clear()
        self._ends.clear()

    def changed(self, group: Group, member_id: str, before: Current | None, after: Current) -> None:
        """What a member has is different now."""
        decision, member = self._decided.get(group.group_id), self.world.members.get(member_id)
        settings = self.world.settings_of(group.group_id)
        if decision is None or member is None or decision.settings is not settings:
            return
        if settings.num_warmup_replicas == 0 or not self._all_report(group):
            return
        had = before.assigned if before is not None else Tasks()
        for task in after.assigned.active - had.active:
            if member_id in decision.silent or self._may_be_caught_up(group, member, task):
                continue
            if member.is_stateful(task):
                self._check_passed_over(group, task, member)
        for task in had.active.union(*had) - after.assigned.active.union(*after.assigned):
            if member.is_stateful(task) and self._is_caught_up(group, member, task, task in had.active):
                self._check_given_up(group, task, member)

    def _all_report(self, group: Group) -> bool:
        assert group.topology is not None
        epoch, members = group.topology.epoch, (self.world.members.get(name) for name in group.current)
        return all(member and member.habits.reports and member.application.epoch == epoch for member in members)

    def _check_passed_over(self, group: Group, task: TaskId, member: Member) -> None:
        """A task was given to one who has to restore it: nobody else has."""
        for other in self._holders(group, task):
            runs = task in group.current[other.member_id].active
            if other is not member and self._is_caught_up(group, other, task, runs):
                raise InvariantError(f"at {self.world.elapsed}: {member} got {task} cold; {other} is caught up")

    def _check_given_up(self, group: Group, task: TaskId, member: Member) -> None:
        """A caught-up copy was given up: there is another, if only on the disk of who is to run the task.

        What goes from one member to another of the same process isn't given up. While the next target is awaited, the
        copy that this one counts on may have gone with its member.
        """
        if group.assignment_epoch != group.epoch:
            return
        heirs = [name for name, tasks in group.target.items() if task in tasks.active.union(*tasks)]
        heir = next((name for name in heirs if task in group.target[name].active), None)
        if (
            heir is None
            or heir in self._decided[group.group_id].silent
            or any(group.members[name].process_id == member.process_id for name in heirs)
        ):
            return
        if any(task in current.active for name, current in group.current.items() if name != member.member_id):
            return  # somebody runs it, for all that is known
        others = [other for other in self._holders(group, task) if other is not member]
        if heir in self.world.members:
            others.append(self.world.members[heir])
        if not any(self._may_be_caught_up(group, other, task) for other in others):
            raise InvariantError(f"at {self.world.elapsed}: {member} gives up {task}, which is caught up nowhere else")

    def _holders(self, group: Group, task: TaskId) -> list[Member]:
        """The members that have a task and keep it."""
        names = (name for name, current in group.current.items() if any(task in tasks for tasks in current.assigned))
        return [member for name in names if (member := self.world.members.get(name)) is not None]

    def _is_caught_up(self, group: Group, member: Member, task: TaskId, runs: bool) -> bool:
        """Whether a member's copy is caught up, and was known to be so when it was decided what becomes of it."""
        decision = self._decided[group.group_id]
        lag = 0 if runs else decision.lags.get((member.member_id, task))
        acceptable = decision.settings.acceptable_recovery_lag
        return lag is not None and lag <= acceptable and self._truth(member, task, acceptable)

    def _may_be_caught_up(self, group: Group, member: Member, task: TaskId) -> bool:
        """Whether the copy in a member's process is caught up, or is or was known to be."""
        decision = self._decided[group.group_id]
        acceptable = decision.settings.acceptable_recovery_lag
        was = decision.on_disk.get((member.process_id, task))
        if self._truth(member, task, acceptable) or (was is not None and was <= acceptable):
            return True
        own_end = self._ends.get((group.group_id, member.member_id), {}).get(task)
        end = self.end(group.group_id, task) if own_end is None else own_end
        return end is not None and any(
            end - offset <= acceptable
            for process, of, offset in self.reports(group.group_id)
            if (process, of) == (member.process_id, task)
        )

    def _truth(self, member: Member, task: TaskId, acceptable: int) -> bool:
        copy = member.process.disk.get(task)
        return copy is not None and not member.gone and copy.lag(self.world.now) <= acceptable
