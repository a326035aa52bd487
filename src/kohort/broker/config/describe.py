"""Configurations as DescribeConfigs shows them: each key with its value, source and synonyms."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.client_metrics_keys import CLIENT_METRICS_KEYS
from kohort.broker.config.component_settings import group_value
from kohort.broker.config.group_keys import GROUP_KEYS
from kohort.broker.config.ignored_keys import IGNORED_KEYS
from kohort.broker.config.keys import Change, Key, Type, show
from kohort.broker.config.security_keys import listener_key
from kohort.broker.config.settings import Settings
from kohort.broker.config.topic_keys import BROKER_KEY_OF, TOPIC_KEYS


class ConfigSource(enum.IntEnum):
    """Where a value was set: Kafka's ConfigSource."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A synonym with its value, which is None if it is secret."""

    name: str
    value: str | None
    source: ConfigSource


class Described(NamedTuple):
    """A key as clients see it.

    Attributes:
        name, value, source: the effective value; None if it is secret.
        read_only: whether it can't be changed at run time.
        synonyms: all values that are set for it, the effective one first.
    """

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    type: Type
    doc: str


def describe_topic(settings: Settings, configs: Mapping[str, str]) -> list[Described]:
    described = []
    for name, key in TOPIC_KEYS.items():
        if key.internal and name not in configs:
            continue
        broker_key = BROKER_KEY_OF.get(name)
        if name in configs:
            value = show(key.parse(configs[name]))
        else:
            value = show(settings.value(broker_key) if broker_key else key.default)
        synonyms = _broker_synonyms(settings, BROKER_KEYS[broker_key]) if broker_key else ()
        if name in configs:
            synonyms = (Synonym(name, value, ConfigSource.TOPIC), *synonyms)
        described.append(_described(key, value, synonyms, read_only=False))
    return described


def describe_broker(settings: Settings) -> list[Described]:
    """Describes this broker's configuration: its keys, and ignored ones and those of single listeners that are set."""
    keys = [key for key in BROKER_KEYS.values() if not key.internal or settings.configured(key.name)]
    ignored = [key for name, key in IGNORED_KEYS.items() if name in settings.static]
    of_listeners = [
        own.key._replace(name=name, default=None)
        for name in settings.static
        if (own := listener_key(name)) is not None and own.key is not None
    ]
    return sorted(
        _described(
            key,
            _own_value(settings, key),
            _broker_synonyms(settings, key),
            read_only=key.change is Change.NEVER,
        )
        for key in (*keys, *ignored, *of_listeners)
    )


def describe_all_brokers(settings: Settings) -> list[Described]:
    """Describes the values set at run time for all brokers, and nothing else."""
    return [
        _described(
            BROKER_KEYS[name], value.text, (Synonym(name, value.text, ConfigSource.ALL_BROKERS),), read_only=False
        )
        for name, value in sorted(settings.for_all.items())
        if name in BROKER_KEYS
    ]


def describe_group(settings: Settings, configs: Mapping[str, str]) -> list[Described]:
    """Describes a group's configuration, with the broker's values beneath it, as Kafka does from 4.3 on."""
    described = []
    for name, key in GROUP_KEYS.items():
        value = show(group_value(settings, configs, name))
        broker_key = BROKER_KEYS.get(f"group.{name}")
        if broker_key is not None:
            synonyms = _broker_synonyms(settings, broker_key)
        else:
            default = show(group_value(settings, {}, name))
            synonyms = (Synonym(name, default, ConfigSource.DEFAULT),)
        if name in configs:
            synonyms = (Synonym(name, value, ConfigSource.GROUP), *synonyms)
        described.append(_described(key, value, synonyms, read_only=False))
    return described


def describe_client_metrics(configs: Mapping[str, str]) -> list[Described]:
    return [
        _described(key, configs[name], (Synonym(name, configs[name], ConfigSource.CLIENT_METRICS),), read_only=False)
        if name in configs
        else _described(key, show(key.default), (), read_only=False)
        for name, key in CLIENT_METRICS_KEYS.items()
    ]


def _described(key: Key, value: str | None, synonyms: Iterable[Synonym], *, read_only: bool) -> Described:
    synonyms = tuple(synonyms)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if key.sensitive:
        value = None
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    return Described(key.name, value, source, read_only, key.sensitive, synonyms, key.type, key.doc)


def _own_value(settings: Settings, key: Key) -> str | None:
    """Returns the value of the key itself, without synonyms, as Kafka does."""
    configured = settings.configured(key.name)
    return show(key.parse(configured.text)) if configured is not None and configured.text.strip() else show(key.default)


def _broker_synonyms(settings: Settings, key: Key) -> tuple[Synonym, ...]:
    """Returns the values of a broker's key by precedence; the first one is its own, as in Kafka."""
    name = key.name
    names = (name, *(other for other, _ in key.synonyms))
    synonyms = [
        Synonym(other, layer[other].text, source)
        for layer, source in (
            (settings.for_this, ConfigSource.BROKER),
            (settings.for_all, ConfigSource.ALL_BROKERS),
            (settings.static, ConfigSource.STATIC),
        )
        for other in names
        if other in layer
    ]
    for other in names:
        default = show((BROKER_KEYS.get(other) or key).default)
        if default is not None:
            synonyms.append(Synonym(other, default, ConfigSource.DEFAULT))
    own = next((index for index, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms))
    return tuple(synonyms[own:])
