"""Whether a group has a program's topology, and under which epoch a program brings its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kohort.spark.program.compiled import Program

if TYPE_CHECKING:
    from kohort.client.administration.group_types import GroupDescription
    from kohort.streams.topology import InternalTopic, Subtopology, Topology


def same_topology(program: Program, group: GroupDescription) -> bool:
    """Whether the group has the program's subtopologies, with the same topics and settings."""
    return group.topology is not None and _shape(group.topology) == _shape(program.topology)


def topology_epoch(program: Program, group: GroupDescription | None) -> int:
    """The epoch that a program joins with: a higher one than the group's if it has another topology.

    A group that has members isn't changed: they would lose their tasks. Descriptions of groups have no patterns, so a
    program that reads by some brings its topology anew to a group without members.
    """
    ours = program.topology.epoch
    if group is None or group.topology_epoch is None or group.topology_epoch < ours:
        return ours
    renewed = program.topology.source_patterns and not group.members
    if same_topology(program, group) and not renewed:
        return group.topology_epoch
    return ours if group.members else group.topology_epoch + 1


def _shape(topology: Topology) -> Mapping[str, Any]:
    return {name: _parts(each) for name, each in topology.subtopologies.items()}


def _parts(subtopology: Subtopology) -> Any:
    def topics(some: Any) -> list[Any]:
        return [_topic(each) for each in some]

    return (
        list(subtopology.source_topics),
        topics(subtopology.repartition_sources),
        list(subtopology.repartition_sinks),
        topics(subtopology.changelogs),
    )


def _topic(topic: InternalTopic) -> Any:
    # Partitions and replicas of a group's topics are those that were found, not those that were asked for.
    return topic.name, dict(topic.configs)
