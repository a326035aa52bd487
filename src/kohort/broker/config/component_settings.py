"""The settings of logs, topics, groups and coordinators, taken from the broker's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.group_keys import GROUP_KEYS, GROUP_LIMITS
from kohort.broker.config.keys import Value
from kohort.broker.config.settings import Settings
from kohort.broker.config.topic_keys import BROKER_KEY_OF, TOPIC_KEYS
from kohort.log.config import LogConfig

if TYPE_CHECKING:
    from kohort.coordinator.consumer.settings import ConsumerSettings
    from kohort.coordinator.shard import GroupSettings
    from kohort.coordinator.share.settings import ShareSettings
    from kohort.coordinator.share_state import ShareStateSettings
    from kohort.coordinator.streams.settings import StreamsSettings
    from kohort.coordinator.transactions.settings import TransactionSettings

T = TypeVar("T")

_NOT_TOPIC_KEYS: Final = frozenset({"compression_level", "producer_id_expiration_ms"})
_LOG_FIELDS: Final = tuple(field.name for field in fields(LogConfig) if field.name not in _NOT_TOPIC_KEYS)


def topic_value(settings: Settings, configs: Mapping[str, str], name: str) -> Value:
    """Returns the value of a topic's key: the topic's own, or the broker's default.

    Raises:
        KeyError: topics have no such key (a programming error).
        ValueError: the topic's value doesn't parse.
    """
    key = TOPIC_KEYS[name]
    if name in configs:
        return key.parse(configs[name])
    broker_key = BROKER_KEY_OF.get(name)
    return settings.value(broker_key) if broker_key else key.default


def log_config(settings: Settings, configs: Mapping[str, str]) -> LogConfig:
    """Returns the configuration of a topic's logs.

    Args:
        configs: the topic's own configuration, validated.
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
    """Makes a dataclass whose fields are broker keys with underscores for dots.

    Raises:
        KeyError: a field is no key (a programming error).
    """
    return kind(**{field.name: settings.value(field.name.replace("_", ".")) for field in fields(kind)})  # type: ignore[arg-type]


def group_settings(settings: Settings) -> GroupSettings:
    from kohort.coordinator.shard import GroupSettings

    return settings_for(GroupSettings, settings)


def group_value(settings: Settings, configs: Mapping[str, str], name: str) -> Value:
    """Returns the value of a group's key: the group's own, or the broker's default.

    Raises:
        KeyError: groups have no such key (a programming error).
        ValueError: the group's value doesn't parse.
    """
    key = GROUP_KEYS[name]
    if name in configs:
        return key.parse(configs[name])
    if name == "streams.assignor.name":
        return settings.names("group.streams.assignors")[0]
    broker_key = f"group.{name}"
    return settings.value(broker_key) if broker_key in BROKER_KEYS else key.default


def bounded_group_value(settings: Settings, configs: Mapping[str, str], name: str) -> int:
    """Returns the value of a group's key as `group_value` does; its own is clamped to the broker's bounds of today."""
    value = group_value(settings, configs, name)
    assert isinstance(value, int)
    low, high = GROUP_LIMITS.get(name, (None, None)) if name in configs else (None, None)
    at_least = value if low is None else max(value, settings.int(low))
    return at_least if high is None else min(at_least, settings.int(high))


def streams_settings(settings: Settings, configs: Mapping[str, str]) -> StreamsSettings:
    """Returns the settings of a streams group.

    The broker's bounds may have changed since a value was set: values are clamped to them, and an assignor that is no
    longer offered is replaced by the default.

    Args:
        configs: the group's own configuration, validated.
    """
    from kohort.coordinator.streams.settings import StreamsSettings

    values: dict[str, Any] = {
        "max_size": settings.int("group.streams.max.size"),
        **_group_values("streams", [field.name for field in fields(StreamsSettings)], settings, configs),
    }
    if values["assignor_name"] not in settings.names("group.streams.assignors"):
        values["assignor_name"] = group_value(settings, {}, "streams.assignor.name")
    return StreamsSettings(**values)


def consumer_settings(settings: Settings, configs: Mapping[str, str]) -> ConsumerSettings:
    """Returns the settings of a consumer group. Values are clamped to the broker's bounds.

    Args:
        configs: the group's own configuration, validated.
    """
    from kohort.coordinator.consumer.settings import ConsumerSettings

    return ConsumerSettings(
        max_size=settings.int("group.consumer.max.size"),
        assignors=tuple(settings.names("group.consumer.assignors")),
        regex_refresh_interval_ms=settings.int("group.consumer.regex.refresh.interval.ms"),
        **_group_values("consumer", [field.name for field in fields(ConsumerSettings)], settings, configs),
    )


def share_settings(settings: Settings, configs: Mapping[str, str]) -> ShareSettings:
    """Returns a share group's settings of membership. Values are clamped to the broker's bounds.

    Args:
        configs: the group's own configuration, validated.
    """
    from kohort.coordinator.share.settings import ShareSettings

    return ShareSettings(
        initialize_retry_interval_ms=settings.int("group.share.initialize.retry.interval.ms"),
        max_size=settings.int("group.share.max.size"),
        assignors=settings.names("group.share.assignors"),
        **_group_values("share", [field.name for field in fields(ShareSettings)], settings, configs),
    )


def _group_values(kind: str, names: Iterable[str], settings: Settings, configs: Mapping[str, str]) -> dict[str, Any]:
    """The values of those settings that are keys of groups of a kind, by the settings' names; clamped to the bounds."""
    values: dict[str, Any] = {}
    for field in names:
        name = f"{kind}.{field.replace('_', '.')}"
        if name not in GROUP_KEYS:
            continue
        value = group_value(settings, configs, name)
        values[field] = bounded_group_value(settings, configs, name) if isinstance(value, int) else value
    return values


def transaction_settings(settings: Settings) -> TransactionSettings:
    from kohort.coordinator.transactions.settings import TransactionSettings

    return settings_for(TransactionSettings, settings)


def share_state_settings(settings: Settings) -> ShareStateSettings:
    from kohort.coordinator.share_state import ShareStateSettings

    return settings_for(ShareStateSettings, settings)
