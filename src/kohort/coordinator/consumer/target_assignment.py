"""The target assignment: what an assignor makes of the members' subscriptions."""

from __future__ import annotations

import logging
from uuid import UUID

from kohort.coordinator.assignors import CONSUMER_ASSIGNORS, GroupSpec, MemberSpec
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.metadata_hash import metadata_hash
from kohort.coordinator.modern.partitions import ASSIGNED

log = logging.getLogger(__name__)


def topics_changed(draft: Draft, cluster: Cluster) -> bool:
    """Whether the topics that members subscribe to are others than at the latest bump; updates the metadata hash."""
    found = metadata_hash(draft.topic_names(), cluster)
    changed = found != draft.metadata_hash
    draft.metadata_hash = found
    return changed


def subscribed_ids(draft: Draft, metadata: ConsumerMetadata, cluster: Cluster) -> frozenset[UUID]:
    """The ids of the topics that a member subscribes to, as far as they exist."""
    ids = (cluster.topic_id(name) for name in draft.topic_names_of(metadata))
    return frozenset(topic_id for topic_id in ids if topic_id is not None)


def update_target(draft: Draft, cluster: Cluster) -> None:
    """Brings the target up to the group's epoch, unless the latest was made too short a while ago.

    A heartbeat after that while does it: until then, results aren't cached.
    """
    if draft.assignment_epoch >= draft.epoch or draft.is_empty():
        return
    if draft.has_target_of_late(draft.settings.assignment_interval_ms):
        return
    by_subscription: dict[tuple[tuple[str, ...], str | None], frozenset[UUID]] = {}
    members = {}
    for member_id, (metadata, _) in draft.members().items():
        subscription = metadata.topics, metadata.regex
        topics = by_subscription.get(subscription)
        if topics is None:
            topics = by_subscription[subscription] = subscribed_ids(draft, metadata, cluster)
        assigned = frozenset(draft.target(member_id))
        members[member_id] = MemberSpec(topics, assigned, metadata.instance_id, metadata.rack_id)
    partitions_of = {}
    for name in draft.topic_names():
        topic_id, partitions = cluster.topic_id(name), cluster.partitions(name)
        if topic_id is not None and partitions is not None:
            partitions_of[topic_id] = partitions
    offered = draft.settings.assignors
    assignor = draft.subscriptions.assignor(offered[0])
    if assignor not in offered:
        assignor = offered[0]
    targets = CONSUMER_ASSIGNORS[assignor](GroupSpec(members, partitions_of))
    log.info("partitions assigned group=%s epoch=%d assignor=%s", draft.group_id, draft.epoch, assignor)
    draft.put_targets({name: dict.fromkeys(partitions, ASSIGNED) for name, partitions in targets.items()})
