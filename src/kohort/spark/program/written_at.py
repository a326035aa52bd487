"""Where in the user's program something is written, so that errors can say so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kohort.spark.errors import ProgramError

_OURS = "kohort.spark."


def written_at() -> str:
    """The file and the line that call Kohort: "flights.py, line 12"; "" if nobody else does."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_OURS):
            return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


@dataclass(eq=False)
class Written:
    """What a definition knows of the program beside what it says.

    Attributes:
        at: where it is written.
    """

    at: str = field(default_factory=written_at, kw_only=True)


@contextmanager
def located(definition: Written) -> Iterator[None]:
    """Has errors of the program say where it is written what they are about; the innermost definition counts.

    Raises:
        ProgramError: one was raised within.
    """
    try:
        yield
    except ProgramError as error:
        if error.at is None and definition.at:
            error.args = (f"{error} ({definition.at})",)
            error.at = definition.at
        raise
