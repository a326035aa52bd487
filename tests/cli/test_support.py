"""How tests call commands: what a command has written is there whatever becomes of the process's streams meanwhile."""

from __future__ import annotations

import sys

import typer

from .support import Runner


def test_another_stream_in_its_place_loses_nothing() -> None:
    app = typer.Typer()

    @app.command()
    def command() -> None:
        sys.stderr.write("said\n")
        sys.stderr.flush()
        sys.stderr = sys.__stderr__  # as another thread might, or pytest

    done = Runner().invoke(app, [])
    assert (done.exit_code, done.stderr) == (0, "said\n")
