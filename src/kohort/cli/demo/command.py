"""`kohort demo`."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from kohort.cli.terminal import fail
from kohort.extras import SPARK, require

_FAILED: Final = 1


def command(
    records: Annotated[
        int | None, typer.Option(metavar="N", min=1000, help="Only so many flights, the first of the year.")
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", min=10, max=3600, help="Duration of the replay.")] = 40.0,
    directory: Annotated[
        Path, typer.Option(metavar="DIR", help="For charts, the page, and in run/ all files of the last run.")
    ] = Path("kohort-demo"),
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For the download.", show_default="~/.cache/kohort")
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of the broker; 0 for a free one.")
    ] = 0,
    cores: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Spark's cores for each instance.", show_default="half of all"),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave broker and application running, until Ctrl-C.")] = False,
) -> None:
    """A streams application in PySpark on a year of real flights: through a crash, to the right result.

    A broker starts, and two instances of docs/examples/flight_delays.py. The 336,776 flights that left New York in 2013
    are replayed into a topic; part way, one instance is killed with SIGKILL, and the other takes over. At the end, the
    result is compared with that of a batch job: plain Spark over the same data.

    Needs Java 17 or newer, and the packages of Kohort's extra "spark". Two to three minutes on two cores.

    Exit codes:

    0: stream and batch are equal.

    1: they aren't, or the demo failed; it prints why.

    130: Ctrl-C; nothing is left running.
    """
    require("spark", "kohort demo", (*SPARK, "matplotlib"))
    from kohort.cli.client.run import run
    from kohort.cli.demo.errors import DemoError
    from kohort.cli.demo.java import check_java
    from kohort.cli.demo.plan import Plan, default_cache
    from kohort.cli.demo.run import run_demo

    if port and not _is_free(port):
        fail(f"port {port} is taken: stop what listens there, or choose another --port", _FAILED)
    plan = Plan(
        records,
        seconds,
        directory.absolute(),
        cache or default_cache(),
        port,
        cores or max(1, (os.cpu_count() or 1) // 2),
        keep,
    )
    signal.signal(signal.SIGHUP, _hang_up)
    try:
        check_java()
        code = run(lambda: run_demo(plan))
    except DemoError as error:
        fail(str(error), _FAILED)
    raise typer.Exit(code)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def _hang_up(number: int, frame: FrameType | None) -> None:
    """Ends as with SIGTERM when the terminal is closed, so that nothing is left running."""
    signal.raise_signal(signal.SIGTERM)
