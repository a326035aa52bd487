"""`group.consumer.migration.policy`: which way groups with members may go between the two protocols of consumers."""

from __future__ import annotations

import enum


class MigrationPolicy(enum.Enum):
    """Which way groups with members may be converted; those without always are, as needed."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group becomes a consumer group when a member of the consumer protocol joins."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group becomes a classic one when its last member of the consumer protocol has gone."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def mixes(self) -> bool:
        """Whether members of the classic protocol may join a consumer group that has members."""
        return self is not MigrationPolicy.DISABLED
