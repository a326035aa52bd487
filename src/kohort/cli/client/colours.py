"""What colours mean: green is well, yellow is under way or behind, red needs somebody. Words say it, too."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from kohort.cli.terminal import printable

_STATES: Final = {
    "stable": "green",
    "empty": "dim",
    "assigning": "yellow",
    "reconciling": "yellow",
    "preparingrebalance": "yellow",
    "completingrebalance": "yellow",
    "notready": "red",
    "dead": "red",
}

UNDER_WAY: Final = frozenset(state for state, colour in _STATES.items() if colour == "yellow")
"""States of groups whose members don't all have what they are to have, in lower case."""


def state_text(state: str) -> Text | None:
    """A group's state; None if it isn't known."""
    return Text(printable(state), _STATES.get(state.lower(), "")) if state else None


def lag_text(lag: int | None) -> Text | None:
    """Records that are left to read: none is well. None if they aren't known."""
    return None if lag is None else Text(f"{lag:,}", "yellow" if lag else "green")
