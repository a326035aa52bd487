"""The life of a member of a streams group, on one screen.

`Membership` makes an input of everything that happens, and looks up here what state comes of it. What it has to do on
the way is said once for each state that is entered (`ENTERING`), whichever way it is entered.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

__all__ = ["ENTERING", "HEARTBEATING", "TRANSITIONS", "Input", "State", "table"]


class State(enum.Enum):
    """Where a member is."""

    UNJOINED = "not begun"
    JOINING = "joining"
    RECONCILING = "reconciling"
    STABLE = "stable"
    FENCED = "fenced"
    LEAVING = "leaving"
    DEPARTING = "departing"
    LEFT = "left"
    FAILED = "failed"


class Input(enum.Enum):
    """What happens to it."""

    BEGIN = "the user starts it"
    ASSIGNED = "an answer; the application lacks tasks, or has some that it shouldn't"
    CONFIRMED = "an answer; the application has just its tasks"
    SETTLED = "the application has taken and closed what it was told to"
    FENCED = "the group doesn't know it any more, or it doesn't know what it has from the group"
    REFUSED = "an error that trying again won't mend"
    STOP = "the user, or the group, wants it to give up its tasks and leave"
    QUIT = "the user closes it"
    GONE = "leaving was answered, or nobody answers it"


S, I = State, Input  # noqa: E741

TRANSITIONS: Final[Mapping[State, Mapping[Input, State]]] = {
    S.UNJOINED: {I.BEGIN: S.JOINING, I.STOP: S.LEFT, I.QUIT: S.LEFT},
    S.JOINING: {
        I.ASSIGNED: S.RECONCILING, I.CONFIRMED: S.STABLE,
        I.FENCED: S.FENCED, I.REFUSED: S.FAILED, I.STOP: S.DEPARTING, I.QUIT: S.DEPARTING,
    },
    S.RECONCILING: {
        I.SETTLED: S.STABLE, I.CONFIRMED: S.STABLE,
        I.FENCED: S.FENCED, I.REFUSED: S.FAILED, I.STOP: S.LEAVING, I.QUIT: S.DEPARTING,
    },
    S.STABLE: {
        I.ASSIGNED: S.RECONCILING,
        I.FENCED: S.FENCED, I.REFUSED: S.FAILED, I.STOP: S.LEAVING, I.QUIT: S.DEPARTING,
    },
    S.FENCED: {I.SETTLED: S.JOINING, I.REFUSED: S.FAILED, I.STOP: S.LEFT, I.QUIT: S.LEFT},
    S.LEAVING: {I.SETTLED: S.DEPARTING, I.FENCED: S.LEFT, I.REFUSED: S.FAILED, I.QUIT: S.DEPARTING},
    S.DEPARTING: {I.GONE: S.LEFT, I.FENCED: S.LEFT, I.REFUSED: S.LEFT},
    S.LEFT: {},
    S.FAILED: {},
}  # fmt: skip
"""What isn't here changes nothing. Answers that are lost, or say "try again", are no input: the member says everything
again after a while, in whatever state it is."""

ENTERING: Final[Mapping[State, str]] = {
    S.UNJOINED: "",
    S.JOINING: "heartbeat at once, with epoch 0 and all that it is made of",
    S.RECONCILING: "tell the application what to give up and what to take; say what it has as that changes",
    S.STABLE: "heartbeat once in the interval",
    S.FENCED: "tell the application that all its tasks are lost; no heartbeats until it has closed them",
    S.LEAVING: "tell the application to give up all its tasks; heartbeats go on meanwhile",
    S.DEPARTING: "heartbeat at once, with epoch -1, or -2 for a while (static members)",
    S.LEFT: "the events end; tasks that weren't closed are lost",
    S.FAILED: "tell the application that all its tasks are lost, then raise the error",
}

HEARTBEATING: Final = frozenset({S.JOINING, S.RECONCILING, S.STABLE, S.LEAVING, S.DEPARTING})
"""The states in which there are heartbeats."""


def table() -> str:
    """Both tables as one of Markdown, for the guide."""
    lines = ["| state | on entering it | then |", "| --- | --- | --- |"]
    for state, ways in TRANSITIONS.items():
        then = ", ".join(f"{happens.name} → {after.name}" for happens, after in ways.items())
        lines.append(f"| {state.name} | {ENTERING[state]} | {then} |")
    return "\n".join(lines) + "\n"
