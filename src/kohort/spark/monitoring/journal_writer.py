"""A journal: everything an instance tells its listeners, a line of JSON each, for those who look afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import msgspec

from kohort.spark.monitoring.events import EpochDone, Restoring, TasksNow

__all__ = ["JournalWriter"]


class JournalWriter:
    """A listener that writes what it hears to a file, at its end if there is one.

    Each line is `{"event":"epoch","at":1385000000.1,…}`: the event, when (seconds since 1970), and its fields. A line
    is one write, so that a process that is killed leaves whole lines, and all of them. `read_journals` reads them.

    Args:
        path: of the file; its directory is made.
        instance: what to call the instance: by default the file's name.
        clock: seconds since 1970.

    Raises:
        OSError: the file can't be written.
    """

    def __init__(
        self, path: str | os.PathLike[str], instance: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._file: int | None = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # the last line is a torn one
        self._write("started", {"instance": instance or file.stem, "pid": os.getpid()})

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        self._write("epoch", asdict(done))

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""
        self._write("tasks", asdict(now))

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""
        self._write("restoring", asdict(progress))

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""
        self._write("waiting", {"reason": reason})

    def failed(self, text: str) -> None:
        """Something went wrong."""
        self._write("failed", {"text": text})

    def note(self, event: str, **fields: Any) -> None:
        """Write a line of one's own, as the demo does when it kills an instance."""
        self._write(event, fields)

    def close(self) -> None:
        """Write that it ends, and close the file."""
        if self._file is not None:
            self._write("stopped", {})
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, event: str, fields: dict[str, Any]) -> None:
        if self._file is not None:
            line = {"event": event, "at": self._clock(), **fields}
            os.write(self._file, msgspec.json.encode(line) + b"\n")
