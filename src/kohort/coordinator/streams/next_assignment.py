"""What a member would be assigned next, on its way to its part of the refined target."""

from __future__ import annotations

from collections.abc import Container, Mapping

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.reconciliation import reconcile
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.reconciliation_rules import RULES
from kohort.coordinator.streams.refined_target import refined_tasks
from kohort.streams.tasks import Role, TaskId


def next_assignment(
    draft: Draft,
    member_id: str,
    process: str,
    current: CurrentAssignment[TaskId, Role],
    owned: Mapping[TaskId, Role] | None,
    selves: Container[str | None],
) -> CurrentAssignment[TaskId, Role]:
    """Returns a member's next assignment, or the same object if it can't move.

    Args:
        process: the process that it runs in.
        current: its assignment now.
        owned: the tasks that it says it has; None if it doesn't say.
        selves: the ids of the member, now and before.
    """
    group, soft = draft.group, draft.soft
    outdated = draft.assignment_epoch != draft.epoch and not (
        draft.waits_for_interval and soft.placed_for is not None and soft.placed_for == soft.configured
    )

    def free(task: TaskId, role: Role) -> bool:
        if outdated:
            return False  # a new target is on its way, and may have this task elsewhere
        for holder, held in group.ownership.holders(task).items():
            if holder not in selves:
                other = group.members[holder].metadata.process_id or holder
                if other == process or (role is Role.ACTIVE and held is Role.ACTIVE):
                    return False
        return True

    wanted: Mapping[TaskId, Role] | None = refined_tasks(draft, member_id)
    if wanted is None:
        wanted = current.assigned
    return reconcile(current, wanted, draft.assignment_epoch, owned, free, RULES)
