"""The three kinds of modern groups, as reconciliation sees them."""

from __future__ import annotations

import enum

from kohort.coordinator.modern.reconciliation import Conversion, Rules
from kohort.coordinator.streams.reconciliation_rules import RULES as STREAMS
from kohort.streams.tasks import Role


class Holder(enum.Enum):
    """The one role of partitions."""

    OWNER = "owner"


def no_conversion(before: Holder, after: Holder) -> Conversion:
    raise AssertionError(f"there is but one role, not {before} and {after}")


CONSUMERS = Rules(exclusive=frozenset({Holder.OWNER}), conversion=no_conversion)
SHARES = Rules(exclusive=frozenset[Holder](), conversion=no_conversion, waits=False)

OWNER = Holder.OWNER
ACTIVE, STANDBY, WARMUP = Role

__all__ = ["ACTIVE", "CONSUMERS", "OWNER", "SHARES", "STANDBY", "STREAMS", "WARMUP", "Holder"]
