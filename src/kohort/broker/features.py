"""Features: protocols that the whole cluster has switched on, by level (KIP-584).

A level that was changed is a record in the metadata log, so it outlives a restart. One that wasn't is Kafka 4.4's for a
new cluster. Clients are told the levels by ApiVersions, and change them by UpdateFeatures.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.stored.cluster_metadata import FeatureLevelRecord, MetadataRecord

__all__ = ["SUPPORTED", "FeatureUpdate", "Features", "UpgradeType"]

SUPPORTED: Final[Mapping[str, int]] = {
    "group.version": 1,  # consumer groups (KIP-848)
    "share.version": 2,  # 1: share groups (KIP-932), 2: with dead letters (KIP-1191)
    "streams.version": 1,  # streams groups (KIP-1071)
    "transaction.version": 2,  # 2: a new producer epoch for every transaction (KIP-890)
}
"""The highest level of each feature, which it has until it is changed. The lowest is 0: off."""


class UpgradeType(enum.IntEnum):
    """What a change of a level may do, with Kafka's numbers. No level here loses data when it goes down."""

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
        self._levels = dict(SUPPORTED)
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
            self._levels[record.name] = min(record.feature_level, SUPPORTED[record.name])
            self.epoch += 1

    def _why_not(self, update: FeatureUpdate) -> str | None:
        """Why a level can't be changed so; None if it can."""
        highest = SUPPORTED.get(update.name)
        if highest is None:
            return f"there is no such feature here, only {', '.join(SUPPORTED)}"
        if not 0 <= update.level <= highest:
            return f"its levels are 0 to {highest}"
        if update.upgrade_type not in _UPGRADE_TYPES:
            return f"{update.upgrade_type} is none of the upgrade types 1 to 3"
        level = self._levels[update.name]
        if update.level < level and update.upgrade_type == UpgradeType.UPGRADE:
            return f"it is at level {level}, and the request is an upgrade, not a safe or unsafe downgrade"
        if update.level > level and update.upgrade_type != UpgradeType.UPGRADE:
            return f"it is at level {level}, and the request is a downgrade"
        return None
