"""Checks of placements: of the right group, complete, balanced, and with the least movement."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.coordinator.placement import sticky
from kohort.coordinator.placement.metrics import Metrics, measure
from kohort.coordinator.placement.model import Placement, SubtopologyTasks
from kohort.coordinator.streams.environment import PlacementJob
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.streams.ledger import Group
from tests.simulation.streams.member import Tasks

if TYPE_CHECKING:
    from tests.simulation.streams.world import StreamsWorld

TRIED = 256  # placements that are tried one by one, at most, to see whether one is better


@dataclass
class Request:
    """A job that was asked for in the step under way, with what the log said before it."""

    job: PlacementJob
    settings: StreamsSettings
    held: dict[str, Tasks]
    instances: dict[tuple[str | None, int], str]
    lags: set[tuple[str, TaskId]]


class PlacementChecks:
    """Watches the placement jobs of a world, and what becomes of them."""

    def __init__(self, world: StreamsWorld) -> None:
        self.world = world
        self._asked: list[Request] = []
        self._solved: list[tuple[PlacementJob, Placement]] = []
        self._placements: dict[str, tuple[PlacementJob, Placement]] = {}

    def fail(self, job: PlacementJob, what: str) -> None:
        raise InvariantError(f"at {self.world.elapsed}, {job.group_id}, placement for {job.group_epoch}: {what}")

    def failed(self) -> None:
        """The step under way didn't get into the log, nor does what comes of its jobs."""
        self._asked.clear()
        self._solved.clear()
        self._placements.clear()

    # What is asked for ------------------------------------------------------------------------------------------

    def asked(self, job: PlacementJob) -> None:
        """A job is asked for, whatever became of the one before it."""
        self._placements.pop(job.group_id, None)
        group = self.world.checker.ledger.group(job.group_id)
        held = {name: current.assigned for name, current in group.current.items()}
        instances = {(one.instance_id, one.topology_epoch): name for name, one in group.members.items()}
        self._asked.append(
            Request(job, self.world.settings_of(job.group_id), held, instances, self._lags(job.group_id))
        )

    def stepped(self) -> None:
        """The step that asked for jobs is in the log: were they asked for with what the log says?"""
        asked, self._asked = self._asked, []
        for each in asked:
            self._check_subtopologies(each)
            self._check_members(each)
            self._check_lags(each)
        solved, self._solved = self._solved, []
        for job, placement in solved:
            self._check_placement(job, placement)

    def _check_subtopologies(self, asked: Request) -> None:
        job, settings, placed = asked.job, asked.settings, asked.job.group
        topology = self.world.checker.ledger.group(job.group_id).topology
        assert topology is not None
        application = self.world.application(job.group_id, topology.epoch)
        expected = {
            part.id: SubtopologyTasks(part.id, application.partitions(part, self.world.topics), part.stores)
            for part in application.parts
        }
        found = {subtopology.id: subtopology for subtopology in placed.subtopologies}
        if found != expected and not self.world.untold_topics:
            self.fail(job, f"of subtopologies {placed.subtopologies} instead of {expected}")
        told = (placed.standbys, placed.acceptable_lag, placed.rack_tags, job.assignor)
        if told != (
            settings.num_standby_replicas,
            settings.acceptable_recovery_lag,
            settings.rack_aware_assignment_tags,
            settings.assignor_name,
        ):
            self.fail(job, f"with {told}, the settings are {settings}")

    def _check_members(self, asked: Request) -> None:
        """The members of the topology, each with what it has; or a static one's former self had."""
        job = asked.job
        group = self.world.checker.ledger.group(job.group_id)
        assert group.topology is not None
        members = {member.id: member for member in job.group.members}
        current = {name for name, one in group.members.items() if one.topology_epoch == group.topology.epoch}
        if members.keys() != current:
            self.fail(job, f"on {sorted(members)}, the log says {sorted(current)}")
        for name, member in members.items():
            stored = group.members[name]
            if member.process != stored.process_id or member.tags != {tag.key: tag.value for tag in stored.client_tags}:
                self.fail(job, f"{member}, the log says {stored}")
            held = asked.held.get(name)
            if held is None and stored.instance_id is not None:
                former = asked.instances.get((stored.instance_id, stored.topology_epoch), name)
                held = asked.held.get(former)
            held = held or Tasks()
            if (member.active, member.standby) != (held.active, (held.standby | held.warmup) - held.active):
                self.fail(job, f"{member}, the log says that it has {held}")

    def _check_lags(self, asked: Request) -> None:
        """All lags that were reported, and no others; a member that just left may have been the one who reported."""
        lags, known = asked.job.group.lags.keys(), self._lags(asked.job.group_id)
        if self.world.thorough == 1 and not known <= lags <= known | asked.lags:
            self.fail(asked.job, f"lags {lags}, reported are {known}")

    def _lags(self, group_id: str) -> set[tuple[str, TaskId]]:
        """The processes that tell how far a copy of theirs lags behind an end that somebody knows."""
        if self.world.thorough > 1:
            return set()
        coverage = self.world.checker.state_reuse
        reports = ((process, task) for process, task, _ in coverage.reports(group_id))
        return {(process, task) for process, task in reports if coverage.end(group_id, task) is not None}

    # What comes of it -------------------------------------------------------------------------------------------

    def solve(self, job: PlacementJob) -> Placement:
        """Do a job."""
        placement = job.run()
        self._placements[job.group_id] = job, placement
        self._solved.append((job, placement))
        return placement

    def _check_placement(self, job: PlacementJob, placement: Placement) -> None:
        metrics = measure(job.group, placement)
        if metrics.unplaced and job.group.members:
            self.fail(job, f"{metrics.unplaced} tasks are nowhere")
        if metrics.imbalance:
            self.fail(job, f"isn't balanced: {metrics}")
        self._check_standbys(job, placement)
        if job.assignor == "optimal":
            self.world.counts["moved"] += metrics.moved
            self._check_alternatives(job, placement, metrics)

    def _check_standbys(self, job: PlacementJob, placement: Placement) -> None:
        processes = {member.id: member.process for member in job.group.members}
        most = min(job.group.standbys, len(set(processes.values())) - 1)
        stores = {subtopology.id: subtopology.state_stores for subtopology in job.group.subtopologies}
        for task, member in placement.active.items():
            standbys = placement.standby.get(task, ())
            used = {processes[member], *(processes[standby] for standby in standbys)}
            if len(used) != 1 + len(standbys) or len(standbys) != (most if stores[task.subtopology] else 0):
                self.fail(job, f"{task} on {member} has standbys {standbys} of {most}")

    def _check_alternatives(self, job: PlacementJob, placement: Placement, metrics: Metrics) -> None:
        """No other placement moves less: not the one before it, not a greedy one, and no other if there are few."""
        group = job.group
        if not group.members or self.world.thorough > 1:
            return
        before = {task: member.id for member in group.members for task in member.active}
        tasks = [
            TaskId(subtopology.id, number)
            for subtopology in group.subtopologies
            for number in range(subtopology.partitions)
        ]
        names = [member.id for member in group.members]
        others = [sticky(group)]
        if before.keys() >= set(tasks):
            others.append(Placement({task: before[task] for task in tasks}))
        if len(names) ** len(tasks) <= TRIED:
            self.world.counts["exhausted"] += 1
            choices = itertools.product(names, repeat=len(tasks))
            others.extend(Placement(dict(zip(tasks, choice, strict=True))) for choice in choices)
        for other in others:
            if _is_better(measure(group, other), metrics):
                self.fail(job, f"{placement}, {metrics}, isn't as good as {other}, {measure(group, other)}")

    # What becomes of it -----------------------------------------------------------------------------------------

    def placed(self, group: Group) -> None:
        """A group has a target for a new epoch: what was placed for it, what it was before, or nothing at all."""
        ready = group.topology is not None and group.validated == group.topology.epoch
        if not ready and any(any(tasks) for tasks in group.target.values()) and group.assignment_epoch == group.epoch:
            raise InvariantError(f"at {self.world.elapsed}, {group.group_id} isn't ready, and has a target")
        if ready:
            self._check_complete(group)
        job, placement = self._placements.get(group.group_id, (None, None))
        self.world.counts["targets"] += 1
        if job is None or placement is None or job.group_epoch != group.assignment_epoch:
            return
        for name in group.members:
            active = frozenset(task for task, owner in placement.active.items() if owner == name)
            standby = frozenset(task for task, owners in placement.standby.items() if name in owners)
            if group.target.get(name, Tasks()) != Tasks(active, standby):
                self.fail(job, f"{name} was to have {active} and {standby}, its target is {group.target.get(name)}")

    def _check_complete(self, group: Group) -> None:
        """Each task is given to one member of the group."""
        assert group.topology is not None
        application = self.world.application(group.group_id, group.topology.epoch)
        given = sorted(task for name, tasks in group.target.items() if name in group.members for task in tasks.active)
        able = any(member.topology_epoch == application.epoch for member in group.members.values())
        if able and given != sorted(application.tasks(self.world.topics)) and not self.world.untold_topics:
            raise InvariantError(
                f"at {self.world.elapsed}, {group.group_id}: of all tasks {given} are given to members"
            )


def _is_better(one: Metrics, other: Metrics) -> bool:
    """Whether a placement is as balanced as another, and moves less; what has unlike units is not compared."""
    if one.imbalance or one.state_stores.spread > other.state_stores.spread:
        return False
    mine, theirs = one.restore, other.restore
    if mine.records <= theirs.records and mine.stores <= theirs.stores:
        less = mine.records < theirs.records or mine.stores < theirs.stores
        return less or one.moved < other.moved or one.state_stores.spread < other.state_stores.spread
    return False
