"""Solvers for tests: one without a process, and processes that fail."""

from __future__ import annotations

import sys
import threading
import time

from kohort.broker.streams.solver import Solver
from kohort.coordinator.placement import place
from kohort.coordinator.placement.model import Group, Placement

SILENT = (sys.executable, "-c", "import time; time.sleep(1000)")
MORTAL = (sys.executable, "-c", "import sys; sys.stdin.buffer.read(8)")
ABSENT = ("/nonexistent/python",)


class InProcess(Solver):
    """Solves in the thread that asks, some seconds later."""

    def __init__(self, after: float = 0.0) -> None:
        super().__init__(ABSENT)
        self._after = after

    def start(self) -> None:
        """There is nothing to start."""

    def solve(self, assignor: str, group: Group) -> Placement:
        time.sleep(self._after)
        return place(assignor, group)


class Gate(InProcess):
    """Solves when the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    def solve(self, assignor: str, group: Group) -> Placement:
        assert self._open.wait(30)
        return super().solve(assignor, group)
