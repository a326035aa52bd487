"""Instances of a contender, as child processes."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.pipeline import tree
from benchmarks.pipeline.contenders import Contender, Job, environment


class Instance:
    """A contender's process, and all that it starts; as a context manager it is killed in the end.

    Attributes:
        launched: when the process was started, in s since 1970.
        phases: of its start, as far as it tells: when each was over.
    """

    def __init__(self, contender: Contender, job: Job) -> None:
        self._contender = contender
        self._job = job
        self._started: float | None = None
        self.phases: dict[str, float] = {}
        self._ready = threading.Event()
        Path(job.directory).mkdir(parents=True, exist_ok=True)
        self._said = Path(job.directory) / "stderr"
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        return self._process.pid

    def start(self) -> None:
        """Start it; again, after it was killed."""
        self._ready.clear()
        self.launched = time.time()
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                self._contender.command(self._job),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment(),
            )
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def kill(self) -> None:
        """SIGKILL to it and all that it started."""
        tree.kill(self._process.pid)
        self._process.wait()

    def started(self, patience: float = 300) -> float:
        """When its processing began, in s since 1970; waits for it."""
        deadline = time.monotonic() + patience
        while not self._ready.wait(0.2):
            self.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._contender.title} didn't start in {patience} s:\n{self.complaints()}")
        assert self._started is not None
        return self._started

    def check(self) -> None:
        """RuntimeError if it has ended."""
        if self._process.poll() is not None:
            code = self._process.returncode
            raise RuntimeError(f"{self._contender.title} ended with code {code}:\n{self.complaints()}")

    def complaints(self) -> str:
        """The end of what it wrote to standard error."""
        return self._said.read_text(errors="replace")[-4000:]

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                words = line.split()
                if words[:1] == [b"phase"]:
                    self.phases[b" ".join(words[2:]).decode()] = float(words[1])
                if words[:1] == [b"started"] and not self._ready.is_set():
                    self._started = float(words[1])
                    self._ready.set()
