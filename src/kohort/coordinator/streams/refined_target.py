"""The refined target, to which members are reconciled: tasks stay with their state until a warm-up has caught up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kohort.coordinator.streams.draft import Draft
from kohort.streams.tasks import Role, TaskId
from kohort.streams.warmups import CurrentMember, Refined, refine


def refine_target(draft: Draft, *, eager: bool) -> None:
    """Refines the target at the draft's assignment epoch, if that is due.

    The refined target of an epoch holds for all of that epoch: members that have reached it don't look again. So a
    change of it, even one because a restart forgot it, takes a new epoch, though the target stays.

    Args:
        draft: the group, with its latest target.
        eager: there is something new on a task that is moving, so this doesn't wait until all members are reconciled.
    """
    soft = draft.soft
    if soft.refined is not None and soft.refined_epoch == draft.assignment_epoch:
        if not soft.refinement_stale or draft.assignment_epoch != draft.epoch or not (eager or draft.group.reconciled):
            return
        before: Mapping[str, Mapping[TaskId, Role]] = soft.refined.tasks
    else:
        before = {
            member_id: current.assigned
            for member_id, (_, current) in draft.members().items()
            if current.is_reconciled_to(draft.assignment_epoch)
        }
    refinement = _refine(draft)
    if any(refinement.tasks.get(member_id, {}) != tasks for member_id, tasks in before.items()):
        if draft.assignment_epoch != draft.epoch:
            return  # a new target is on its way, so what was forgotten isn't needed
        draft.bump(f"tasks can move on, {len(refinement.moving)} still can't")
        draft.put_assignment_epoch()
    draft.soft = replace(soft, refined=refinement, refined_epoch=draft.assignment_epoch, refinement_stale=False)


def refined_tasks(draft: Draft, member_id: str) -> Mapping[TaskId, Role] | None:
    """Returns a member's tasks in the refined target of the draft's assignment epoch; None while that is forgotten."""
    soft = draft.soft
    if soft.refined is None or soft.refined_epoch != draft.assignment_epoch:
        return None
    return soft.refined.tasks.get(member_id, {})


def hand_over(draft: Draft, before: str, after: str, *, goes_on: bool) -> None:
    """Gives a static member that is back, perhaps under another id, its part of the refined target, if it goes on."""
    if (refined := draft.soft.refined) is not None:
        tasks = dict(refined.tasks)
        was = tasks.pop(before, {})
        tasks[after] = was if goes_on else {}
        draft.soft = replace(draft.soft, refined=replace(refined, tasks=tasks))


def _refine(draft: Draft) -> Refined:
    members = draft.members()
    configured = draft.soft.configured
    epoch = draft.topology.epoch if draft.topology is not None else 0

    def present(member_id: str) -> CurrentMember:
        metadata, current = members[member_id]
        process = metadata.process_id or member_id
        if metadata.topology_epoch == epoch:
            return CurrentMember(process, current.assigned, current.revoking)
        # Tasks of the same names are others in an older topology; but its warm-ups take up slots.
        return CurrentMember(process, {}, {**current.assigned, **current.revoking})

    return refine(
        {member_id: draft.target(member_id) for member_id in members},
        {member_id: present(member_id) for member_id in members},
        draft.soft.offsets,
        () if configured is None else {each.id for each in configured.subtopologies.values() if each.state_stores},
        draft.settings.num_warmup_replicas,
        draft.settings.acceptable_recovery_lag,
    )
