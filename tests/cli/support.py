"""How tests call the command `kohort` in their own process."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

import pytest
from typer.testing import CliRunner

from kohort.broker import logging
from kohort.cli import _application, _run

__all__ = ["Runner", "invoke", "serving_fails"]


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


def serving_fails(*options: str) -> tuple[object, str]:
    """What `kohort serve` ends with, and says, where it can't start."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        patch.setattr(logging, "set_up_logging", lambda *_: None)  # what it changes of its process
        patch.setattr(gc, "disable", lambda: None)
        patch.setattr(sys, "argv", ["kohort", "serve", *options])
        for name in [each for each in os.environ if each.startswith("KOHORT_")]:
            patch.delenv(name)
        with pytest.raises(SystemExit) as ended:
            _run(sys.argv[1:])
    return ended.value.code, said.getvalue()
