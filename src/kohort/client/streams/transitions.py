"""The states of a member of a streams group, and the transitions between them, on one screen.

`StreamsMembershipManager` turns everything that happens into an input, and looks up the next state here. What it does
on entering a state is the same whichever way it is entered (`ENTERING`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.Enum):
    """State of a member."""

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
    """What happens to a member."""

    BEGIN = "the user starts it"
    ASSIGNED = "a response; the application's tasks differ from the assigned ones"
    CONFIRMED = "a response; the application has the assigned tasks"
    RECONCILED = "the application has taken and closed all that it had to"
    FENCED = "the group fenced it, or it can't know its tasks because a response got lost"
    REFUSED = "an error that retrying won't mend"
    STOP = "the user or the group wants it to close its tasks and leave"
    QUIT = "the user closes it"
    RESIGN = "the user closes it, and the group that fenced it still has it: one of a classic group"
    GONE = "the group knows that it left, or can't be reached"


S, I = State, Input  # noqa: E741

TRANSITIONS: Final[Mapping[State, Mapping[Input, State]]] = {
    S.UNJOINED: {I.BEGIN: S.JOINING, I.STOP: S.LEFT, I.QUIT: S.LEFT},
    S.JOINING: {
        I.ASSIGNED: S.RECONCILING, I.CONFIRMED: S.STABLE,
        I.FENCED: S.FENCED, I.REFUSED: S.FAILED, I.STOP: S.DEPARTING, I.QUIT: S.DEPARTING,
    },
    S.RECONCILING: {
        I.RECONCILED: S.STABLE, I.CONFIRMED: S.STABLE,
        I.FENCED: S.FENCED, I.REFUSED: S.FAILED, I.STOP: S.LEAVING, I.QUIT: S.DEPARTING,
    },
    S.STABLE: {
        I.ASSIGNED: S.RECONCILING,
        I.FENCED: S.FENCED, I.REFUSED: S.FAILED, I.STOP: S.LEAVING, I.QUIT: S.DEPARTING,
    },
    S.FENCED: {I.RECONCILED: S.JOINING, I.REFUSED: S.FAILED, I.STOP: S.LEFT, I.QUIT: S.LEFT, I.RESIGN: S.DEPARTING},
    S.LEAVING: {I.RECONCILED: S.DEPARTING, I.FENCED: S.LEFT, I.REFUSED: S.FAILED, I.QUIT: S.DEPARTING},
    S.DEPARTING: {I.GONE: S.LEFT, I.FENCED: S.LEFT, I.REFUSED: S.LEFT},
    S.LEFT: {},
    S.FAILED: {},
}  # fmt: skip
"""What isn't here changes nothing. Lost responses and retriable errors are no input: the member sends everything again
after a pause, in whatever state it is."""

ENTERING: Final[Mapping[State, str]] = {
    S.UNJOINED: "",
    S.JOINING: "send a heartbeat at once, with epoch 0, the topology and all settings",
    S.RECONCILING: "revoke and assign tasks; report the owned ones as they change",
    S.STABLE: "send a heartbeat once in the interval",
    S.FENCED: "all tasks are lost; no heartbeats until the application has closed them",
    S.LEAVING: "revoke all tasks; heartbeats go on meanwhile",
    S.DEPARTING: "send a heartbeat at once, with epoch -1, or -2 (a static member, for a while)",
    S.LEFT: "the events end; tasks that weren't closed are lost",
    S.FAILED: "all tasks are lost; the error is raised",
}

HEARTBEATING: Final = frozenset({S.JOINING, S.RECONCILING, S.STABLE, S.LEAVING, S.DEPARTING})
"""The states in which there are heartbeats."""


def table() -> str:
    """Returns both tables as one of Markdown, for the guide."""
    lines = ["| state | on entering it | then |", "| --- | --- | --- |"]
    for state, ways in TRANSITIONS.items():
        then = ", ".join(f"{happens.name} → {after.name}" for happens, after in ways.items())
        lines.append(f"| {state.name} | {ENTERING[state]} | {then} |")
    return "\n".join(lines) + "\n"
