"""What processors do, as data: see `kohort.spark.jobs.processors` for how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kohort.spark.program.internal_columns import OFFSET, TIMESTAMP
from kohort.spark.program.processor_specs import Operation

TIMERS: Final = "timers"
"""What the state of a user's function is called that has its timers."""


SIDE: Final = "_side"
"""INT: which side of a join a row is of: 0 for the left one, 1 for the right one."""
TIME_COLUMN: Final = TIMESTAMP
OFFSET_COLUMN: Final = OFFSET
"""What a row that is kept for a join has beside its side's columns: its time (ms), and its record's offset."""
LEFT: Final = "left"
RIGHT: Final = "right"
UNMATCHED: Final = "unmatched"
CLOCK: Final = "clock"
"""What the states of a join are called: the rows of both sides, those that wait for a match, and how far time is."""


@dataclass(frozen=True)
class UserFunction(Operation):
    """A function of the user's over the rows of an epoch, and the state of their groups."""

    function: Callable[[Any, Any], Any]

    kind = "KSTREAM-PROCESSOR"


@dataclass(frozen=True)
class StreamJoin(Operation):
    """Two streams by columns and time.

    Attributes:
        on: the columns that are joined on.
        left, right: the other columns of each side, as they are called in the rows.
        how: "inner", "left" or "outer".
        before_ms, after_ms: a right row is joined whose time is from so long before the left one's to so long after.
        grace_ms: how long rows that come late are still joined.
    """

    on: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    how: str
    before_ms: int
    after_ms: int
    grace_ms: int

    kind = "KSTREAM-JOIN"

    @property
    def keeps(self) -> tuple[int, ...]:
        """The sides whose rows without a match are given, too."""
        return {"inner": (), "left": (0,), "outer": (0, 1)}[self.how]

    @property
    def identity(self) -> list[object]:
        """Rows wait by when they stop to, so all lengths are in it."""
        return ["join", self.how, self.before_ms, self.after_ms, self.grace_ms]
