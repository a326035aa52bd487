"""Instances of the application, each a session of its own: Python, the JVM and its workers live and die together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.cli.demo.processes import signal_session

__all__ = ["Instance"]

_TAIL = 3000


class Instance:
    """An instance, which keeps its state when it is killed and started again.

    Args:
        directory: for its state, its journal and its log.
        servers: the brokers.
        options: more of the program's options.
    """

    def __init__(self, directory: Path, servers: str, *options: str) -> None:
        self.directory = directory
        self._command = [
            sys.executable, "-W", "ignore", "-m", "tests.chaos.program", servers,
            "--directory", str(directory), *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()

    @property
    def name(self) -> str:
        """How it is called in tables."""
        return self.directory.name

    @property
    def journal(self) -> Path:
        """What it writes down."""
        return self.directory / "journal.jsonl"

    @property
    def runs(self) -> bool:
        """Whether it was started and hasn't ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; it joins when its Spark session is there."""
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """End all of it as a power failure does."""
        self._signal(signal.SIGKILL)
        self._end()

    def pause(self) -> None:
        """Hold all of it still."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again, not knowing that time has passed."""
        self._signal(signal.SIGCONT)

    def stop(self, patience: float = 240) -> int:
        """End it in good order, and return its exit code.

        Raises:
            RuntimeError: it doesn't end in time; it is killed then.
        """
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.name} didn't stop within {patience} s; {self.tail()}") from None
        return self._end()

    def tail(self) -> str:
        """The end of its log."""
        return f"its log ends with\n{(self.directory / 'log').read_text(errors='replace')[-_TAIL:]}"

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        signal_session(self._process.pid, number)

    def _end(self) -> int:
        assert self._process is not None
        code = self._process.wait()
        self._process = None
        return code
