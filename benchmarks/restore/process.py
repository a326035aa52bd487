"""A contender's process, and when it reached which phase."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.pipeline import tree
from benchmarks.pipeline.contenders import environment
from benchmarks.restore.contenders import Contender, Job

PATIENCE = 600


class Moment(NamedTuple):
    """When a phase began: in s since 1970, and the processor time of the process until then."""

    at: float
    cpu: float


class Process:
    """A contender's process; as a context manager it is killed in the end.

    Attributes:
        launched: when it was started, in s since 1970.
    """

    def __init__(self, contender: Contender, job: Job) -> None:
        self._title = contender.title
        self._moments: dict[str, Moment] = {}
        self._ended = False  # it tells of no more phases
        self._changed = threading.Condition()
        Path(job.directory).mkdir(parents=True, exist_ok=True)
        self._said = Path(job.directory) / "stderr"
        self.launched = time.time()
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                contender.command(job),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment(),
            )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tree.kill(self.pid)
        self._process.wait()
        self._thread.join()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def reached(self, phase: str) -> Moment:
        """When it reached a phase; waits for it.

        Raises:
            RuntimeError: it has ended before.
            TimeoutError: it hasn't after ten minutes.
        """
        with self._changed:
            there = self._changed.wait_for(lambda: phase in self._moments or self._ended, PATIENCE)
            if phase in self._moments:
                return self._moments[phase]
        complaints = self._said.read_text(errors="replace")[-4000:]
        if there:
            raise RuntimeError(f"{self._title} ended before it was {phase}:\n{complaints}")
        raise TimeoutError(f"{self._title} wasn't {phase} in {PATIENCE} s:\n{complaints}")

    def stop(self) -> None:
        """SIGTERM, so that it closes its stores."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            with self._process.stdout:
                for line in self._process.stdout:
                    words = line.decode().split()
                    if words[:1] == ["phase"]:
                        with self._changed:
                            self._moments.setdefault(words[3], Moment(float(words[1]), float(words[2])))
                            self._changed.notify_all()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
