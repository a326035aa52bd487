"""What members are reconciled to: the target, but for tasks that stay where their state is until it is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.warmups import Holder, Refined, refine
from kohort.streams.tasks import Role, TaskId

__all__ = ["hand_over", "refined", "settle"]


def settle(draft: Draft, *, eager: bool) -> None:
    """Work out what members are to have at the draft's assignment epoch, and whether tasks can move on.

    What was worked out for an epoch holds as long as that is the epoch: members that have reached it don't look again.
    So whatever changes it, be it that it was forgotten in a restart, is for a new epoch, though the target stays.

    Args:
        draft: the group, with the target that it has by now.
        eager: something was heard of a task that is moving, so this isn't put off until all members have come along.
    """
    group = draft.group
    if group.refined is not None and group.refined_epoch == draft.assignment_epoch:
        if not group.refine_again or draft.assignment_epoch != draft.epoch or not (eager or group.reconciled):
            return
        before: Mapping[str, Mapping[TaskId, Role]] = group.refined.tasks
    else:
        before = {
            member_id: current.assigned
            for member_id, (_, current) in draft.members().items()
            if current.is_reconciled_to(draft.assignment_epoch)
        }
    anew = _refine(draft)
    if any(anew.tasks.get(member_id, {}) != tasks for member_id, tasks in before.items()):
        if draft.assignment_epoch != draft.epoch:
            return  # what was forgotten need not be known: a new target is on its way
        draft.bump(f"tasks can move on, {len(anew.moving)} still can't")
        draft.put_assignment_epoch()
    group.refine_again = False
    group.refined, group.refined_epoch = anew, draft.assignment_epoch


def refined(draft: Draft, member_id: str) -> Mapping[TaskId, Role] | None:
    """What a member is to have at the draft's assignment epoch; None while that is forgotten."""
    group = draft.group
    if group.refined is None or group.refined_epoch != draft.assignment_epoch:
        return None
    return group.refined.tasks.get(member_id, {})


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
    epoch = draft.topology.epoch if draft.topology is not None else 0

    def holder(member_id: str) -> Holder:
        metadata, current = members[member_id]
        process = metadata.process_id or member_id
        if metadata.topology_epoch == epoch:
            return Holder(process, current.assigned, current.revoking)
        # What a member of an older topology has under the same names is something else; but it takes up its slots.
        return Holder(process, {}, {**current.assigned, **current.revoking})

    return refine(
        {member_id: draft.target(member_id) for member_id in members},
        {member_id: holder(member_id) for member_id in members},
        draft.group.offsets,
        () if configured is None else {each.id for each in configured.subtopologies.values() if each.state_stores},
        draft.settings.num_warmup_replicas,
        draft.settings.acceptable_recovery_lag,
    )
