"""What a member doesn't know yet: whether its next heartbeat would bring it something.

Whatever counts as news is gone once the member has sent that heartbeat, or members would ask for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.next_assignment import next_assignment
from kohort.coordinator.streams.statuses import statuses


class Known(NamedTuple):
    """What a member knows.

    Attributes:
        version: of its heartbeats.
        endpoint_epoch: of the map of endpoints that it has.
        status_codes: of its statuses.
    """

    member_id: str
    version: int
    endpoint_epoch: int
    status_codes: frozenset[int]


def has_news(draft: Draft, known: Known) -> bool:
    """Whether a member would get a new assignment, other statuses or a new map of endpoints; or is a member no more.

    Args:
        draft: the group, without changes.
    """
    member = draft.group.members.get(known.member_id)
    if member is None:
        return True
    current, metadata = member.current, member.metadata
    process = metadata.process_id or known.member_id
    if next_assignment(draft, known.member_id, process, current, None, {known.member_id}) is not current:
        return True
    codes = {status.status_code for status in statuses(draft, metadata, current.assigned, known.version)}
    return codes != known.status_codes or _has_new_endpoints(draft, known)


def can_move_on(draft: Draft) -> bool:
    """Whether the group waits for a heartbeat of any member to look again at which tasks can move (`refine_target`)."""
    soft = draft.soft
    return (
        soft.refined is not None
        and soft.refinement_stale
        and soft.refined_epoch == draft.assignment_epoch == draft.epoch
        and draft.group.reconciled
    )


def _has_new_endpoints(draft: Draft, known: Known) -> bool:
    """While tasks move the map changes again and again: it is worth a heartbeat of its own once they have."""
    soft = draft.soft
    if soft.configured is None or not draft.group.reconciled:
        return False
    return soft.endpoints_stale or soft.endpoint_epoch != known.endpoint_epoch
