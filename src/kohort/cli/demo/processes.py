"""Child processes that end with all their descendants: an instance has a JVM, which has Python workers."""

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
    """A command in its own session: Ctrl+C in the terminal doesn't reach it, and all its processes can be killed.

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
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs, and negative if a signal ended it."""
        return self._process.poll()

    def kill(self) -> None:
        """Kills the process and all its descendants (SIGKILL), as when a machine dies. May be called twice."""
        if self.code is None:
            self._process.kill()  # needed where there is no /proc
        signal_session(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, timeout_s: float) -> int | None:
        """Asks it to end (SIGTERM). Returns its exit code; None if it didn't end in time, and was killed."""
        if self.code is None:
            self._process.terminate()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").rstrip().splitlines()
        return "\n".join(lines[-_TAIL:])


def signal_session(leader: int, number: signal.Signals) -> None:
    """Sends a signal to all processes of a session, even to those that start meanwhile.

    A process group isn't enough: the daemon of Spark's Python workers makes its own. Without /proc no process is
    found; the descendants of an instance then end when they notice that it is gone.
    """
    signalled: set[int] = set()
    while new := _session(leader) - signalled:
        for pid in new:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        signalled |= new


def _session(leader: int) -> set[int]:
    """The processes of a session, with its leader."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has just ended
            after_name = (directory / "stat").read_bytes().rpartition(b")")[2].split()
            if int(after_name[3]) == leader:
                found.add(int(directory.name))
    return found
