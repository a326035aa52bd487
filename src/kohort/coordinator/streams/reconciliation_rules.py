"""Rules of reconciliation for streams groups: which roles of a task have to be revoked before others get it."""

from __future__ import annotations

from typing import Final

from kohort.coordinator.modern.reconciliation import Conversion, Rules
from kohort.streams.tasks import Role


def _conversion(before: Role, after: Role) -> Conversion:
    """A client turns a copy into the running task and back without restoring anything, so neither is a revocation."""
    if after is Role.ACTIVE:
        return Conversion.WHEN_FREE
    return Conversion.ON_CONFIRMATION if before is Role.ACTIVE else Conversion.AT_ONCE


RULES: Final = Rules(exclusive=frozenset({Role.ACTIVE}), conversion=_conversion)
"""The member that runs a task has to confirm that it stopped before another runs it."""
