"""The target assignment: which members have which of the partitions that are initialized."""

from __future__ import annotations

import logging
from uuid import UUID

from kohort.coordinator.assignors import SHARE_ASSIGNORS, GroupSpec, MemberSpec
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.share.draft import Draft
from kohort.coordinator.share.member import Role

log = logging.getLogger(__name__)


def update_target(draft: Draft, names: frozenset[str], cluster: Cluster) -> None:
    """Brings the target up to the group's epoch, unless the latest was made too short a while ago.

    A target that gives nothing to anybody doesn't count: a group's first partitions are assigned as soon as they are
    initialized. A heartbeat after that while makes a target that is due.

    Args:
        names: the topics that members subscribe to.
    """
    if draft.assignment_epoch >= draft.epoch:
        return
    if draft.has_target_of_late(draft.settings.assignment_interval_ms):
        empty = not any(draft.target(member_id) for member_id in draft.members())
        if not (empty and assignment_pending(draft, names, cluster)):
            return
    members = draft.members()
    ids: dict[str, UUID] = {}
    partitions_of: dict[UUID, int] = {}
    for name in {name for metadata, _ in members.values() for name in metadata.topics}:
        topic_id, partitions = cluster.topic_id(name), cluster.partitions(name)
        if topic_id is not None and partitions is not None:
            ids[name] = topic_id
            partitions_of[topic_id] = partitions
    assigned = SHARE_ASSIGNORS[draft.settings.assignors[0]](
        GroupSpec(
            {
                member_id: MemberSpec(
                    frozenset(ids[name] for name in metadata.topics if name in ids),
                    frozenset(draft.target(member_id)),
                    rack=metadata.rack_id,
                )
                for member_id, (metadata, _) in members.items()
            },
            partitions_of,
            draft.states.assignable,
        )
    )
    log.info("partitions assigned group=%s epoch=%d members=%d", draft.group_id, draft.epoch, len(members))
    draft.put_targets({member_id: dict.fromkeys(places, Role.SHARED) for member_id, places in assigned.items()})


def assignment_pending(draft: Draft, names: frozenset[str], cluster: Cluster) -> bool:
    """Whether other partitions of subscribed topics are initialized than the target has. O(partitions assigned)."""
    wanted = {
        (topic_id, partition)
        for topic_id, each in draft.states.initialized.items()
        if each.name in names and cluster.topic_id(each.name) == topic_id
        for partition in each.partitions
        if partition < (cluster.partitions(each.name) or 0)
    }
    if not wanted:
        return False
    topics = {topic_id for topic_id, _ in wanted}
    targets = (draft.target(member_id) for member_id in draft.members())
    return wanted != {(place.topic_id, place.partition) for target in targets for place in target if place[0] in topics}
