"""The state that functions of the user's keep, as it is written in programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kohort.spark.errors import ProgramError
from kohort.spark.program.processor_specs import StateKind
from kohort.spark.program.sources import Schema
from kohort.spark.program.windows import FOREVER, Duration, kept_ms

__all__ = ["StateDef", "list_state", "map_state", "value_state"]

TtlBy = Literal["event", "processing"]


@dataclass(frozen=True)
class StateDef:
    """A state: what is kept for each group. Made by `value_state`, `list_state` or `map_state`.

    Attributes:
        ttl_ms: how long after it was written an entry is kept; 0: until the function takes it out.
        ttl_by: by which time: the stream time of the task, or the clock.
        forever: whether the program says that nothing else ends it.
    """

    kind: StateKind
    columns: Schema
    map_key: Schema | None = None
    ttl_ms: int = 0
    ttl_by: TtlBy = "event"
    forever: bool = False


def value_state(columns: Schema, *, ttl: Duration | None = None, ttl_by: TtlBy = "event") -> StateDef:
    """One row of these columns for each group.

    Args:
        columns: as DDL ("n BIGINT, since TIMESTAMP") or StructType.
        ttl: how long after its last write a row can be read ("1 day"). It is taken out of store and changelog soon
            after. By default it is kept until the function takes it out.
        ttl_by: "event" for the stream time of the task, "processing" for the clock, as the epoch has it.

    Raises:
        ProgramError: that is no length of time, or no time to go by.
    """
    return StateDef(StateKind.VALUE, columns, ttl_ms=_ttl_ms(ttl, ttl_by), ttl_by=ttl_by)


def list_state(columns: Schema, *, ttl: Duration | None = None, ttl_by: TtlBy = "event") -> StateDef:
    """Rows of these columns for each group, in the order in which they were added.

    What is added is written, not what is there already; what is read is all of a group's list.

    Args:
        columns: as of `value_state`.
        ttl, ttl_by: likewise; each row goes for itself. A start warns of lists without a `ttl`; "forever" says that the
            function takes rows out, or that they shall stay.

    Raises:
        ProgramError: as of `value_state`.
    """
    return StateDef(StateKind.LIST, columns, None, _ttl_ms(ttl, ttl_by), ttl_by, forever=ttl == FOREVER)


def map_state(key: Schema, columns: Schema, *, ttl: Duration | None = None, ttl_by: TtlBy = "event") -> StateDef:
    """For each group rows of these columns by a key: `map_state("item STRING", "n BIGINT")`.

    Args:
        key: the key's columns: of types that streams can be grouped by.
        columns: the others.
        ttl, ttl_by: as of `value_state`; each row goes for itself.

    Raises:
        ProgramError: as of `value_state`.
    """
    return StateDef(StateKind.MAP, columns, key, _ttl_ms(ttl, ttl_by), ttl_by)


def _ttl_ms(ttl: Duration | None, by: object) -> int:
    if by not in ("event", "processing"):
        raise ProgramError(f'ttl_by={by!r}: "event", by the stream time of the task, or "processing", by the clock')
    return kept_ms("ttl", ttl) or 0
