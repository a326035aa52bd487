"""Features: protocols that the whole cluster has switched on, by level (KIP-584).

A level that was changed is a record in the metadata log, so it outlives a restart. One that wasn't is Kafka's for a new
cluster; that of metadata.version is the log's first record. Clients are told the levels by ApiVersions, and change them
by UpdateFeatures.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.stored.cluster_metadata import FeatureLevelRecord, MetadataRecord

__all__ = ["METADATA_VERSION", "SUPPORTED", "FeatureUpdate", "Features", "Levels", "UpgradeType"]

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"


class Levels(NamedTuple):
    """The levels that a feature can have; 0 means that it is off."""

    lowest: int
    highest: int


SUPPORTED: Final[Mapping[str, Levels]] = {
    METADATA_VERSION: Levels(7, 30),  # which records the metadata log may have: Kafka 3.3 to 4.3
    KRAFT_VERSION: Levels(0, 1),  # 1: voters are known by their directories (KIP-853)
    "eligible.leader.replicas.version": Levels(0, 1),  # (KIP-966) without effect, as there is one replica
    "group.version": Levels(0, 1),  # consumer groups (KIP-848)
    "share.version": Levels(0, 2),  # 1: share groups (KIP-932), 2: with dead letters (KIP-1191)
    "streams.version": Levels(0, 1),  # streams groups (KIP-1071)
    "transaction.version": Levels(0, 2),  # 2: a new producer epoch for every transaction (KIP-890)
}
"""The features, each at its highest level until it is changed."""

NEW_RECORDS: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels of metadata.version that brought other records. Below them those couldn't be read any more.

So it never gets below 23, and what depends on it (eligible leader replicas, on 23) needs no check.
"""


class UpgradeType(enum.IntEnum):
    """What a change of a level may do, with Kafka's numbers. As there, no change loses data, whatever it is allowed."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_UPGRADE_TYPES: Final = frozenset(map(int, UpgradeType))


class FeatureUpdate(NamedTuple):
    """A new level for a feature."""

    name: str
    level: int
    upgrade_type: int


class Features:
    """The levels of the cluster's features.

    Args:
        append: appends records to the metadata log, as one batch; raises KafkaError.

    Attributes:
        epoch: rises with every change; the same after a restart.
    """

    def __init__(self, append: Callable[[list[MetadataRecord]], None]) -> None:
        self._append = append
        self._levels = {name: levels.highest for name, levels in SUPPORTED.items()}
        self.epoch = 0

    def level(self, name: str) -> int:
        """The level of a supported feature; 0 means that it is off."""
        return self._levels[name]

    def finalized(self) -> dict[str, int]:
        """The features that are on, with their levels."""
        return {name: level for name, level in self._levels.items() if level}

    def update(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Changes levels: all of them, or none.

        Raises:
            KafkaError: INVALID_UPDATE_VERSION, or KAFKA_STORAGE_ERROR.
        """
        for each in updates:
            reason = self._why_not(each)
            if reason is not None:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"Feature {shown(each.name)} can't be set to level {each.level}: {reason}.",
                )
        records: list[MetadataRecord] = [
            FeatureLevelRecord(name=each.name, feature_level=each.level)
            for each in {each.name: each for each in updates}.values()
            if each.level != self._levels[each.name]
        ]
        if records and not validate_only:
            self._append(records)
            for record in records:
                self.replay(record)

    def replay(self, record: MetadataRecord) -> None:
        """Applies a record of the metadata log. Features that aren't known here are passed over."""
        if isinstance(record, FeatureLevelRecord) and record.name in SUPPORTED:
            self._levels[record.name] = min(record.feature_level, SUPPORTED[record.name].highest)
            self.epoch += 1

    def _why_not(self, update: FeatureUpdate) -> str | None:
        """Why a level can't be changed so; None if it can."""
        levels = SUPPORTED.get(update.name)
        if levels is None:
            return f"there is no such feature here, only {', '.join(SUPPORTED)}"
        if not levels.lowest <= update.level <= levels.highest:
            return f"its levels are {levels.lowest} to {levels.highest}"
        if update.upgrade_type not in _UPGRADE_TYPES:
            return f"{update.upgrade_type} is none of the upgrade types 1 to 3"
        level = self._levels[update.name]
        if update.level < level and update.upgrade_type == UpgradeType.UPGRADE:
            return f"it is at level {level}, and the request is an upgrade, not a safe or unsafe downgrade"
        if update.level > level and update.upgrade_type != UpgradeType.UPGRADE:
            return f"it is at level {level}, and the request is a downgrade"
        if update.name == METADATA_VERSION and any(update.level < each <= level for each in NEW_RECORDS):
            return (
                f"it is at level {level}, whose metadata can't be read below; not even an unsafe downgrade is possible"
            )
        if update.name == KRAFT_VERSION and update.level < level:
            return f"it is at level {level}, and never goes down"
        return None
