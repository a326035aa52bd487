"""Tables of transitions: written in rows for several states or events at a time, looked up one by one, printed."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

S = TypeVar("S", bound=enum.Enum)
V = TypeVar("V", bound=enum.Enum)
E = TypeVar("E", bound=enum.Enum)

Row: TypeAlias = tuple[S | tuple[S, ...], V | tuple[V, ...], tuple[E, ...], S]
"""In any of some states, at any of some events: the effects, in order, and the next state."""

Table: TypeAlias = Mapping[tuple[S, V], tuple[tuple[E, ...], S]]


def table_of(rows: Iterable[Row[S, V, E]]) -> dict[tuple[S, V], tuple[tuple[E, ...], S]]:
    """The rows by state and event.

    Raises:
        ValueError: two rows are for the same.
    """
    table: dict[tuple[S, V], tuple[tuple[E, ...], S]] = {}
    for states, events, effects, after in rows:
        for state in states if isinstance(states, tuple) else (states,):
            for event in events if isinstance(events, tuple) else (events,):
                if (state, event) in table:
                    raise ValueError(f"{state} and {event} stand twice in the table")
                table[state, event] = effects, after
    return table


def shown(states: type[enum.Enum], table: Table[S, V, E]) -> Iterator[str]:
    """What the states mean, and the table, a line each."""
    for state in states:
        yield f"{state.name:<12} {state.value}"
    yield ""
    for (before, event), (effects, after) in table.items():
        names = ", ".join(effect.name for effect in effects) or "-"
        yield f"{before.name:<12} {event.name:<14} {names:<20} {after.name}"
