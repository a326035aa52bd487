"""Where things belong: partitions to their leaders, groups and transactional ids to their coordinators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final, TypeVar

from kohort.client.administration.routing import ANY, Ask, Deadline, Failure, Finder, Line, Routes
from kohort.client.errors import ClientError, UnsupportedError, kafka_error
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

__all__ = [
    "all_brokers",
    "anywhere",
    "controller",
    "coordinators",
    "everywhere",
    "leaders",
    "living",
    "metadata",
    "topic_error",
]

K = TypeVar("K")
V = TypeVar("V")

_MANY_KEYS: Final = 4
"""The first version of FindCoordinator that takes several."""


class _GoneError(ClientError):
    """A broker that the cluster doesn't have, or no longer has."""


async def metadata(routes: Routes, topics: Collection[str] | None, deadline: Deadline) -> MetadataResponse:
    """The cluster, with these topics; None for all of them. No topic comes into being by being asked about."""
    asked = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
    answer = await routes.any(
        MetadataRequest(topics=asked, allow_auto_topic_creation=False), MetadataResponse, deadline
    )
    if answer.error_code:
        raise kafka_error(answer.error_code)
    for each in answer.brokers:
        routes.cluster.info.learn_broker(Broker(each.node_id, each.host, each.port, each.rack))
    return answer


def topic_error(topic: MetadataResponse.Topic) -> KafkaError:
    """What metadata says is wrong with a topic."""
    unknown = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return kafka_error(topic.error_code, f"there is no topic {topic.name}" if unknown else topic.name)


async def all_brokers(routes: Routes, deadline: Deadline) -> list[int]:
    """The node ids of the brokers that are there now."""
    return sorted(broker.node_id for broker in (await metadata(routes, (), deadline)).brokers)


async def anywhere(routes: Routes, keys: list[K], deadline: Deadline) -> Mapping[K, int]:
    """Any broker will do."""
    return dict.fromkeys(keys, ANY)


async def living(routes: Routes, keys: list[int], deadline: Deadline) -> Mapping[int, int | Failure]:
    """The keys are node ids, of brokers that are there."""
    there = await all_brokers(routes, deadline)
    return {key: key if key in there else _GoneError(f"there is no broker {key}, or not any more") for key in keys}


async def everywhere(routes: Routes, ask: Ask[int, V], deadline: Deadline) -> dict[int, V]:
    """The answers of all brokers, by node id.

    If one goes meanwhile, all are asked again: what it had belongs to others now, which may have been asked before.
    """
    while True:
        outcomes = await routes.spread(await all_brokers(routes, deadline), living, ask, deadline)
        if not any(isinstance(error, _GoneError) for error in outcomes.failed.values()):
            return outcomes.checked()


async def controller(routes: Routes, keys: list[K], deadline: Deadline) -> Mapping[K, int]:
    """The node that metadata calls the controller: with KRaft, some broker that passes on what it is asked."""
    return dict.fromkeys(keys, (await metadata(routes, (), deadline)).controller_id)


async def leaders(
    routes: Routes, keys: list[TopicPartition], deadline: Deadline
) -> Mapping[TopicPartition, int | Failure]:
    """The leaders of partitions."""
    answer = await metadata(routes, sorted({key.topic for key in keys}), deadline)
    found: dict[TopicPartition, int | Failure] = {}
    missing: dict[str, KafkaError] = {}
    for topic in answer.topics:
        name = topic.name or ""
        if topic.error_code:
            missing[name] = topic_error(topic)
            continue
        count = len(topic.partitions)
        unknown = f"{name} has {count} {'partition' if count == 1 else 'partitions'}, from 0"
        missing[name] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unknown)
        for partition in topic.partitions:
            has_leader = partition.leader_id >= 0
            found[TopicPartition(name, partition.partition_index)] = (
                partition.leader_id if has_leader else KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
            )
    unheard = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {key: found.get(key, missing.get(key.topic, unheard)) for key in keys}


def coordinators(kind: CoordinatorKind) -> Finder[str]:
    """Finds the coordinators of groups or of transactional ids."""
    return partial(_coordinators, kind)


async def _coordinators(
    kind: CoordinatorKind, routes: Routes, keys: list[str], deadline: Deadline
) -> Mapping[str, int | Failure]:
    async def ask(line: Line, some: list[str]) -> Mapping[str, int | Failure]:
        if line.version(FindCoordinatorRequest) >= _MANY_KEYS:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=tuple(some))
            many = await line.ask(request, FindCoordinatorResponse)
            return {each.key: _node(routes, each) for each in many.coordinators}
        if kind is not CoordinatorKind.GROUP and line.version(FindCoordinatorRequest) == 0:
            raise UnsupportedError(f"{line.broker} can't find coordinators of transactions")
        found: dict[str, int | Failure] = {}
        for key in some:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            found[key] = _node(routes, await line.ask(request, FindCoordinatorResponse))
        return found

    outcomes = await routes.spread(keys, anywhere, ask, deadline)
    return {**outcomes, **outcomes.failed}


def _node(routes: Routes, found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator) -> int | Failure:
    if found.error_code:
        return kafka_error(found.error_code, found.error_message)
    routes.cluster.info.learn_broker(Broker(found.node_id, found.host, found.port))
    return found.node_id
