"""Changes of configurations, shared by AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.config import (
    Settings,
    check_broker_changes,
    check_broker_settings,
    check_client_metrics,
    check_group_configs,
    check_topic_configs,
)
from kohort.broker.config.inert_keys import INERT_REASONS
from kohort.broker.topics import ConfigResource, check_topic_name
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.messages.alter_configs import AlterConfigsResponse
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from kohort.broker.context import Context

log = logging.getLogger("kohort.broker.admin")

Changes = dict[str, str | None]
"""New values by key; None for the default."""


def config_resource(number: int) -> ConfigResource:
    """Returns the resource type with a number.

    Raises:
        KafkaError: INVALID_REQUEST, no such type can be configured.
    """
    try:
        return ConfigResource(number)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {number}") from None


class _Resource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=_Resource)
Outcome = TypeVar("Outcome", AlterConfigsResponse.ResourceResponse, IncrementalAlterConfigsResponse.ResourceResponse)


def alter_each(resources: Sequence[R], outcome: type[Outcome], alter: Callable[[R], None]) -> Slices[list[Outcome]]:
    """Alters each resource on its own; one that the request repeats isn't altered.

    Args:
        alter: alters a resource, or raises KafkaError.
    """
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    outcomes = []
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        result = outcome(resource_type=kind, resource_name=name, error_message=None)
        try:
            if counts[kind, name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            alter(resource)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
        outcomes.append(result)
        yield
    return outcomes


def check_keys(given: Iterable[tuple[str, bool]]) -> None:
    """Raises INVALID_REQUEST for duplicate keys, and for keys without a required value.

    Args:
        given: each key, and whether it lacks a required value.
    """
    given = list(given)
    if len({name for name, _ in given}) < len(given):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    lacking = [name for name, lacks in given if lacks]
    if lacking:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(lacking)}")


def alter_resource(
    context: Context,
    kind: ConfigResource,
    name: str,
    decide: Callable[[Mapping[str, str]], Changes],
    validate_only: bool,
) -> None:
    """Changes a resource's configuration, or only validates the change.

    Args:
        decide: returns the changes, given the keys that are set now.
        validate_only: whether to validate the change without applying it.

    Raises:
        KafkaError: the client isn't allowed to, or the change is invalid.
    """
    _authorize(context, kind, name)
    _check_name(context, kind, name)
    topics = context.broker.topics
    current = topics.configs(kind, name)
    decided = decide(current)
    merged = {key: value for key, value in {**current, **decided}.items() if value is not None}
    match kind:
        case ConfigResource.TOPIC:
            check_topic_configs(merged)
            if topics.get(name) is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        case ConfigResource.BROKER:
            check_broker_changes(decided, all_brokers=not name)
            check_broker_settings(context.broker.config, _settings_after(context, name, merged))
        case ConfigResource.GROUP:
            check_group_configs(merged, context.broker.config)
        case ConfigResource.CLIENT_METRICS:
            check_client_metrics(merged)
    changes = {key: value for key, value in decided.items() if current.get(key) != value}
    if changes and not validate_only:
        topics.set_configs(kind, name, changes)
        log.info("configured kind=%s name=%s changes=%s", kind.name.lower(), shown(name), shown(changes, 1000))
        for key in changes if kind is ConfigResource.BROKER else ():
            if key in INERT_REASONS:
                log.info("without effect key=%s reason=%s", key, INERT_REASONS[key])


def _settings_after(context: Context, name: str, merged: Mapping[str, str]) -> Settings:
    """The broker's settings with other values set at run time, for all brokers if `name` is empty, or this one."""
    topics = context.broker.topics
    if not name:
        return context.broker.config.with_dynamic(merged, topics.configs(ConfigResource.BROKER, str(topics.node_id)))
    return context.broker.config.with_dynamic(topics.configs(ConfigResource.BROKER, ""), merged)


def check_node_id(context: Context, name: str) -> None:
    """Raises INVALID_REQUEST unless `name` is exactly this node's id."""
    own = str(context.broker.node_id)
    if name == own:
        return
    if re.fullmatch(r"[+-]?[0-9]+", name):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {own}, but received {name}")
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")


def _authorize(context: Context, kind: ConfigResource, name: str) -> None:
    match kind:
        case ConfigResource.TOPIC:
            allowed = context.allowed(Operation.ALTER_CONFIGS, ResourceType.TOPIC, name)
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        case ConfigResource.GROUP:
            allowed = context.allowed(Operation.ALTER_CONFIGS, ResourceType.GROUP, name)
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        case _:
            allowed = context.cluster_allowed(Operation.ALTER_CONFIGS)
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not allowed:
        raise KafkaError(code)


def _check_name(context: Context, kind: ConfigResource, name: str) -> None:
    match kind:
        case ConfigResource.TOPIC if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        case ConfigResource.TOPIC:
            check_topic_name(name)
        case ConfigResource.BROKER if name:
            check_node_id(context, name)
        case ConfigResource.GROUP if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        case ConfigResource.CLIENT_METRICS if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
