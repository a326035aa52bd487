"""Changes for which the group epoch is bumped: of the topology, the topics that it depends on, and settings."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.metadata_hash import metadata_hash
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.streams.configured_topology import ConfiguredTopology, configure, topics_of
from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.topology import Topology

log = logging.getLogger(__name__)

_UNVALIDATED = -1


def update_topology(draft: Draft, topology: Topology) -> str | None:
    """Replaces the group's topology with that of a joining member, if it has a higher epoch.

    Task offsets are forgotten then: tasks of the same name are others.

    Returns:
        Why the epoch is to be bumped; None if the topology stays.

    Raises:
        KafkaError: INVALID_REQUEST if it differs from the group's, with the same epoch.
    """
    known = draft.topology
    if known is None or topology.epoch > known.epoch:
        draft.put_topology(topology)
        draft.soft = replace(draft.soft, configured=None, offsets=TaskOffsets())
        return f"topology {topology.epoch} was " + ("brought" if known is None else f"put in place of {known.epoch}")
    if topology.epoch == known.epoch and topology != known:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The member's Topology differs from the group's, though both have epoch {known.epoch}."
            " Topology updates are not supported yet, unless they come with a higher epoch.",
        )
    return None


def detect_changes(draft: Draft, cluster: Cluster) -> list[str]:
    """Returns the changes of topics and settings since the latest bump of the group epoch: the reasons for another."""
    reasons = []
    if draft.topology is not None:
        configured = _configure(draft, draft.topology, cluster)
        if draft.soft.fingerprint != draft.metadata_hash:
            draft.metadata_hash = draft.soft.fingerprint
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


def _configure(draft: Draft, topology: Topology, cluster: Cluster) -> ConfiguredTopology:
    """Returns the configured topology; configures it only if it is out of date."""
    soft, group_id = draft.soft, draft.group.group_id
    if soft.configured is not None:
        return soft.configured
    configured = configure(topology, cluster.partitions, cluster.matching)
    if problem := configured.problem:
        log.warning("group not ready group=%s status=%d because=%s", group_id, problem.code, problem.detail)
    fingerprint = metadata_hash(topics_of(topology, cluster.matching), cluster)
    draft.soft = replace(
        soft,
        configured=configured,
        fingerprint=fingerprint,
        endpoints_stale=soft.endpoints_stale or (fingerprint != soft.fingerprint and _has_endpoints(draft)),
    )
    return configured


def _has_endpoints(draft: Draft) -> bool:
    return any(metadata.endpoint is not None for metadata, _ in draft.members().values())


def assignment_configs(settings: StreamsSettings) -> dict[str, str]:
    """Returns the settings that the target depends on, as records have them."""
    configs = {"num.standby.replicas": str(settings.num_standby_replicas)}
    if settings.rack_aware_assignment_tags:
        configs["rack.aware.assignment.tags"] = ",".join(settings.rack_aware_assignment_tags)
    return configs


def depends_on(group: StreamsGroup, names: Collection[str]) -> bool:
    """Whether a group may depend on any of these topics; patterns may match anything."""
    topology = group.topology
    return topology is not None and (
        bool(topology.source_patterns) or any(name in topology.required_topics for name in names)
    )
