"""Subscriptions: what a member of a classic streams group has, as it tells its leader."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from kohort.client.streams.classic.subscription_prefix import read_prefix
from kohort.client.streams.classic.versions import LATEST, PREFIX, WITH_OFFSETS
from kohort.protocol.messages.streams_group_heartbeat import Endpoint as WireEndpoint
from kohort.protocol.messages.streams_group_heartbeat import KeyValue, TaskIds, TaskOffset
from kohort.protocol.messages.streams_subscription import StreamsSubscription
from kohort.streams.endpoint import Endpoint
from kohort.streams.task_offsets import offsets_by_task, task_offsets
from kohort.streams.tasks import Role, TaskId, in_role, task_ids, tasks_of
from kohort.streams.topology import Topology, TopologyError, check
from kohort.streams.topology_messages import topology_of, topology_request


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member has.

    Attributes:
        tasks: tasks that it runs or has copies of, and such that it hasn't closed yet. What it lists as active nobody
            else may run.
        state_stores: number of state stores of each task that it has had (KIP-262).
        offsets: changelog offsets of the state on its disk, by task, as streams groups report them.
        ends: ends of these changelogs.
        topology: None if it was read in a version before 3, which has its id alone.
        shutdown: it asks that the whole application shut down.
    """

    tasks: Mapping[TaskId, Role] = field(default_factory=dict)
    state_stores: Mapping[TaskId, int] = field(default_factory=dict)
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    ends: Mapping[TaskId, int] = field(default_factory=dict)
    process_id: str = ""
    rack_id: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    user_endpoint: Endpoint | None = None
    topology: Topology | None = None
    shutdown: bool = False


class TooNewError(Exception):
    """A subscription is of a newer version than the reader knows: its prefix is all that can be read."""


@dataclass(frozen=True, slots=True)
class ReadSubscription:
    """A subscription that was read.

    Attributes:
        version: the version that it was written in.
        latest_supported: the newest version that its writer knows.
        topology_id: of the topology that its writer runs, in all versions.
    """

    version: int
    latest_supported: int
    topology_id: TopologyId
    subscription: Subscription


def encode_subscription(
    subscription: Subscription,
    version: int = LATEST,
    latest: int = LATEST,
    join_number: int = 0,
    leader_version: int = 0,
) -> bytes:
    """Returns the bytes for JoinGroup.

    Before version 3, tasks of which there is only state on disk are listed as standbys: offsets aren't, and the
    leader shouldn't take them for somebody else's.

    Args:
        version: the version to write.
        latest: the newest version that the member knows.
        join_number: another one each time that the member wants a rebalance: a broker has none because a member
            joins again that isn't the leader, unless its subscription has changed.
        leader_version: the newest version that the leader knew whom the member heard last; 0 if it heard none.
    """
    tasks = dict(subscription.tasks)
    if version < WITH_OFFSETS:
        tasks = dict.fromkeys(subscription.offsets, Role.STANDBY) | {
            task: Role.ACTIVE if role is Role.ACTIVE else Role.STANDBY for task, role in tasks.items()
        }
    endpoint = subscription.user_endpoint
    topology_id = TopologyId(-1, 0) if subscription.topology is None else TopologyId.of(subscription.topology)
    message = StreamsSubscription(
        latest_supported_version=latest,
        leader_version=leader_version,
        has_tasks=bool(subscription.tasks),
        join_number=join_number,
        active_tasks=_previous(tasks, Role.ACTIVE, subscription.state_stores),
        standby_tasks=_previous(tasks, Role.STANDBY, subscription.state_stores),
        warmup_tasks=task_ids(TaskIds, tasks, Role.WARMUP),
        task_offsets=task_offsets(TaskOffset, subscription.offsets),
        task_end_offsets=task_offsets(TaskOffset, subscription.ends),
        process_id=subscription.process_id,
        rack_id=subscription.rack_id,
        client_tags=[KeyValue(key=key, value=value) for key, value in sorted(subscription.client_tags.items())],
        user_endpoint=None if endpoint is None else WireEndpoint(host=endpoint.host, port=endpoint.port),
        topology_epoch=topology_id.epoch,
        topology_fingerprint=topology_id.fingerprint,
        topology=None if subscription.topology is None else topology_request(subscription.topology),
        shutdown_application=subscription.shutdown,
    )
    return version.to_bytes(PREFIX, "big") + message.encode(version)


def decode_subscription(data: bytes, latest: int = LATEST) -> ReadSubscription:
    """Reads a subscription.

    Args:
        latest: the newest version that the reader knows.

    Raises:
        TooNewError: it is of a newer version.
        ValueError: it can't be read, or makes no sense; says why.
    """
    prefix = read_prefix(data)
    if prefix.version > latest:
        raise TooNewError(f"version {prefix.version} is newer than {latest}")
    message = StreamsSubscription.decode(data[PREFIX:], prefix.version)
    topology_id = TopologyId(message.topology_epoch, message.topology_fingerprint)
    return ReadSubscription(prefix.version, prefix.latest_supported, topology_id, _subscription(message))


class TopologyId(NamedTuple):
    """By what a topology is known to be the same one.

    Attributes:
        fingerprint: see `fingerprint`.
    """

    epoch: int
    fingerprint: int

    @classmethod
    def of(cls, topology: Topology) -> Self:
        """Returns the id of a topology."""
        return cls(topology.epoch, fingerprint(topology))


def fingerprint(topology: Topology) -> int:
    """Returns a hash of what a topology is made of, whatever its epoch; 64 bits, signed."""
    request = topology_request(topology)
    request.epoch = 0
    encoded = StreamsSubscription(topology=request).encode(WITH_OFFSETS)
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "big", signed=True)


def _previous(
    tasks: Mapping[TaskId, Role], role: Role, state_stores: Mapping[TaskId, int]
) -> list[StreamsSubscription.PreviousTasks]:
    return [
        StreamsSubscription.PreviousTasks(
            subtopology_id=name,
            partitions=partitions,
            state_stores=tuple(state_stores.get(TaskId(name, partition), 0) for partition in partitions),
        )
        for name, partitions in in_role(tasks, role).items()
    ]


def _subscription(message: StreamsSubscription) -> Subscription:
    listed = (*message.active_tasks, *message.standby_tasks)
    tasks = tasks_of(message.active_tasks, message.standby_tasks, message.warmup_tasks)
    _check_tasks(tasks, (*listed, *message.warmup_tasks))
    offsets, ends = offsets_by_task(message.task_offsets), offsets_by_task(message.task_end_offsets)
    if len(offsets) < len(message.task_offsets) or len(ends) < len(message.task_end_offsets):
        raise ValueError("the offset of a task is listed twice")
    endpoint = message.user_endpoint
    return Subscription(
        tasks=tasks,
        state_stores=_state_stores(listed),
        offsets=offsets,
        ends=ends,
        process_id=message.process_id,
        rack_id=message.rack_id,
        client_tags={tag.key: tag.value for tag in message.client_tags},
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        topology=None if message.topology is None else _topology(message),
        shutdown=message.shutdown_application,
    )


def _check_tasks(tasks: Mapping[TaskId, Role], listed: Iterable[StreamsSubscription.PreviousTasks | TaskIds]) -> None:
    if len(tasks) < sum(len(ids.partitions) for ids in listed):
        raise ValueError("a task is listed twice")
    if any(task.partition < 0 for task in tasks):
        raise ValueError("a task is negative")


def _state_stores(listed: Iterable[StreamsSubscription.PreviousTasks]) -> dict[TaskId, int]:
    counts: dict[TaskId, int] = {}
    for ids in listed:
        if not ids.state_stores:
            continue  # version 1
        if len(ids.state_stores) != len(ids.partitions):
            raise ValueError(f"{len(ids.state_stores)} numbers of state stores for {len(ids.partitions)} tasks")
        if min(ids.state_stores) < 0:
            raise ValueError("a number of state stores is negative")
        counts.update(
            (TaskId(ids.subtopology_id, partition), stores)
            for partition, stores in zip(ids.partitions, ids.state_stores, strict=True)
        )
    return counts


def _topology(message: StreamsSubscription) -> Topology:
    assert message.topology is not None
    try:
        topology = topology_of(message.topology)
        check(topology)
    except (TopologyError, IndexError) as error:
        raise ValueError(f"its topology can't be: {error}") from None
    if len(topology.subtopologies) < len(message.topology.subtopologies):
        raise ValueError("its topology lists a subtopology twice")
    parts = topology.subtopologies.values()
    if any(topic.partitions < 0 for part in parts for topic in (*part.repartition_sources, *part.changelogs)):
        raise ValueError("its topology has an internal topic with a negative number of partitions")
    if TopologyId.of(topology) != (message.topology_epoch, message.topology_fingerprint):
        raise ValueError("its topology doesn't have the epoch and the fingerprint that it gives")
    return topology
