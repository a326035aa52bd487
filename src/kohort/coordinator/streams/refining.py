"""What members are reconciled to: the target, but for tasks that stay where their state is until it is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kohort.coordinator.placement.model import Task
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.roles import Role
from kohort.coordinator.streams.warmups import Holder, Refined, refine

__all__ = ["hand_over", "refine_further", "refined"]


def refined(draft: Draft, member_id: str) -> Mapping[Task, Role]:
    """What a member is to have at the draft's assignment epoch."""
    group = draft.group
    if group.refined is None or group.refined_epoch != draft.assignment_epoch:
        group.refined, group.refined_epoch = _refine(draft), draft.assignment_epoch
        group.refine_again = False
    return group.refined.tasks.get(member_id, {})


def refine_further(draft: Draft, *, eager: bool) -> bool:
    """See whether tasks can move on, now that the group is as it is; if so, that is for a new epoch.

    The target stays; but members move with epochs, so a change of what they are to have needs one.

    Args:
        draft: the group.
        eager: something was heard of a task that is moving, so this isn't put off until all members have come along.
    """
    group = draft.group
    if not group.refine_again or draft.assignment_epoch != draft.epoch or not (eager or group.reconciled):
        return False
    group.refine_again = False
    anew = _refine(draft)
    if group.refined is not None and group.refined_epoch == draft.assignment_epoch:
        before: Mapping[str, Mapping[Task, Role]] = group.refined.tasks
    else:  # after a restart: those who have reached the epoch have what they were to have
        before = {
            member_id: standing.assigned
            for member_id, (_, standing) in draft.members().items()
            if standing.reached(draft.assignment_epoch)
        }
    if all(anew.tasks.get(member_id, {}) == tasks for member_id, tasks in before.items()):
        group.refined, group.refined_epoch = anew, draft.assignment_epoch
        return False
    draft.bump(f"tasks can move on, {len(anew.moving)} still can't")
    draft.put_assignment_epoch()
    group.refined, group.refined_epoch = anew, draft.assignment_epoch
    return True


def hand_over(group: StreamsGroup, before: str, after: str, *, goes_on: bool) -> None:
    """A static member is back, maybe under another id: what it was to have it is to have still, if it goes on."""
    if group.refined is not None:
        tasks = dict(group.refined.tasks)
        was = tasks.pop(before, {})
        tasks[after] = was if goes_on else {}
        group.refined = replace(group.refined, tasks=tasks)


def _refine(draft: Draft) -> Refined:
    members = draft.members()
    configured = draft.group.configured
    return refine(
        {member_id: draft.target(member_id) for member_id in members},
        {
            member_id: Holder(metadata.process_id or member_id, standing.assigned, standing.revoking)
            for member_id, (metadata, standing) in members.items()
        },
        draft.group.offsets,
        () if configured is None else {each.id for each in configured.subtopologies.values() if each.state_stores},
        draft.settings.num_warmup_replicas,
        draft.settings.acceptable_recovery_lag,
    )
