"""Rules of reconciliation for consumer groups: a partition has to be revoked before another member gets it."""

from __future__ import annotations

from typing import Final

from kohort.coordinator.modern.partitions import ASSIGNED, Role
from kohort.coordinator.modern.reconciliation import Conversion, Rules


def _conversion(before: Role, after: Role) -> Conversion:
    """Never asked: there is only one role."""
    del before, after
    return Conversion.AT_ONCE


RULES: Final = Rules(exclusive=frozenset({ASSIGNED}), conversion=_conversion)
