"""Settings of topics, brokers, groups and client metrics: describe, alter, list."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kohort.client.administration.request_router import ANY, Deadline, Failure, Node, RequestRouter
from kohort.client.errors import kafka_error, raise_for
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kohort.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kohort.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


class ResourceType(enum.IntEnum):
    """The types of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A resource that has settings.

    Attributes:
        type: its type.
        name: the topic's, the group's or the subscription's; a broker's id as text, "" for all brokers' default.
    """

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or '(all)'}"


class ConfigSource(enum.IntEnum):
    """The origin of a value."""

    UNKNOWN = -1
    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """Another key for a setting, and its value and origin (None if it is secret or not set)."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting.

    Attributes:
        name, value: the key, and its effective value; None if it is secret or not set.
        source: the value's origin.
        read_only: whether it can't be altered while the broker runs.
        sensitive: whether it is a secret, which brokers don't return.
        synonyms: keys that set it, by precedence; if requested.
        documentation: if requested.
    """

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def default(self) -> bool:
        """Whether it has its default value."""
        return self.source is ConfigSource.DEFAULT


class _Operation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Configs:
    """Settings: `Admin.configs`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def list(self, *types: ResourceType, timeout_ms: int | None = None) -> list[ConfigResource]:
        """Returns the resources that can have settings; of these types, or of all (KIP-1142)."""
        deadline = self._router.deadline(timeout_ms)
        request = ListConfigResourcesRequest(resource_types=tuple(map(int, types)))
        answer = await self._router.any(request, ListConfigResourcesResponse, deadline)
        raise_for(answer.error_code)
        return sorted(
            ConfigResource(ResourceType(each.resource_type), each.resource_name)
            for each in answer.config_resources
            if each.resource_type in ResourceType.__members__.values()
        )

    async def describe(
        self,
        *resources: ConfigResource,
        keys: Collection[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Returns the settings of each resource, sorted by key.

        Args:
            resources: to describe.
            keys: of the settings; None for all.
            synonyms, documentation: whether to request these, too.
            timeout_ms: as everywhere.
        """

        async def ask(
            node: Node, some: Sequence[ConfigResource]
        ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | Failure]:
            wanted = None if keys is None else tuple(keys)
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsRequest.Resource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=wanted
                    )
                    for each in some
                ],
                include_synonyms=synonyms,
                include_documentation=documentation,
            )
            answer = await node.ask(request, DescribeConfigsResponse)
            return {
                ConfigResource(ResourceType(each.resource_type), each.resource_name): (
                    kafka_error(each.error_code, each.error_message) if each.error_code else _entries(each)
                )
                for each in answer.results
            }

        deadline = self._router.deadline(timeout_ms)
        return (await self._router.ask_nodes(resources, _places, ask, deadline)).checked()

    async def alter(
        self,
        *resources: ConfigResource,
        set: Mapping[str, str] | None = None,  # noqa: A002 (Kafka's name of the operation)
        delete: Iterable[str] = (),
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Changes single settings; the others stay.

        Args:
            resources: all are changed alike.
            set: new values.
            delete: keys to reset to their defaults.
            append, subtract: comma-separated items to add to lists or remove from them.
            validate_only: only checks the change.
            timeout_ms: as everywhere.

        Raises:
            KafkaError: INVALID_CONFIG for an invalid key or value.
        """
        kind = IncrementalAlterConfigsRequest.Resource.Config
        changes = [
            *(_change(kind, _Operation.SET, key, value) for key, value in (set or {}).items()),
            *(_change(kind, _Operation.DELETE, key, None) for key in delete),
            *(_change(kind, _Operation.APPEND, key, value) for key, value in (append or {}).items()),
            *(_change(kind, _Operation.SUBTRACT, key, value) for key, value in (subtract or {}).items()),
        ]

        async def ask(node: Node, some: Sequence[ConfigResource]) -> Mapping[ConfigResource, Failure | None]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    IncrementalAlterConfigsRequest.Resource(
                        resource_type=each.type, resource_name=each.name, configs=changes
                    )
                    for each in some
                ],
                validate_only=validate_only,
            )
            answer = await node.ask(request, IncrementalAlterConfigsResponse)
            return {
                ConfigResource(ResourceType(each.resource_type), each.resource_name): (
                    kafka_error(each.error_code, each.error_message) if each.error_code else None
                )
                for each in answer.responses
            }

        deadline = self._router.deadline(timeout_ms)
        (await self._router.ask_nodes(resources, _places, ask, deadline)).checked()


async def _places(
    router: RequestRouter, keys: Sequence[ConfigResource], deadline: Deadline
) -> Mapping[ConfigResource, int | Failure]:
    """Finds the broker for its own settings and loggers, any broker for others."""
    own = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
    return {key: int(key.name) if key.type in own and key.name.isdecimal() else ANY for key in keys}


def _change(
    kind: type[IncrementalAlterConfigsRequest.Resource.Config], operation: _Operation, key: str, value: str | None
) -> IncrementalAlterConfigsRequest.Resource.Config:
    return kind(name=key, config_operation=operation, value=value)


def _source(code: int) -> ConfigSource:
    return ConfigSource(code) if code in ConfigSource.__members__.values() else ConfigSource.UNKNOWN


def _entries(result: DescribeConfigsResponse.Result) -> dict[str, ConfigEntry]:
    return {
        each.name: ConfigEntry(
            name=each.name,
            value=each.value,
            source=_source(each.config_source),
            read_only=each.read_only,
            sensitive=each.is_sensitive,
            synonyms=tuple(ConfigSynonym(one.name, one.value, _source(one.source)) for one in each.synonyms),
            documentation=each.documentation or None,
        )
        for each in sorted(result.configs, key=lambda config: config.name)
    }
