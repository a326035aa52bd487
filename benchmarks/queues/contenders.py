"""Who works on the rows, and processes of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from benchmarks.pipeline.contenders import environment

_PROGRAMS: Final = "benchmarks.queues.programs"


@dataclass(frozen=True)
class Contender:
    """A program.

    Attributes:
        title: its name in the table.
        module: under `programs`.
        arguments: after the servers and the application's name.
        workers: how many may work on one partition.
    """

    title: str
    module: str
    arguments: tuple[str, ...] = ()
    workers: tuple[int, ...] = (1, 2, 4)


CONTENDERS: Final = (
    Contender("queue, 500 at a time", "kohort", ("queue", "500")),
    Contender("queue, 2,000 at a time", "kohort", ("queue", "2000"), (1,)),
    Contender("stream", "kohort", ("stream", "0"), (1,)),
    Contender("librdkafka's share consumer", "share_consumer"),
)


class Workers:
    """Processes of a contender, as a context manager. What they say is in files of the directory."""

    def __init__(self, contender: Contender, servers: str, name: str, work: str, directory: Path) -> None:
        module = f"{_PROGRAMS}.{contender.module}"
        self._command = [sys.executable, "-m", module, servers, name, *contender.arguments, work]
        self._said = [directory / f"{name}-{number}.txt" for number in range(max(contender.workers))]
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each, _ in self._running:
            self._kill(each)

    def start(self, count: int) -> None:
        """Starts so many."""
        for path in self._said[:count]:
            with path.open("wb") as said:
                process = subprocess.Popen(
                    self._command, env=environment(), stdout=said, stderr=said, start_new_session=True
                )
            self._running.append((process, path))

    def kill_first(self) -> None:
        """Kills one with all that it has started, as a machine that is gone."""
        process, _ = self._running.pop(0)
        self._kill(process)

    def check(self) -> None:
        """Raises RuntimeError if one has ended."""
        for each, path in self._running:
            if each.poll() is not None:
                raise RuntimeError(f"a worker has ended:\n{path.read_text()[-4000:]}")

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Also what it has left behind, where it has ended itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
