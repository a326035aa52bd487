"""IncrementalAlterConfigs: changes single settings of topics, brokers, loggers, groups and metrics subscriptions."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from kohort.broker.admin.config_changes import (
    Changes,
    alter_each,
    alter_resource,
    check_keys,
    check_node_id,
    config_resource,
)
from kohort.broker.admin.loggers import BROKER_LOGGER, levels_from_changes, set_levels
from kohort.broker.authorizer import Operation
from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.client_metrics_keys import CLIENT_METRICS_KEYS
from kohort.broker.config.component_settings import group_value, topic_value
from kohort.broker.config.group_keys import GROUP_KEYS
from kohort.broker.config.keys import Key, Type, Value, show
from kohort.broker.config.topic_keys import TOPIC_KEYS
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.topics import ConfigResource
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

SERVED: Final = Served(IncrementalAlterConfigsRequest, versions=(0, 1), max_items=ONE_STEP)

Resource = IncrementalAlterConfigsRequest.Resource
Outcome = IncrementalAlterConfigsResponse.ResourceResponse

KEYS: Final = {
    ConfigResource.TOPIC: TOPIC_KEYS,
    ConfigResource.BROKER: BROKER_KEYS,
    ConfigResource.GROUP: GROUP_KEYS,
    ConfigResource.CLIENT_METRICS: CLIENT_METRICS_KEYS,
}


class Edit(enum.IntEnum):
    """Kafka's AlterConfigOp types."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle(request: IncrementalAlterConfigsRequest, context: Context) -> Slices[IncrementalAlterConfigsResponse]:
    """Applies the changes of each resource, all or none of them, or only validates them."""
    outcomes = yield from alter_each(
        request.resources, Outcome, lambda resource: _change(resource, request.validate_only, context)
    )
    return IncrementalAlterConfigsResponse(responses=outcomes)


def _change(resource: Resource, validate_only: bool, context: Context) -> None:
    check_keys(
        (config.name, config.value is None and config.config_operation != Edit.DELETE) for config in resource.configs
    )
    for config in resource.configs:
        if config.config_operation not in list(Edit):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {config.config_operation}")
    if resource.resource_type == BROKER_LOGGER:
        _change_loggers(resource, validate_only, context)
        return
    kind = config_resource(resource.resource_type)

    def decide(current: Mapping[str, str]) -> Changes:
        return {config.name: _edited(kind, config, current, context) for config in resource.configs}

    alter_resource(context, kind, resource.resource_name, decide, validate_only)


def _edited(kind: ConfigResource, config: Resource.Config, current: Mapping[str, str], context: Context) -> str | None:
    """The key's new value; None for the default."""
    if config.config_operation == Edit.DELETE:
        return None
    given = config.value or ""
    if config.config_operation == Edit.SET:
        return given
    key = KEYS[kind].get(config.name)
    if key is None or key.type is not Type.LIST:
        operation = Edit(config.config_operation).name
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Can't {operation} to key {config.name} because its type is not LIST."
        )
    text = current.get(config.name)
    if text is None:
        text = show(_default(kind, key, context)) or ""
    items = [item for item in text.split(",") if item]
    operands = given.split(",")
    if config.config_operation == Edit.APPEND:
        items += [item for item in dict.fromkeys(operands) if item not in items]
    else:
        items = [item for item in items if item not in operands]
    return ",".join(items)


def _default(kind: ConfigResource, key: Key, context: Context) -> Value:
    match kind:
        case ConfigResource.TOPIC:
            return topic_value(context.broker.config, {}, key.name)
        case ConfigResource.GROUP:
            return group_value(context.broker.config, {}, key.name)
        case _:
            return key.default


def _change_loggers(resource: Resource, validate_only: bool, context: Context) -> None:
    if not context.cluster_allowed(Operation.ALTER_CONFIGS):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    check_node_id(context, resource.resource_name)
    for config in resource.configs:
        if config.config_operation in (Edit.APPEND, Edit.SUBTRACT):
            operation = Edit(config.config_operation).name
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{operation} is not allowed for a logger.")
    levels = levels_from_changes(
        {config.name: None if config.config_operation == Edit.DELETE else config.value for config in resource.configs}
    )
    if not validate_only:
        set_levels(levels)
