"""Child processes that end with all that they started: an instance has a JVM, which has workers in Python."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

__all__ = ["Child", "signal_session"]

_TAIL: Final = 15
"""Lines of a log that are shown when a child fails."""


class Child:
    """A command in a session of its own, so that Ctrl+C in the terminal doesn't reach it, and all of it can be killed.

    Args:
        name: for people.
        command: program and arguments.
        log: the file that gets its output.
        environment: what differs from this process'.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs, and negative if a signal ended it."""
        return self._process.poll()

    def kill(self) -> None:
        """End the process and all that it started, at once: SIGKILL, as when a machine dies. May be called twice."""
        if self.code is None:
            self._process.kill()  # where there is no /proc, too
        signal_session(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, patience: float) -> int | None:
        """Ask it to end (SIGTERM); None if it has not within `patience` seconds, and had to be killed."""
        if self.code is None:
            self._process.terminate()
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()

    def tail(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").rstrip().splitlines()
        return "\n".join(lines[-_TAIL:])


def signal_session(leader: int, number: signal.Signals) -> None:
    """Send a signal to all processes of a session, to those that are started meanwhile, too.

    A process group won't do: the daemon that Spark's Python workers come from makes a group of its own. Without /proc
    none is found; what an instance started ends by itself then, when it notices that the instance is gone.
    """
    told: set[int] = set()
    while new := _session(leader) - told:
        for pid in new:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        told |= new


def _session(leader: int) -> set[int]:
    """The processes of a session, its leader among them, by what Linux tells."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            after_name = (directory / "stat").read_bytes().rpartition(b")")[2].split()
            if int(after_name[3]) == leader:
                found.add(int(directory.name))
    return found
