"""What single parts of the broker are configured with, out of the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.group_keys import GROUP_KEYS, GROUP_LIMITS
from kohort.broker.config.keys import Value
from kohort.broker.config.settings import Settings
from kohort.broker.config.topic_keys import BROKER_KEY_OF, TOPIC_KEYS
from kohort.log.config import LogConfig

if TYPE_CHECKING:
    from kohort.coordinator.shard import GroupSettings
    from kohort.coordinator.streams.settings import StreamsSettings
    from kohort.coordinator.transactions.settings import TransactionSettings

__all__ = [
    "group_settings", "group_value", "log_config", "settings_for", "streams_settings", "topic_value",
    "transaction_settings",
]  # fmt: skip

T = TypeVar("T")

_NOT_TOPICS: Final = frozenset({"compression_level", "producer_id_expiration_ms"})
_LOG_FIELDS: Final = tuple(field.name for field in fields(LogConfig) if field.name not in _NOT_TOPICS)


def topic_value(settings: Settings, configs: Mapping[str, str], name: str) -> Value:
    """The value of a topic's key: what was configured for the topic, or else the broker's default.

    Raises:
        KeyError: topics have no such key: a mistake in the program.
        ValueError: the topic's text is no value of the key.
    """
    key = TOPIC_KEYS[name]
    if name in configs:
        return key.parse(configs[name])
    broker_key = BROKER_KEY_OF.get(name)
    return settings.value(broker_key) if broker_key else key.default


def log_config(settings: Settings, configs: Mapping[str, str]) -> LogConfig:
    """What a topic's logs are configured with.

    Args:
        settings: the broker's configuration.
        configs: what was configured for the topic, checked.
    """
    values: dict[str, Any] = {field: topic_value(settings, configs, field.replace("_", ".")) for field in _LOG_FIELDS}
    values["cleanup_policy"] = frozenset(values["cleanup_policy"])
    values["producer_id_expiration_ms"] = settings.int("producer.id.expiration.ms")
    values["segment_bytes"] = topic_value(settings, configs, "internal.segment.bytes") or values["segment_bytes"]
    codec = values["compression_type"]
    if f"compression.{codec}.level" in TOPIC_KEYS:
        level = topic_value(settings, configs, f"compression.{codec}.level")
        values["compression_level"] = None if (codec, level) == ("gzip", -1) else level
    return LogConfig(**values)


def settings_for(kind: type[T], settings: Settings) -> T:
    """A part's settings: a dataclass whose fields are the broker's keys, with underscores for dots.

    Raises:
        KeyError: a field is no key: a mistake in the program.
    """
    return kind(**{field.name: settings.value(field.name.replace("_", ".")) for field in fields(kind)})  # type: ignore[arg-type]


def group_settings(settings: Settings) -> GroupSettings:
    """What the group coordinator is configured with."""
    from kohort.coordinator.shard import GroupSettings

    return settings_for(GroupSettings, settings)


def group_value(settings: Settings, configs: Mapping[str, str], name: str) -> Value:
    """The value of a group's key: what was configured for the group, or else the broker's default.

    Raises:
        KeyError: groups have no such key: a mistake in the program.
        ValueError: the group's text is no value of the key.
    """
    key = GROUP_KEYS[name]
    if name in configs:
        return key.parse(configs[name])
    if name == "streams.assignor.name":
        return settings.names("group.streams.assignors")[0]
    broker_key = f"group.{name}"
    return settings.value(broker_key) if broker_key in BROKER_KEYS else key.default


def streams_settings(settings: Settings, configs: Mapping[str, str]) -> StreamsSettings:
    """What a streams group is configured with.

    The broker's bounds may have changed since a value was set. Then the nearest that they allow counts, and instead of
    an assignor that isn't offered any more the default.

    Args:
        settings: the broker's configuration.
        configs: what was configured for the group, checked.
    """
    from kohort.coordinator.streams.settings import StreamsSettings

    values: dict[str, Any] = {"max_size": settings.int("group.streams.max.size")}
    for field in fields(StreamsSettings):
        name = f"streams.{field.name.replace('_', '.')}"
        if name not in GROUP_KEYS:
            continue
        values[field.name] = value = group_value(settings, configs, name)
        if name in configs and isinstance(value, int):
            low, high = GROUP_LIMITS.get(name, (None, None))
            at_least = value if low is None else max(value, settings.int(low))
            values[field.name] = at_least if high is None else min(at_least, settings.int(high))
    if values["assignor_name"] not in settings.names("group.streams.assignors"):
        values["assignor_name"] = group_value(settings, {}, "streams.assignor.name")
    return StreamsSettings(**values)


def transaction_settings(settings: Settings) -> TransactionSettings:
    """What the transaction coordinator is configured with."""
    from kohort.coordinator.transactions.settings import TransactionSettings

    return settings_for(TransactionSettings, settings)
