"""Windows that slide: they lie where rows do, and not at multiples of a time.

What is kept for them is the rows themselves, as long as another may come that is near. The processor that keeps them
gives each row once for each window that it changes, and all rows of a window that there wasn't before; what follows is
aggregated as in other windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError
from kohort.spark.program.column_checks import check_types
from kohort.spark.program.internal_columns import OFFSET, TIMESTAMP, WINDOW_START
from kohort.spark.program.operations import KEPT
from kohort.spark.program.processor_specs import Operation, Process, StateKind, StateSpec
from kohort.spark.program.windows import (
    FOREVER,
    Duration,
    WindowSpec,
    check_column,
    check_end,
    duration_ms,
    kept_ms,
)

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["Slide", "SlidingSpec", "slide", "sliding"]

_LEAST_BUCKET_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class SlidingSpec(WindowSpec):
    """Windows that begin where rows are, or end there. Their last moment, `difference_ms` after the first, is in them.

    So `size_ms` is one more, and they begin at any ms.
    """

    @property
    def difference_ms(self) -> int:
        """How far the rows of a window are apart at most."""
        return self.size_ms - 1

    @property
    def end_ms(self) -> int:
        """From the start to the end that outputs have: the last moment that is in the window."""
        return self.difference_ms


def sliding(
    column: str,
    difference: Duration,
    *,
    grace: Duration,
    retention: Duration | None = None,
    end: str | None = None,
) -> WindowSpec:
    """Windows to group by, of the rows that are no further apart than a time: one for each such set of rows.

        stream.group_by("card", sliding("at", "10 minutes", grace="1 minute"))

    Each row has a window that ends with it: its own. And one that begins 1 ms after it, if another row is in that.
    So `max` over the windows of a group finds the most that there ever was within the time, wherever it begins.

    Args:
        column: a TIMESTAMP column of the stream: its event time.
        difference: how far the rows of a window are apart at most, such as "10 minutes".
        grace: how long after its end a window still takes rows, by the stream's own time: the largest until then in
            the row's partition, its own included. Rows are kept for about as long as both together.
        retention: how long after its beginning a window can be asked for; it is removed then. Without, it stays, and a
            start warns of that; "forever" says that it shall.
        end: a name for a column of outputs that has the window's end, the last moment that is in it.

    Raises:
        ProgramError: lengths that can't be.
    """
    check_column("sliding", column)
    where = f"sliding({column!r})"
    size_ms = duration_ms("difference", difference, least=0) + 1
    grace_ms = duration_ms("grace", grace, least=0)
    retention_ms = kept_ms("retention", retention)
    if retention_ms is not None and retention_ms < size_ms + grace_ms:
        raise ProgramError(
            f"{where}: retention={retention!r} isn't longer than difference and grace together, {difference!r} + "
            f"{grace!r}: windows would be removed that still take rows"
        )
    check_end(where, end)
    return SlidingSpec(column, size_ms, 1, grace_ms, retention_ms, end, forever=retention == FOREVER)


@dataclass(frozen=True)
class Slide(Operation):
    """Each row once for each window that it changes; of a new window all rows. All lengths in ms."""

    difference_ms: int
    grace_ms: int

    kind = "KSTREAM-WINDOW"

    @property
    def by_stream_time(self) -> bool:
        """Rows can be late."""
        return True

    @property
    def identity(self) -> list[object]:
        """A window is there, or isn't, by the rows that are kept."""
        return ["sliding", self.difference_ms, self.grace_ms]


def slide(
    where: str,
    name: str,
    window: SlidingSpec,
    group: tuple[tuple[str, DataType], ...],
    schema: StructType,
    key: tuple[str, ...],
    changelog: Callable[[str, str], str],
) -> Process:
    """The step that finds the windows of rows, with their start as `_window` (ms).

    Args:
        where: how messages call it.
        name: of the aggregate, with which its store's name begins.
        group: the columns that are grouped by, with their types.
        schema: the columns of its rows.
        key: what the subtopology's input is keyed by, in order.
        changelog: (a store's name, what it is of) -> its changelog topic.

    Raises:
        ProgramError: rows can't be kept.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    check_types(where, schema)
    assert window.grace_ms is not None
    own = [StructField(each, LongType()) for each in (TIMESTAMP, OFFSET)]
    names = {each for each, _ in group}
    kept = StructType([*(each for each in schema.fields if each.name not in names), *own])
    bucket_ms = max(window.size_ms, _LEAST_BUCKET_MS)
    # A row belongs to windows until the last that begins with it is closed, and then begins none.
    retention_ms = bucket_ms + window.size_ms + window.grace_ms + 1
    store = f"{name}-rows"
    topic = changelog(store, f"rows of aggregate {name!r}")
    state = StateSpec(KEPT, store, topic, StateKind.LIST, kept, None, bucket_ms, retention_ms, own=True)
    output = StructType([*schema.fields, StructField(WINDOW_START, LongType())])
    return Process(
        name, group, schema, output, Slide(window.difference_ms, window.grace_ms), (state,), key, window.column
    )
