"""How tests call the command `kohort` in their own process."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.testing import CliRunner

from kohort.cli import _application

__all__ = ["Runner", "invoke"]


class Runner(CliRunner):
    """A runner whose streams last as long as the call.

    Those of typer are closed with all that was written ("I/O operation on closed file") as soon as nobody has them any
    more: it is enough that another thread, or pytest's capture, puts another stream in the place of `sys.stderr`.
    """

    @contextmanager
    def isolation(self, *arguments: Any, **settings: Any) -> Iterator[tuple[io.BytesIO, io.BytesIO, io.BytesIO]]:
        with super().isolation(*arguments, **settings) as written:
            held = sys.stdin, sys.stdout, sys.stderr
            yield written
            del held


def invoke(*arguments: str, stdin: str | bytes = "", servers: str | None = None) -> Any:
    """Calls a sub-command with arguments, on a cluster if `servers` says where one is; what came of it."""
    at = [] if servers is None else ["--bootstrap-server", servers]
    return Runner().invoke(_application([arguments[0]]), [*arguments, *at], input=stdin)
