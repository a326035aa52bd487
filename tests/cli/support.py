"""How tests call the command `kohort` in their own process."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from kohort.cli import _application

__all__ = ["invoke"]


def invoke(*arguments: str, stdin: str | bytes = "", servers: str | None = None) -> Any:
    """Calls a sub-command with arguments, on a cluster if `servers` says where one is; what came of it."""
    at = [] if servers is None else ["--bootstrap-server", servers]
    return CliRunner().invoke(_application([arguments[0]]), [*arguments, *at], input=stdin)
