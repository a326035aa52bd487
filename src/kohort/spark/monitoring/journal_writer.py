"""Writes the journal: a file with all events of an instance, one line of JSON each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import msgspec

from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow


class JournalWriter(Listener):
    """Appends the events of an instance to a file.

    A line is `{"event":"epoch","at":1385000000.1,…}`: the event, its time (seconds since 1970), and its fields. Each
    line is one write, so a process that is killed leaves all the lines it wrote. `read_journals` reads them.

    Args:
        path: the file; its directory is made if need be.
        instance: a name for the instance; by default the file's, without its suffix.
        clock: returns seconds since 1970.

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
            os.write(self._file, b"\n")  # the last line is torn
        self._write("started", {"instance": instance or file.stem, "pid": os.getpid()})

    def epoch(self, done: EpochDone) -> None:
        fields = asdict(done)
        del fields["reads"]  # of large epochs there are many
        self._write("epoch", fields)

    def tasks(self, now: TasksNow) -> None:
        self._write("tasks", asdict(now))

    def restoring(self, progress: Restoring) -> None:
        self._write("restoring", asdict(progress))

    def waiting(self, reason: str | None) -> None:
        self._write("waiting", {"reason": reason})

    def failed(self, text: str) -> None:
        self._write("failed", {"text": text})

    def note(self, event: str, **fields: Any) -> None:
        """Writes an event of the caller's own."""
        self._write(event, fields)

    def close(self) -> None:
        """Writes that the instance stopped, and closes the file."""
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
