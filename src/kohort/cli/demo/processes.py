"""Child processes that are killed with all their descendants: an instance has a JVM, which has workers in Python."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

_TAIL: Final = 15
"""Lines of a log that are shown when a child fails."""


class Child:
    """A command in a session of its own, so that Ctrl+C in the terminal doesn't reach it, and all of it can be killed.

    Args:
        name: for messages.
        command: program and arguments.
        environment: variables in addition to this process'.
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
        """Kills the process and all its descendants with SIGKILL, as when a machine dies. May be called twice."""
        if self.code is None:
            self._process.kill()  # works without /proc, too
        signal_session(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, timeout: float) -> int | None:
        """Sends SIGTERM, and returns the exit code; None if it didn't end within `timeout` seconds and was killed."""
        if self.code is None:
            self._process.terminate()
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").rstrip().splitlines()
        return "\n".join(lines[-_TAIL:])


def signal_session(leader: int, number: signal.Signals) -> None:
    """Sends a signal to all processes of a session, also to those that are started meanwhile.

    A process group isn't enough: the daemon that starts Spark's Python workers makes a group of its own. Without /proc
    none is found; descendants then end by themselves when they notice that the instance is gone.
    """
    signalled: set[int] = set()
    while new := _session(leader) - signalled:
        for pid in new:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        signalled |= new


def _session(leader: int) -> set[int]:
    """The processes of a session, with its leader, from Linux's /proc."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            after_name = (directory / "stat").read_bytes().rpartition(b")")[2].split()
            if int(after_name[3]) == leader:
                found.add(int(directory.name))
    return found
