"""What processors do, as data: see `kohort.spark.jobs.processors` for how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from kohort.spark.program.internal_columns import OFFSET, TIMESTAMP
from kohort.spark.program.processor_specs import Operation
from kohort.spark.program.windows import SessionSpec, WindowSpec


class Change(IntEnum):
    """What becomes of a session in an epoch."""

    GROWN = 0
    """It has new rows."""
    FINAL = 1
    """It has new rows, and is closed."""
    CLOSED = 2
    """It is closed, without new rows: its row is none of the stream's."""
    FORGOTTEN = 3
    """It is removed; likewise."""
    ABSORBED = 4
    """It is part of another now."""


if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TIMERS: Final = "timers"
"""What the state of a user's function is called that has its timers."""
CLOCK_TIMERS: Final = "clock-timers"
"""Likewise, of those that go by the clock."""
TTL: Final = "ttl"
"""What the index is called by which entries of a state expire, after the state's name."""
WRITTEN: Final = "_written"
"""LONG: when a row of a state with a time to live was written, in ms."""
KEPT: Final = "kept"
"""What the only state is called of what selects rows."""
RANK: Final = "rank"
"""The column that `Top` adds."""
PLACE: Final = "place"
"""The column that `Top` adds, too, where rows of equal rank are kept: no two rows of a group have the same."""


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


SESSIONS: Final = "sessions"
DUE: Final = "due"
"""What the states of sessions are called: when they began, by group and end, and when they have to be looked at."""
CHANGE: Final = "change"
BEFORE: Final = "before"
AFTER: Final = "after"
"""The columns of a table's changes: "insert", "update" or "delete", and the row's columns, but its key's."""


@dataclass(frozen=True)
class TableChanges(Operation):
    """What upserts of a table change: pairs of the row before and the row after, or rows with a sign, `_sign`."""

    pairs: bool

    what = "changes"
    kind = "KTABLE-CHANGES"


@dataclass(frozen=True)
class UserFunction(Operation):
    """A function of the user's over the rows of an epoch, and the state of their groups.

    Attributes:
        outputs: the names and columns of several outputs, which its rows have beside each other; () for just one.
    """

    function: Callable[[Any, Any], Any]
    outputs: tuple[tuple[str, StructType], ...] = ()

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


@dataclass(frozen=True)
class Sessions(Operation):
    """Which session each row is in. The aggregate that follows keeps what the sessions have.

    Attributes:
        closes: whether a session is over for good when it is closed, and is written then.
    """

    window: SessionSpec
    closes: bool

    kind = "KSTREAM-SESSIONS"

    @property
    def by_stream_time(self) -> bool:
        """Whether rows can be late."""
        return self.window.grace_ms is not None

    @property
    def kept_ms(self) -> int | None:
        """How long after the last row and the gap a session can be joined with others; None: always."""
        return self.window.grace_ms if self.closes else self.window.retention_ms

    @property
    def identity(self) -> list[object]:
        """What it keeps means something else with other gaps."""
        return ["sessions", self.window.column, self.window.gap_ms, self.window.gap_column, self.closes]


@dataclass(frozen=True)
class Dedupe(Operation):
    """The first row of each group passes, and others that are further than so long (ms) from it. None: no others.

    Attributes:
        forever: whether the program says that each key is kept for ever.
    """

    within_ms: int | None
    forever: bool = False

    what = "dedupe"
    kind = "KSTREAM-DEDUPE"
    passes_rows = True

    @property
    def by_stream_time(self) -> bool:
        """Whether rows can be late."""
        return self.within_ms is not None

    @property
    def identity(self) -> list[object]:
        """What it keeps means something else with other parameters."""
        return [self.what, self.within_ms]

    @property
    def bucket_ms(self) -> int:
        """Each bucket of time has at most one row of a group that passed: there is more than `within_ms` between."""
        return 0 if self.within_ms is None else self.within_ms + 1

    @property
    def retention_ms(self) -> int:
        """A row is judged by those up to `within_ms` before it, and is itself at most as long behind stream time."""
        return 0 if self.within_ms is None else 2 * self.within_ms + self.bucket_ms


@dataclass(frozen=True)
class Latest(Operation):
    """Each row passes that is, by a column, the last of its group so far; or the first, with `earliest`."""

    by: str
    earliest: bool

    passes_rows = True

    @property
    def what(self) -> str:
        """The method that makes it."""
        return "earliest_by" if self.earliest else "latest_by"

    @property
    def kind(self) -> str:
        """As topologies are described."""
        return "KSTREAM-EARLIEST" if self.earliest else "KSTREAM-LATEST"

    @property
    def identity(self) -> list[object]:
        """What it keeps means something else with other parameters."""
        return [self.what, self.by]


@dataclass(frozen=True)
class Top(Operation):
    """The first `n` rows of each group, or of each window of it, by a column: with their ranks, as these change.

    Attributes:
        tied: whether rows that are equal have the same rank, and those that are equal to the n-th are kept, too.
    """

    n: int
    by: str
    descending: bool
    window: WindowSpec | None
    tied: bool = False

    what = "top"
    kind = "KSTREAM-TOP"
    passes_rows = True

    @property
    def by_stream_time(self) -> bool:
        """Whether rows can be late."""
        return self.window is not None and self.window.grace_ms is not None

    @property
    def identity(self) -> list[object]:
        """What it keeps means something else with other parameters."""
        windows = None if self.window is None else self.window.identity
        return [self.what, self.n, self.by, self.descending, windows, *(["tied"] if self.tied else [])]
