"""Where output goes, and how the command line fails."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

__all__ = ["err", "fail", "out"]

_WIDE = 160

out = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
"""Standard output; wide and without colour where it isn't a terminal."""

err = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else _WIDE)


def fail(message: str, code: int = 2) -> NoReturn:
    """Say what is wrong and exit: with 2 for a call that can't be taken, with 1 for data that isn't right."""
    err.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    raise typer.Exit(code)
