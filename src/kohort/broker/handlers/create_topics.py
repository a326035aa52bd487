"""CreateTopics: creates topics."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.config import check_topic_configs
from kohort.broker.config.describe import describe_topic
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.replica_assignment import check_replicas, check_replication
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.schema import NO_UUID
from kohort.protocol.stored import INTERNAL_TOPICS
from kohort.protocol.stored.cluster_metadata import METADATA_TOPIC

SERVED: Final = Served(CreateTopicsRequest, versions=(2, 7))

QUOTA_EXCEEDED: Final = 6
"""First version in which a quota refuses topics rather than delay the next request."""

log = logging.getLogger("kohort.broker.admin")

DEFAULT: Final = -1

Wanted = CreateTopicsRequest.Topic
Outcome = CreateTopicsResponse.Topic


def handle(request: CreateTopicsRequest, context: Context) -> Slices[CreateTopicsResponse]:
    """Creates each topic on its own, or only validates it. Configurations are returned to who may describe them."""
    all_allowed = context.cluster_allowed(Operation.CREATE, audited=False)
    times = Counter(topic.name for topic in request.topics)
    refused: dict[str, KafkaError] = {}
    wanted: dict[str, Wanted] = {}
    for topic in request.topics:
        yield
        if times[topic.name] > 1:
            refused[topic.name] = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif _is_the_brokers_own(topic.name) and context.broker.topics.get(topic.name) is None:
            # Kafka allows to create its coordinators' topics in any shape, which breaks the coordinators.
            detail = f"Creation of internal topic {topic.name} is prohibited."
            refused[topic.name] = KafkaError(ErrorCode.INVALID_REQUEST, detail)
        elif not (all_allowed or context.allowed(Operation.CREATE, ResourceType.TOPIC, topic.name)):
            refused[topic.name] = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
        else:
            wanted[topic.name] = topic
    default_partitions = context.broker.config.int("num.partitions")
    total = sum(max(0, _partitions(topic, default_partitions)) for topic in wanted.values())
    outcomes = []
    for topic in wanted.values():
        try:
            if total > MAX_PARTITIONS_AT_ONCE:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"One request may create {MAX_PARTITIONS_AT_ONCE} partitions at most, not {total}.",
                )
            outcome = yield from _create(topic, default_partitions, request.validate_only, context)
            outcomes.append(outcome)
        except KafkaError as error:
            outcomes.append(_failed(topic.name, error))
        yield
    outcomes += [_failed(name, error) for name, error in refused.items()]
    return CreateTopicsResponse(topics=outcomes)


def _create(wanted: Wanted, default_partitions: int, validate_only: bool, context: Context) -> Slices[Outcome]:
    topics = context.broker.topics
    topics.check_new(wanted.name, 1)
    configs = _configs(wanted.configs)
    check_topic_configs(configs)
    _check_replicas_and_partitions(
        wanted, context.broker.node_id, context.broker.config.int("default.replication.factor")
    )
    partitions = _partitions(wanted, default_partitions)
    context.mutate(partitions, strict_since=QUOTA_EXCEEDED)
    topic_id = NO_UUID
    if not validate_only:
        created = yield from topics.create_in_slices(wanted.name, partitions, configs)
        topic_id = created.id
        log.info("topic created topic=%s partitions=%d configs=%s", wanted.name, partitions, configs)
    outcome = Outcome(name=wanted.name, topic_id=topic_id, error_message=None)
    if not context.allowed(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, wanted.name, audited=False):
        outcome.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return outcome
    outcome.num_partitions = partitions
    outcome.replication_factor = 1
    outcome.configs = [
        Outcome.Config(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_topic(context.broker.config, configs)
    ]
    return outcome


def _configs(given: Sequence[Wanted.Config]) -> dict[str, str]:
    """The topic's configuration; the last value counts for a repeated key."""
    nulls = [config.name for config in given if config.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return {config.name: config.value for config in given if config.value is not None}


def _is_the_brokers_own(name: str) -> bool:
    return name == METADATA_TOPIC or name in INTERNAL_TOPICS


def _partitions(wanted: Wanted, default: int) -> int:
    if wanted.assignments:
        return len(wanted.assignments)
    return default if wanted.num_partitions == DEFAULT else wanted.num_partitions


def _check_replicas_and_partitions(wanted: Wanted, node_id: int, default_replication: int) -> None:
    """Raises KafkaError for partitions, replicas or assignments that are impossible on one node."""
    if wanted.assignments:
        _check_assignments(wanted, node_id)
    elif wanted.replication_factor < DEFAULT or wanted.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    elif wanted.num_partitions < DEFAULT or wanted.num_partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    else:
        check_replication(default_replication if wanted.replication_factor == DEFAULT else wanted.replication_factor)


def _check_assignments(wanted: Wanted, node_id: int) -> None:
    for field, value in (("replication factor", wanted.replication_factor), ("numPartitions", wanted.num_partitions)):
        if value != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"With a manual partition assignment the {field} has to be -1, not {value}."
            )
    for index, count in Counter(each.partition_index for each in wanted.assignments).items():
        if count > 1:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Found multiple manual partition assignments for {index}."
            )
    for assignment in wanted.assignments:
        check_replicas(assignment.broker_ids, node_id)
    if {each.partition_index for each in wanted.assignments} != set(range(len(wanted.assignments))):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions should be numbered from 0, without a gap.")


def _failed(name: str, error: KafkaError) -> Outcome:
    return Outcome(name=name, error_code=error.code, error_message=error.detail)
