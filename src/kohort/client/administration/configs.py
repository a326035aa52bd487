"""Settings of topics, brokers, groups and client metrics, as an admin sees them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kohort.client.administration.routing import ANY, Deadline, Failure, Line, Routes
from kohort.client.errors import kafka_error, raise_for
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kohort.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kohort.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

__all__ = ["ConfigEntry", "ConfigResource", "ConfigSource", "ConfigSynonym", "Configs", "ResourceType"]


class ResourceType(enum.IntEnum):
    """What has settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """One thing that has settings.

    Attributes:
        type: what kind of thing.
        name: the topic's, the group's or the subscription's; a broker's id as text, "" for all brokers' default.
    """

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or '(all)'}"


class ConfigSource(enum.IntEnum):
    """Where a value comes from."""

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
    """Another place that a setting could come from, and the value there (None if it is secret or not set)."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting.

    Attributes:
        name, value: the key, and what holds; None for what is secret or not set.
        source: where that comes from.
        read_only: whether it can't be altered while the broker runs.
        sensitive: whether it is a secret, which brokers keep to themselves.
        synonyms: where it could come from, the strongest first; if asked for.
        documentation: what it is for; if asked for.
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
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT


class _Operation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Configs:
    """What an admin does with settings: `Admin.configs`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(self, *types: ResourceType, timeout_ms: int | None = None) -> list[ConfigResource]:
        """What there is that can have settings; of these types, or of all (KIP-1142)."""
        deadline = self._routes.deadline(timeout_ms)
        request = ListConfigResourcesRequest(resource_types=tuple(map(int, types)))
        answer = await self._routes.any(request, ListConfigResourcesResponse, deadline)
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
        """The settings of each resource, by key in order.

        Args:
            resources: what to look at.
            keys: the settings wanted; None for all.
            synonyms, documentation: whether to ask for these, too.
            timeout_ms: as everywhere.
        """

        async def ask(
            line: Line, some: Sequence[ConfigResource]
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
            answer = await line.ask(request, DescribeConfigsResponse)
            return {
                ConfigResource(ResourceType(each.resource_type), each.resource_name): (
                    kafka_error(each.error_code, each.error_message) if each.error_code else _entries(each)
                )
                for each in answer.results
            }

        deadline = self._routes.deadline(timeout_ms)
        return (await self._routes.spread(resources, _places, ask, deadline)).checked()

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
        """Change single settings, and leave the others as they are.

        Args:
            resources: whose settings; all are changed alike.
            set: new values.
            delete: keys that go back to their defaults.
            append, subtract: items, with commas between, that are added to lists or taken away.
            validate_only: only check whether it could be done.
            timeout_ms: as everywhere.

        Raises:
            KafkaError: INVALID_CONFIG for a key or value that can't be.
        """
        kind = IncrementalAlterConfigsRequest.Resource.Config
        changes = [
            *(_change(kind, _Operation.SET, key, value) for key, value in (set or {}).items()),
            *(_change(kind, _Operation.DELETE, key, None) for key in delete),
            *(_change(kind, _Operation.APPEND, key, value) for key, value in (append or {}).items()),
            *(_change(kind, _Operation.SUBTRACT, key, value) for key, value in (subtract or {}).items()),
        ]

        async def ask(line: Line, some: Sequence[ConfigResource]) -> Mapping[ConfigResource, Failure | None]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    IncrementalAlterConfigsRequest.Resource(
                        resource_type=each.type, resource_name=each.name, configs=changes
                    )
                    for each in some
                ],
                validate_only=validate_only,
            )
            answer = await line.ask(request, IncrementalAlterConfigsResponse)
            return {
                ConfigResource(ResourceType(each.resource_type), each.resource_name): (
                    kafka_error(each.error_code, each.error_message) if each.error_code else None
                )
                for each in answer.responses
            }

        deadline = self._routes.deadline(timeout_ms)
        (await self._routes.spread(resources, _places, ask, deadline)).checked()


async def _places(
    routes: Routes, keys: Sequence[ConfigResource], deadline: Deadline
) -> Mapping[ConfigResource, int | Failure]:
    """A broker's own settings and loggers are its own affair; the rest is anyone's."""
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
