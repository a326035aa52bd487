"""Where Kohort's server spends its time under each load: py-spy's samples, by function."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from rich.table import Table

from benchmarks.broker.peers import Peer

SHOWN = 15

Watch = Callable[[Peer, str], AbstractContextManager[None]]
"""Watches a server while it is under a load."""


@contextlib.contextmanager
def no_profiler(peer: Peer, load: str) -> Iterator[None]:
    """Measures nothing."""
    yield


class Profiler:
    """Samples of Kohort's process, by load."""

    def __init__(self) -> None:
        beside = Path(sys.executable).parent
        program = shutil.which("py-spy", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
        if program is None:
            raise SystemExit("py-spy not found: pip install py-spy")
        self.program = program
        self.stacks: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)

    @contextlib.contextmanager
    def __call__(self, peer: Peer, load: str) -> Iterator[None]:
        """Take samples while the `with` block lasts, if the server is Kohort."""
        if peer.name != "Kohort":
            yield
            return
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "stacks"
            command = [self.program, "record", "--format=raw", "--rate=200", f"--output={file}", f"--pid={peer.pid}"]
            spy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                yield
            finally:
                spy.send_signal(signal.SIGINT)
                spy.wait()
            for line in file.read_text().splitlines():
                stack, _, samples = line.rpartition(" ")
                self.stacks[load][tuple(stack.split(";"))] += int(samples)

    def tables(self) -> Iterator[Table]:
        """A table a load: the functions with most time of their own, and with those that they call."""
        for load, stacks in self.stacks.items():
            own: Counter[str] = Counter()
            whole: Counter[str] = Counter()
            for stack, samples in stacks.items():
                functions = [frame.rpartition(":")[0] or frame for frame in stack]
                own[functions[-1]] += samples
                for function in set(functions):
                    whole[function] += samples
            total = sum(stacks.values())
            table = Table(title=f"Kohort under {load}: per cent of its busy time")
            for column in ("function", "own", "with calls"):
                table.add_column(column, justify="left" if column == "function" else "right")
            for function, samples in own.most_common(SHOWN):
                table.add_row(function, f"{samples / total:.1%}", f"{whole[function] / total:.1%}")
            yield table
