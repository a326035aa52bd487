"""The target assignment: has tasks placed, and makes the placement the group's target."""

from __future__ import annotations

import logging
from dataclasses import replace

from kohort.coordinator.placement import model
from kohort.coordinator.placement.model import Placement
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import PlacementJob, Placer
from kohort.streams.tasks import Role, TaskId

log = logging.getLogger(__name__)

_FALLBACK = "sticky"


class TargetUpdater:
    """Updates targets.

    Args:
        placer: places tasks, now or later.
    """

    def __init__(self, placer: Placer) -> None:
        self._placer = placer

    def update(self, draft: Draft) -> None:
        """Brings the target up to the group's epoch, or starts a placement job for it, or has a timer do so.

        There is one job at a time: the placement of one that is out of date is dropped, and the next job begins. A
        target that was made a short while ago has to last for the assignment interval.
        """
        if draft.assignment_epoch == draft.epoch or draft.soft.delayed or not draft.members():
            return
        configured = draft.soft.configured
        if configured is None:
            return  # a change of topics couldn't be recorded; the next heartbeat detects it
        if not configured.ready:
            draft.put_targets({})
        elif draft.waits_for_interval:
            _place_at(draft, draft.assigned_at + draft.settings.assignment_interval_ms)
        elif draft.soft.job is None:
            job = self._job(draft)
            try:
                placement = self._placer(job)
            except Exception:
                log.exception("placement failed group=%s epoch=%d", job.group_id, job.group_epoch)
                placement = self._fall_back(job)
            if placement is None:
                draft.soft = replace(draft.soft, job=job)
            else:
                self.set_target(draft, placement)

    def placed(self, draft: Draft, job: PlacementJob, placement: Placement | None) -> None:
        """Takes the placement of the group's job, which is done; None if it failed."""
        members = draft.members()
        if job.group_epoch != draft.epoch or any(member.id not in members for member in job.group.members):
            log.info("placement dropped group=%s epoch=%d now=%d", job.group_id, job.group_epoch, draft.epoch)
            self.update(draft)
            return
        if placement is None:
            log.error("placement failed group=%s epoch=%d", job.group_id, job.group_epoch)
            placement = self._fall_back(job)
        self.set_target(draft, placement)

    def set_target(self, draft: Draft, placement: Placement) -> None:
        log.info("tasks placed group=%s epoch=%d tasks=%d", draft.group.group_id, draft.epoch, len(placement.active))
        draft.put_targets(placement.by_member())
        draft.soft = replace(draft.soft, placed_for=draft.soft.configured)

    def _fall_back(self, job: PlacementJob) -> Placement:
        log.warning("falling back to another assignor group=%s assignor=%s", job.group_id, _FALLBACK)
        return replace(job, assignor=_FALLBACK).run()

    def _job(self, draft: Draft) -> PlacementJob:
        """Returns a job with the assignor's input, without members whose topology isn't the group's."""
        settings, soft = draft.settings, draft.soft
        topology, configured = draft.topology, soft.configured
        assert topology is not None and configured is not None
        members = draft.members()
        described = tuple(
            model.Member(
                id=member_id,
                process=metadata.process_id or member_id,
                tags=metadata.tags,
                active=frozenset(task for task, role in current.assigned.items() if role is Role.ACTIVE),
                standby=frozenset(task for task, role in current.assigned.items() if role is not Role.ACTIVE),
            )
            for member_id, (metadata, current) in members.items()
            if metadata.topology_epoch == topology.epoch
        )

        def tails(member_id: str, task: TaskId) -> bool:
            return member_id in members and task in members[member_id][1].assigned

        return PlacementJob(
            draft.group.group_id,
            draft.epoch,
            settings.assignor_name,
            model.Group(
                subtopologies=tuple(
                    model.SubtopologyTasks(each.id, each.tasks, each.state_stores)
                    for each in configured.subtopologies.values()
                ),
                members=described,
                standbys=settings.num_standby_replicas,
                rack_tags=settings.rack_aware_assignment_tags,
                lags=soft.offsets.lags(tails),
                ends=soft.offsets.ends,
                acceptable_lag=settings.acceptable_recovery_lag,
            ),
        )


def _place_at(draft: Draft, at: int) -> None:
    """Has a timer place the tasks, at the latest then."""
    if draft.soft.placement_at is None or draft.soft.placement_at > at:
        draft.soft = replace(draft.soft, placement_at=at)
