"""Looks up nodes: partitions' leaders, coordinators of groups and transactional ids, the controller, all brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final, TypeVar

from kohort.client.administration.request_router import (
    ANY,
    Ask,
    Deadline,
    Failure,
    Finder,
    Node,
    RequestRouter,
)
from kohort.client.errors import ClientError, UnsupportedError, kafka_error
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.types import Broker, TopicPartition
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

K = TypeVar("K")
V = TypeVar("V")

_MANY_KEYS: Final = 4
"""The first version of FindCoordinator with several keys."""


class _GoneError(ClientError):
    """The cluster doesn't have the broker (any more)."""


async def metadata(router: RequestRouter, topics: Collection[str] | None, deadline: Deadline) -> MetadataResponse:
    """Returns metadata with these topics, None for all. Doesn't create topics."""
    requested = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
    answer = await router.any(
        MetadataRequest(topics=requested, allow_auto_topic_creation=False), MetadataResponse, deadline
    )
    if answer.error_code:
        raise kafka_error(answer.error_code)
    for each in answer.brokers:
        router.cluster.info.learn_broker(Broker(each.node_id, each.host, each.port, each.rack))
    return answer


def topic_error(topic: MetadataResponse.Topic) -> KafkaError:
    """Returns a topic's error in the metadata."""
    unknown = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return kafka_error(topic.error_code, f"there is no topic {topic.name}" if unknown else topic.name)


async def broker_ids(router: RequestRouter, deadline: Deadline) -> list[int]:
    """Returns the node ids of the current brokers."""
    return sorted(broker.node_id for broker in (await metadata(router, (), deadline)).brokers)


async def any_node(router: RequestRouter, keys: list[K], deadline: Deadline) -> Mapping[K, int]:
    """Finds any broker."""
    return dict.fromkeys(keys, ANY)


async def live_brokers(router: RequestRouter, keys: list[int], deadline: Deadline) -> Mapping[int, int | Failure]:
    """Finds brokers by node ids, which are the keys."""
    brokers = await broker_ids(router, deadline)
    return {key: key if key in brokers else _GoneError(f"there is no broker {key}, or not any more") for key in keys}


async def ask_all_brokers(router: RequestRouter, ask: Ask[int, V], deadline: Deadline) -> dict[int, V]:
    """Asks all brokers; returns results by node id.

    If a broker goes meanwhile, all are asked again: its groups and partitions may belong to brokers asked before.
    """
    while True:
        outcomes = await router.ask_nodes(await broker_ids(router, deadline), live_brokers, ask, deadline)
        if not any(isinstance(error, _GoneError) for error in outcomes.failed.values()):
            return outcomes.checked()


async def controller(router: RequestRouter, keys: list[K], deadline: Deadline) -> Mapping[K, int]:
    """Finds the controller in the metadata: with KRaft, a broker that forwards requests."""
    return dict.fromkeys(keys, (await metadata(router, (), deadline)).controller_id)


async def leaders(
    router: RequestRouter, keys: list[TopicPartition], deadline: Deadline
) -> Mapping[TopicPartition, int | Failure]:
    """Finds the leaders of partitions."""
    answer = await metadata(router, sorted({key.topic for key in keys}), deadline)
    found: dict[TopicPartition, int | Failure] = {}
    missing: dict[str, KafkaError] = {}
    for topic in answer.topics:
        name = topic.name or ""
        if topic.error_code:
            missing[name] = topic_error(topic)
            continue
        unknown = f"{name} has {several(len(topic.partitions), 'partition')}, from 0"
        missing[name] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unknown)
        for partition in topic.partitions:
            has_leader = partition.leader_id >= 0
            found[TopicPartition(name, partition.partition_index)] = (
                partition.leader_id if has_leader else KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
            )
    unknown_partition = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {key: found.get(key, missing.get(key.topic, unknown_partition)) for key in keys}


def coordinators(kind: CoordinatorKind) -> Finder[str]:
    """Returns a finder of coordinators of groups or of transactional ids."""
    return partial(_coordinators, kind)


async def _coordinators(
    kind: CoordinatorKind, router: RequestRouter, keys: list[str], deadline: Deadline
) -> Mapping[str, int | Failure]:
    async def ask(node: Node, some: list[str]) -> Mapping[str, int | Failure]:
        if node.version(FindCoordinatorRequest) >= _MANY_KEYS:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=tuple(some))
            many = await node.ask(request, FindCoordinatorResponse)
            return {each.key: _node(router, each) for each in many.coordinators}
        if kind is not CoordinatorKind.GROUP and node.version(FindCoordinatorRequest) == 0:
            raise UnsupportedError(f"{node.broker} can't find coordinators of transactions")
        found: dict[str, int | Failure] = {}
        for key in some:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            found[key] = _node(router, await node.ask(request, FindCoordinatorResponse))
        return found

    outcomes = await router.ask_nodes(keys, any_node, ask, deadline)
    return {**outcomes, **outcomes.failed}


def _node(router: RequestRouter, found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator) -> int | Failure:
    if found.error_code:
        return kafka_error(found.error_code, found.error_message)
    router.cluster.info.learn_broker(Broker(found.node_id, found.host, found.port))
    return found.node_id
