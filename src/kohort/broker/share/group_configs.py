"""The settings of each share group's partitions, ready for the next fetch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kohort.broker.config import Settings, bounded_group_value, group_value
from kohort.broker.group_configs import GroupConfigs
from kohort.broker.topics import Topics
from kohort.coordinator.share_partition import SharePartitionSettings

DEAD_LETTERS: Final = 2
"""First level of share.version with dead letters (KIP-1191)."""


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """What a group's own configuration, or the broker's, says of its partitions.

    Attributes:
        partition: locks, limits and deliveries.
        committed: whether it reads committed records only (share.isolation.level).
        auto_offset_reset: where it begins without an offset (share.auto.offset.reset).
        dead_letter_topic: errors.deadletterqueue.topic.name; "" without one, or where share.version doesn't allow it.
        copy_dead_letters: whether a dead letter has key and value of the record
            (errors.deadletterqueue.copy.record.enable).
    """

    partition: SharePartitionSettings
    committed: bool
    auto_offset_reset: str
    dead_letter_topic: str = ""
    copy_dead_letters: bool = False


def share_group_settings(settings: Settings, configs: Mapping[str, str], *, dead_letters: bool) -> ShareGroupSettings:
    """Returns the settings of a share group; values beyond the broker's bounds of today are clamped to them.

    Args:
        configs: the group's own configuration, validated.
        dead_letters: whether share.version allows them.
    """
    topic = str(group_value(settings, configs, "errors.deadletterqueue.topic.name")) if dead_letters else ""
    return ShareGroupSettings(
        SharePartitionSettings(
            record_lock_duration_ms=bounded_group_value(settings, configs, "share.record.lock.duration.ms"),
            delivery_count_limit=bounded_group_value(settings, configs, "share.delivery.count.limit"),
            max_record_locks=bounded_group_value(settings, configs, "share.partition.max.record.locks"),
            renew_enabled=bool(group_value(settings, configs, "share.renew.acknowledge.enable")),
            dead_letters=bool(topic),
        ),
        group_value(settings, configs, "share.isolation.level") == "read_committed",
        str(group_value(settings, configs, "share.auto.offset.reset")),
        topic,
        bool(group_value(settings, configs, "errors.deadletterqueue.copy.record.enable")),
    )


class ShareGroupConfigs(GroupConfigs[ShareGroupSettings]):
    """The settings of share groups: the broker's, or those of a group with a configuration of its own.

    Args:
        dead_letters: returns whether share.version allows dead letters now.
    """

    def __init__(self, settings: Settings, topics: Topics, dead_letters: Callable[[], bool]) -> None:
        self._dead_letters = dead_letters
        self._with_dead_letters = dead_letters()
        super().__init__(settings, topics, self._settings_of)

    def of(self, group_id: str) -> ShareGroupSettings:
        """A group's settings; the same object until they change."""
        if self._dead_letters() is not self._with_dead_letters:  # share.version has changed
            self._with_dead_letters = not self._with_dead_letters
            self.configure(self._settings)
        return super().of(group_id)

    def _settings_of(self, settings: Settings, configs: Mapping[str, str]) -> ShareGroupSettings:
        return share_group_settings(settings, configs, dead_letters=self._with_dead_letters)
