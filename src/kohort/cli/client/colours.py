"""What colours mean: green is well, yellow is under way or behind, red needs somebody. Words say it, too."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from kohort.cli.terminal import printable
from kohort.client.administration.awaited_members import UNDER_WAY

_STATES: Final = {
    "stable": "green",
    "empty": "dim",
    **dict.fromkeys(UNDER_WAY, "yellow"),
    "notready": "red",
    "dead": "red",
}


def state_text(state: str) -> Text | None:
    """A group's state; None if it isn't known."""
    return Text(printable(state), _STATES.get(state.lower(), "")) if state else None


def lag_text(lag: int | None) -> Text | None:
    """Records that are left to read: none is well. None if they aren't known."""
    return None if lag is None else Text(f"{lag:,}", "yellow" if lag else "green")
