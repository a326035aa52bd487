"""The map of endpoints: the partitions of each application instance, for interactive queries (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kohort.protocol.messages.streams_group_heartbeat import Endpoint, StreamsGroupHeartbeatResponse, TopicPartition
from kohort.streams.configured_topology import ConfiguredTopology
from kohort.streams.tasks import Role, TaskId

_Partitions: TypeAlias = dict[str, set[int]]


@dataclass(frozen=True, slots=True)
class Instance:
    """A member that answers queries."""

    host: str
    port: int
    tasks: Mapping[TaskId, Role]


def partitions_by_endpoint(
    instances: Iterable[Instance], topology: ConfiguredTopology
) -> list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]:
    """Returns the partitions of source and repartition topics that the tasks of each instance read.

    Warm-ups count as standbys. A task reads the partitions of its own number; topics that have fewer partitions than
    the subtopology has tasks aren't read by all of them. Members with the same endpoint are one instance: clients
    before Kafka 4.4 take only one entry for each. The order is that of hosts, ports, topics and partitions.
    """
    found: dict[tuple[str, int], tuple[_Partitions, _Partitions]] = {}
    for instance in instances:
        active, standby = found.setdefault((instance.host, instance.port), ({}, {}))
        for task, role in instance.tasks.items():
            subtopology = topology.subtopologies.get(task.subtopology)
            if subtopology is None:
                continue
            into = active if role is Role.ACTIVE else standby
            for topic, partitions in subtopology.sources.items():
                if task.partition < partitions:
                    into.setdefault(topic, set()).add(task.partition)
    return [
        StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint(
            user_endpoint=Endpoint(host=host, port=port),
            active_partitions=_listed(active),
            standby_partitions=_listed(standby),
        )
        for (host, port), (active, standby) in sorted(found.items(), key=lambda entry: entry[0])
    ]


def _listed(partitions: _Partitions) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=tuple(sorted(numbers))) for topic, numbers in sorted(partitions.items())
    ]
