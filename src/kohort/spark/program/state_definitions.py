"""The state that functions of the user's keep, as it is written in programs."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.spark.program.processor_specs import StateKind
from kohort.spark.program.sources import Schema

__all__ = ["StateDef", "list_state", "map_state", "value_state"]


@dataclass(frozen=True)
class StateDef:
    """A state: what is kept for each group. Made by `value_state`, `list_state` or `map_state`."""

    kind: StateKind
    columns: Schema
    map_key: Schema | None = None


def value_state(columns: Schema) -> StateDef:
    """One row of these columns for each group.

    Args:
        columns: as DDL ("n BIGINT, since TIMESTAMP") or StructType.
    """
    return StateDef(StateKind.VALUE, columns)


def list_state(columns: Schema) -> StateDef:
    """Rows of these columns for each group, in the order in which they were added.

    What is added is written, not what is there already; what is read is all of a group's list.
    """
    return StateDef(StateKind.LIST, columns)


def map_state(key: Schema, columns: Schema) -> StateDef:
    """For each group rows of these columns by a key: `map_state("item STRING", "n BIGINT")`.

    Args:
        key: the key's columns: of types that streams can be grouped by.
        columns: the others.
    """
    return StateDef(StateKind.MAP, columns, key)
