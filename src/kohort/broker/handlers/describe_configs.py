"""DescribeConfigs: the configurations of topics, the broker, its loggers, groups and metrics subscriptions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kohort.broker.admin.config_changes import check_node_id
from kohort.broker.admin.loggers import BROKER_LOGGER, logger_levels
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.config.describe import (
    Described,
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import ConfigResource, check_topic_name
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

SERVED: Final = Served(DescribeConfigsRequest, versions=(1, 4))

KNOWN_TYPES: Final = frozenset({BROKER_LOGGER, *ConfigResource})

LOGGER_SOURCE: Final = 6
"""Kafka's DYNAMIC_BROKER_LOGGER_CONFIG, the only source of loggers."""

Resource = DescribeConfigsRequest.Resource
Result = DescribeConfigsResponse.Result
Config = Result.Config


def handle(request: DescribeConfigsRequest, context: Context) -> Slices[DescribeConfigsResponse]:
    """Describes each resource once. As in Kafka, a resource of an unknown type fails all."""
    unknown = [each.resource_type for each in request.resources if each.resource_type not in KNOWN_TYPES]
    results = []
    for resource in {(each.resource_type, each.resource_name): each for each in request.resources}.values():
        result = Result(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            if unknown:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {unknown[0]}.")
            _authorize(resource, context)
            result.configs = _configs(resource, request, context)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
        results.append(result)
        yield
    return DescribeConfigsResponse(results=results)


def _authorize(resource: Resource, context: Context) -> None:
    match resource.resource_type:
        case ConfigResource.TOPIC:
            allowed = context.allowed(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, resource.resource_name)
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        case ConfigResource.GROUP:
            allowed = context.allowed(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, resource.resource_name)
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        case _:
            allowed = context.cluster_allowed(Operation.DESCRIBE_CONFIGS)
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not allowed:
        raise KafkaError(code)


def _configs(resource: Resource, request: DescribeConfigsRequest, context: Context) -> list[Config]:
    names = frozenset(resource.configuration_keys) if resource.configuration_keys else None
    if resource.resource_type == BROKER_LOGGER:
        return _loggers(resource.resource_name, names, context)
    return [
        Config(
            name=described.name,
            value=described.value,
            read_only=described.read_only,
            config_source=described.source,
            is_sensitive=described.sensitive,
            synonyms=[
                Config.Synonym(name=synonym.name, value=synonym.value, source=synonym.source)
                for synonym in (described.synonyms if request.include_synonyms else ())
            ],
            config_type=described.type,
            documentation=described.doc if request.include_documentation else None,
        )
        for described in _described(ConfigResource(resource.resource_type), resource.resource_name, context)
        if names is None or described.name in names
    ]


def _described(kind: ConfigResource, name: str, context: Context) -> list[Described]:
    settings, topics = context.broker.config, context.broker.topics
    match kind:
        case ConfigResource.TOPIC:
            check_topic_name(name)
            topic = topics.get(name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            return describe_topic(settings, topic.configs)
        case ConfigResource.BROKER if not name:
            return describe_all_brokers(settings)
        case ConfigResource.BROKER:
            check_node_id(context, name)
            return describe_broker(settings)
        case ConfigResource.GROUP if name:
            return describe_group(settings, topics.configs(kind, name))
        case ConfigResource.CLIENT_METRICS if name:
            return describe_client_metrics(topics.configs(kind, name))
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The name of a group or a subscription must not be empty.")


def _loggers(node: str, names: Collection[str] | None, context: Context) -> list[Config]:
    check_node_id(context, node)
    return [
        Config(name=name, value=level, config_source=LOGGER_SOURCE, documentation=None)
        for name, level in logger_levels().items()
        if names is None or name in names
    ]
