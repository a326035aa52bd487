"""Keeps a group's topology in step with what members say, with the topics that there are, and with its settings."""

from __future__ import annotations

import logging
from collections.abc import Collection

from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.environment import Cluster
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.internal_topics import ConfiguredTopology, configure, metadata_hash
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.streams.topology import Topology

__all__ = ["assignment_configs", "configure_group", "review", "take_topology", "uses"]

log = logging.getLogger(__name__)

_UNVALIDATED = -1


def take_topology(draft: Draft, topology: Topology) -> str | None:
    """A joining member runs this topology: is it the group's, an older one, or one to replace the group's with?

    Returns:
        Why the group's is another now; None if it isn't.

    Raises:
        KafkaError: INVALID_REQUEST; it has the epoch of the group's, but isn't the same.
    """
    known = draft.topology
    if known is None or topology.epoch > known.epoch:
        draft.put_topology(topology)
        draft.group.configured = None
        return f"topology {topology.epoch} was " + ("told" if known is None else f"put in place of {known.epoch}")
    if topology.epoch == known.epoch and topology != known:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The member's Topology differs from the group's, though both have epoch {known.epoch}."
            " Topology updates are not supported yet, unless they come with a higher epoch.",
        )
    return None


def review(draft: Draft, cluster: Cluster) -> list[str]:
    """See whether topics or settings have changed since the latest bump of the epoch; for what reasons it is due."""
    reasons = []
    if draft.topology is not None:
        configured = configure_group(draft.group, draft.topology, cluster)
        if draft.group.fingerprint != draft.metadata_hash:
            draft.metadata_hash = draft.group.fingerprint
            reasons.append("its topics changed")
        validated = configured.epoch if configured.ready else _UNVALIDATED
        if validated != draft.validated_topology_epoch:
            draft.validated_topology_epoch = validated
            problem = configured.problem
            reasons.append("its topics are in order" if problem is None else f"of its topics: {problem.detail}")
    configs = assignment_configs(draft.settings)
    if configs != draft.configs:
        draft.configs = configs
        reasons.append("its settings are " + ", ".join(f"{key}={value}" for key, value in configs.items()))
    return reasons


def configure_group(group: StreamsGroup, topology: Topology, cluster: Cluster) -> ConfiguredTopology:
    """What the topology of a group comes to; worked out only if the group doesn't know."""
    if group.configured is None or group.configured.epoch != topology.epoch:
        group.configured = configure(topology, cluster.partitions, cluster.matching)
        if problem := group.configured.problem:
            log.warning("group not ready group=%s status=%d because=%s", group.group_id, problem.code, problem.detail)
        before, group.fingerprint = group.fingerprint, metadata_hash(topology, cluster)
        if group.fingerprint != before:
            group.endpoints_changed()
    return group.configured


def assignment_configs(settings: StreamsSettings) -> dict[str, str]:
    """The settings that the target depends on, as records have them."""
    configs = {"num.standby.replicas": str(settings.num_standby_replicas)}
    if settings.rack_aware_assignment_tags:
        configs["rack.aware.assignment.tags"] = ",".join(settings.rack_aware_assignment_tags)
    return configs


def uses(group: StreamsGroup, names: Collection[str]) -> bool:
    """Whether a group's tasks may depend on any of these topics; patterns may match anything."""
    topology = group.topology
    return topology is not None and (
        bool(topology.source_patterns) or any(name in topology.required_topics for name in names)
    )
