"""What a look at something has found, in sentences."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from kohort.cli.terminal import Line, printable

NAMED: Final = 5
"""So many things are named; of more, the rest is counted."""


class Level(enum.StrEnum):
    """How bad it is."""

    FINE = "fine"
    NOTE = "note"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: machine, cluster or program.
        level: how bad it is.
        what: what was found.
        why: why that matters; "" for what is fine.
        remedy: what to do; "" for nothing.
    """

    about: str
    level: Level
    what: str
    why: str = ""
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"level": self.level.value}


def some(names: Sequence[str]) -> str:
    """Names in a sentence, as far as they are few."""
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} more"


_COLOURS: Final = {Level.FINE: "green", Level.NOTE: "dim", Level.WARNING: "yellow", Level.WRONG: "bold red"}
_INDENT: Final = " " * 9


def as_lines(findings: list[Finding]) -> list[Line]:
    """A heading for each of what they are about, then a finding with its reasons."""
    lines: list[Line] = []
    about = None
    for each in findings:
        if each.about != about:
            lines += [[], [(f"The {each.about}", "bold")]] if lines else [[(f"The {each.about}", "bold")]]
            about = each.about
        lines.append([(f"{each.level.value:<9}", _COLOURS[each.level]), (printable(each.what), "")])
        lines += [[(_INDENT + printable(part), "dim")] for part in each.why.splitlines()]
        lines += [[(_INDENT + "-> " + printable(part), "")] for part in each.remedy.splitlines()]
    return lines
